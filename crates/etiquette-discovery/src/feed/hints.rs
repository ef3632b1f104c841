//! What a feed says about its pace: `ttl`, `skipHours` and `skipDays` (RSS 2.0), `updatePeriod` and `updateFrequency`
//! (the syndication module of RSS 1.0, used in all kinds).

use std::time::{Duration, SystemTime};

use quick_xml::Reader;
use quick_xml::events::Event;

use super::week::{DAY, HOUR, WEEK, hour_of_week};

/// How far into a feed hints are looked for; they stand before the first entry.
const MAX_BYTES: usize = 128 * 1024;

/// What a feed says about its pace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hints {
    /// `ttl`: how long it may be kept.
    pub ttl: Option<Duration>,
    /// `updatePeriod` divided by `updateFrequency`.
    pub update_period: Option<Duration>,
    /// Hours of the day, GMT, in which not to ask: bit 0 is from midnight to one.
    pub skip_hours: u32,
    /// Days of the week, GMT, on which not to ask: bit 0 is Monday.
    pub skip_days: u8,
}

impl Hints {
    /// Reads the hints of a feed; a body that is none has none.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        // Names and numbers are ASCII in every encoding that feeds use, so that only the text of other elements suffers.
        let text = String::from_utf8_lossy(&body[..body.len().min(MAX_BYTES)]);
        let mut reader = Reader::from_str(&text);
        reader.config_mut().check_end_names = false;
        reader.config_mut().allow_unmatched_ends = true;
        let mut hints = Self::default();
        let mut period = None;
        let mut frequency = 1u32;
        let mut name = String::new();
        loop {
            match reader.read_event() {
                Ok(Event::Start(start)) => {
                    let local = start.local_name();
                    let local = local.into_inner();
                    // Hints stand before the first entry; what entries hold is none.
                    if matches!(local, "item" | "entry") {
                        break;
                    }
                    name.clear();
                    name.push_str(local);
                }
                Ok(Event::Text(text)) => {
                    let text = text.trim();
                    match name.as_str() {
                        "ttl" => {
                            hints.ttl = text.parse().ok().map(minutes).filter(|ttl| !ttl.is_zero())
                        }
                        "hour" => hints.skip_hours |= hour(text),
                        "day" => hints.skip_days |= day(text),
                        "updatePeriod" => period = duration(text),
                        "updateFrequency" => frequency = text.parse().unwrap_or(1).max(1),
                        _ => {}
                    }
                }
                Ok(Event::End(_)) => name.clear(),
                Ok(Event::Eof) | Err(quick_xml::Error::Syntax(_)) => break,
                Ok(_) => {}
                Err(quick_xml::Error::IllFormed(_)) => {}
                Err(_) => break,
            }
        }
        hints.update_period = period.map(|period| period / frequency);
        hints
    }

    /// The longest of the durations, if the feed gives any.
    #[must_use]
    pub fn pace(&self) -> Option<Duration> {
        self.ttl.max(self.update_period)
    }

    /// The first time not before `at` that is in no skipped hour and on no skipped day; `at` itself when everything is
    /// skipped, which nobody can mean.
    #[must_use]
    pub fn not_skipped(&self, at: SystemTime) -> SystemTime {
        let (hours, of_week) = hour_of_week(at);
        let skipped = |ahead: u64| {
            let of_week = (of_week + ahead) % (7 * 24);
            let hour = of_week % 24;
            // The epoch was a Thursday.
            let day = (of_week / 24 + 3) % 7;
            self.skip_hours >> hour & 1 == 1 || self.skip_days >> day & 1 == 1
        };
        match (0..7 * 24).find(|ahead| !skipped(*ahead)) {
            None | Some(0) => at,
            Some(ahead) => SystemTime::UNIX_EPOCH + Duration::from_secs((hours + ahead) * 3600),
        }
    }
}

fn minutes(minutes: u32) -> Duration {
    Duration::from_secs(u64::from(minutes) * 60)
}

fn duration(period: &str) -> Option<Duration> {
    Some(match period.to_ascii_lowercase().as_str() {
        "hourly" => HOUR,
        "daily" => DAY,
        "weekly" => WEEK,
        "monthly" => 30 * DAY,
        "yearly" => 365 * DAY,
        _ => return None,
    })
}

/// The bit of an hour; 24 is another name for 0.
fn hour(text: &str) -> u32 {
    match text.parse::<u32>() {
        Ok(hour @ 0..=24) => 1 << (hour % 24),
        _ => 0,
    }
}

fn day(text: &str) -> u8 {
    const DAYS: [&str; 7] = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    DAYS.iter()
        .position(|day| day.eq_ignore_ascii_case(text))
        .map_or(0, |day| 1 << day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SystemTime {
        httpdate::parse_http_date(text).unwrap()
    }

    #[test]
    fn all_hints_of_a_feed() {
        let hints = Hints::of(
            b"<?xml version='1.0'?><rss xmlns:sy='x'><channel><title>ttl</title><ttl> 60 </ttl>\
            <skipHours><hour>0</hour><hour>24</hour><hour>23</hour><hour>25</hour></skipHours>\
            <skipDays><day>Saturday</day><day>sunday</day><day>Noday</day></skipDays>\
            <sy:updatePeriod>\n daily </sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>\
            <item><ttl>5</ttl></item></channel></rss>",
        );
        assert_eq!(hints.ttl, Some(HOUR));
        assert_eq!(hints.update_period, Some(6 * HOUR));
        assert_eq!(hints.pace(), Some(6 * HOUR));
        assert_eq!(hints.skip_hours, 1 | 1 << 23);
        assert_eq!(hints.skip_days, 0b110_0000);
    }

    #[test]
    fn what_is_no_hint() {
        for body in [
            &b""[..],
            b"{\"version\": \"https://jsonfeed.org/version/1.1\"}",
            b"<rss><channel><ttl>soon</ttl></channel></rss>",
            b"<rss><channel><ttl>0</ttl></channel></rss>",
            b"<rss><channel><ttl>-5</ttl><updatePeriod>often</updatePeriod>",
            b"<feed><entry><ttl>5</ttl></entry></feed>",
            b"<\xff\xfe&<&",
        ] {
            assert_eq!(Hints::of(body), Hints::default());
        }
    }

    #[test]
    fn skipped_hours_and_days_push_to_the_next_free_hour() {
        // 2026-11-01 is a Sunday.
        let noon = at("Sun, 01 Nov 2026 12:30:00 GMT");
        let mut hints = Hints::default();
        assert_eq!(hints.not_skipped(noon), noon);
        hints.skip_hours = 1 << 12 | 1 << 13;
        assert_eq!(hints.not_skipped(noon), at("Sun, 01 Nov 2026 14:00:00 GMT"));
        hints.skip_days = 0b100_0000;
        assert_eq!(hints.not_skipped(noon), at("Mon, 02 Nov 2026 00:00:00 GMT"));
        hints.skip_hours |= 1;
        assert_eq!(hints.not_skipped(noon), at("Mon, 02 Nov 2026 01:00:00 GMT"));
        hints.skip_days = 0b111_1111;
        assert_eq!(hints.not_skipped(noon), noon);
    }
}
