//! Why a host is visited at the pace at which it is visited, in words.

use std::fmt;
use std::time::{Duration, SystemTime};

use http::Uri;
use tower_etiquette::Hosts;
use tower_etiquette::hosts::{HostSnapshot, PaceReason};

use super::record::date;

/// Why a host is visited at its pace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Why {
    delay: String,
    paused_until: Option<SystemTime>,
}

/// What is known about the host of `uri`, or `None` before anything is.
pub(super) fn why(hosts: &Hosts, uri: &Uri) -> Option<Why> {
    let known = hosts.snapshot(uri).ok()??;
    Some(Why {
        delay: delay(&known),
        paused_until: known.paused_until,
    })
}

impl Why {
    /// Whether it says the same as `other`. The end of a pause is computed anew from two clocks each time it is asked
    /// for, and differs by less than a second.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let same_pause = match (self.paused_until, other.paused_until) {
            (Some(one), Some(two)) => {
                let apart = one.max(two).duration_since(one.min(two));
                apart.unwrap_or_default() < Duration::from_secs(1)
            }
            (one, two) => one == two,
        };
        same_pause && self.delay == other.delay
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(until) = self.paused_until {
            write!(f, "paused until {}, as it asked; then ", date(until))?;
        }
        f.write_str(&self.delay)
    }
}

fn delay(known: &HostSnapshot) -> String {
    let delay = seconds(known.pace.delay);
    let why = match known.pace.reason {
        PaceReason::MinDelay => "our own least delay".to_owned(),
        PaceReason::CrawlDelay => match known.crawl_delay {
            Some(delay) => format!("its robots.txt says Crawl-delay {}", delay.as_secs_f64()),
            None => "its robots.txt asks for it".to_owned(),
        },
        PaceReason::Latency => format!("it takes {} to answer", seconds(known.latency)),
        _ => "that is what it bears".to_owned(),
    };
    let mut text = format!("one request every {delay}: {why}");
    if known.pace.rate < 1.0 {
        let share = known.pace.rate * 100.0;
        text += &format!(", at {share:.0} % of the rate since it complained");
    }
    text
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paused(millis: u64) -> Why {
        Why {
            delay: "slow".to_owned(),
            paused_until: Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis)),
        }
    }

    #[test]
    fn the_end_of_a_pause_may_tremble() {
        assert!(paused(10_000).is_like(&paused(10_900)));
        assert!(paused(10_900).is_like(&paused(10_000)));
        assert!(!paused(10_000).is_like(&paused(11_000)));
        let over = Why {
            paused_until: None,
            ..paused(0)
        };
        assert!(!over.is_like(&paused(0)));
        assert!(over.is_like(&over));
        assert_eq!(
            paused(9_999).to_string(),
            "paused until 1970-01-01T00:00:10Z, as it asked; then slow"
        );
    }
}
