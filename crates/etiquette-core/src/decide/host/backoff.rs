//! How much slower a host is asked than before its site complained.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::latency::Latency;
use super::policy::LONGEST_PAUSE;
use super::recovery::{self, Recovery};
use crate::clock::LONGEST;

/// What each backoff level leaves of the rate: half, the multiplicative decrease of AIMD, as TCP halves its window when a
/// segment is lost (RFC 5681, 3.1). Whatever the rate was, a few steps bring it below what the site bears.
const BACKOFF_FACTOR: f64 = 0.5;

/// Without a request for so long after its pause a host counts as new: limits, load and administrators change. It is the
/// longest for which a crawler should use a copy of robots.txt (RFC 9309, 2.4), and what a site said in a pause is not kept
/// longer.
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// The backoff of a host. At level 0 the rate is full and nothing is learnt.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    /// The pauses that backed off and are not forgiven yet.
    pub(super) level: u32,
    /// The share of the full rate that is left: 1 at level 0.
    pub(super) rate: f64,
    /// The delay learnt from the pace at which the site complained, where the configured one is shorter.
    pub(super) learnt: Duration,
    pub(super) recovery: Recovery,
    last: Option<Instant>,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            level: 0,
            rate: 1.0,
            learnt: Duration::ZERO,
            recovery: Recovery::default(),
            last: None,
        }
    }
}

impl Backoff {
    /// Whether a request left before the last backoff: its response tells nothing new about the pace since.
    pub(super) fn is_late(&self, started: Instant) -> bool {
        self.last.is_some_and(|last| started <= last)
    }

    /// Where the delay is short, permits and latency set the pace: remembers the one that was too fast.
    pub(super) fn learn(&mut self, starts: u32, latency: Latency, max_in_flight: NonZeroU32) {
        self.learnt = (Duration::from_secs(1) / starts.max(1))
            .max(latency.0 / max_in_flight.get())
            .min(LONGEST_PAUSE);
    }

    /// One level more. `delay` is the one at the full rate: it is stretched to [`LONGEST_PAUSE`] at most, so that the rate
    /// has a floor from which it comes back.
    pub(super) fn raise(&mut self, now: Instant, delay: Duration) {
        let floor = delay.as_secs_f64() / LONGEST_PAUSE.as_secs_f64();
        self.rate = (self.rate * BACKOFF_FACTOR).max(floor).min(self.rate);
        self.level = self.level.saturating_add(1);
        self.last = Some(now);
        self.recovery.interrupt();
    }

    /// Applies what minutes and half-hours that are over give back.
    pub(super) fn apply_recovery(&mut self, now: Instant) {
        if self.level == 0 {
            return;
        }
        if self.recovery.take_minute(now) {
            let ceiling = recovery::ceiling(self.level);
            self.rate = (self.rate + recovery::STEP).min(ceiling).max(self.rate);
        }
        if self.recovery.take_half_hour(now) {
            self.level -= 1;
            if self.level == 0 {
                *self = Self {
                    last: self.last,
                    ..Self::default()
                };
            }
        }
    }

    /// A delay at the present rate: at most an hour by backoff, never less than the delay itself.
    pub(super) fn scaled(&self, delay: Duration) -> Duration {
        scaled(delay, self.rate)
    }

    /// The same for the time between two requests of an API.
    pub(super) fn scaled_for_api(&self, interval: Duration) -> Duration {
        scaled(interval, self.api_rate())
    }

    /// The floor under the rate is for the delay between pages, which is an hour there. APIs have none: each level halves.
    pub(super) fn api_rate(&self) -> f64 {
        if self.level == 0 {
            self.rate
        } else {
            self.rate.min(recovery::ceiling(self.level))
        }
    }

    pub(super) fn is_slowed(&self) -> bool {
        self.rate < 1.0 || self.level > 0
    }
}

fn scaled(delay: Duration, rate: f64) -> Duration {
    if rate >= 1.0 {
        return delay;
    }
    let scaled = delay.min(LONGEST).as_secs_f64() / rate;
    let longest = LONGEST_PAUSE.max(delay);
    if scaled >= longest.as_secs_f64() {
        longest
    } else {
        Duration::from_secs_f64(scaled).max(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_halves_the_rate_down_to_a_delay_of_an_hour() {
        let now = Instant::now();
        let delay = Duration::from_secs(1_000);
        let mut backoff = Backoff::default();
        let delays: Vec<_> = (0..4)
            .map(|_| {
                backoff.raise(now, delay);
                backoff.scaled(delay).as_secs()
            })
            .collect();
        assert_eq!(delays, [2_000, 3_600, 3_600, 3_600]);
        assert_eq!(backoff.level, 4);
        let day = Duration::from_secs(86_400);
        assert_eq!(backoff.scaled(day), day, "never less than the delay itself");
        assert!(backoff.is_late(now) && !backoff.is_late(now + delay));
    }
}
