//! When the rate comes back: after time in which requests succeeded, not after time alone.
//!
//! Without "only with success" a site that responds with `429, Retry-After: 5` for ever drew 232 requests on its second day
//! in a simulation; with it 24, one an hour.

use std::time::{Duration, Instant};

/// What a minute with a success gives back of the full rate: the additive increase of AIMD, as TCP raises its window by
/// one segment in each round trip (RFC 5681, 3.1). From half the rate to [`CEILING`] it takes four minutes. The step is
/// our choice.
pub(super) const STEP: f64 = 0.1;

/// How far minutes alone bring the rate back at backoff level 1: the full rate is the one that the site complained of, and
/// is tried again after a half-hour without complaint only. Each level above halves it. Our choice.
const CEILING: f64 = 0.9;

/// Steps of the rate are taken by minutes: the limits of sites are mostly counted in them.
const MINUTE: Duration = Duration::from_secs(60);

/// A half-hour with a success, and without a new complaint, lowers the backoff level by one: a site that complains once in
/// each half-hour stays below its limit. Our choice.
const HALF_HOUR: Duration = Duration::from_secs(1_800);

/// The successes since the last pause that slowed the host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    /// The end of that pause: successes count from here.
    pub(super) from: Option<Instant>,
    /// The minute and the half-hour since then that have seen a success and are not over yet.
    pub(super) good_minute: Option<u64>,
    pub(super) good_half_hour: Option<u64>,
}

impl Recovery {
    /// Only what was asked after the pause shows that the site is well again.
    pub(super) fn succeeded(&mut self, now: Instant, started: Instant) {
        if let Some(from) = self.from
            && started >= from
        {
            self.good_minute = Some(nth(MINUTE, from, now));
            self.good_half_hour = Some(nth(HALF_HOUR, from, now));
        }
    }

    /// The site has complained again: the minute and the half-hour are not good any more.
    pub(super) fn interrupt(&mut self) {
        self.good_minute = None;
        self.good_half_hour = None;
    }

    /// Whether a good minute is over. It counts once.
    pub(super) fn take_minute(&mut self, now: Instant) -> bool {
        take(&mut self.good_minute, MINUTE, self.from, now)
    }

    /// Whether a good half-hour is over. It counts once.
    pub(super) fn take_half_hour(&mut self, now: Instant) -> bool {
        take(&mut self.good_half_hour, HALF_HOUR, self.from, now)
    }
}

/// The number of the span since `from` in which `now` lies.
fn nth(span: Duration, from: Instant, now: Instant) -> u64 {
    now.saturating_duration_since(from).as_secs() / span.as_secs()
}

fn take(good: &mut Option<u64>, span: Duration, from: Option<Instant>, now: Instant) -> bool {
    let Some(from) = from else {
        return false;
    };
    good.take_if(|number| *number < nth(span, from, now))
        .is_some()
}

/// How far minutes alone bring the rate back at this backoff level.
pub(super) fn ceiling(backoff_level: u32) -> f64 {
    CEILING * 0.5_f64.powi(backoff_level.clamp(1, 64) as i32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_counts_once_when_it_is_over_and_saw_a_success_asked_after_the_pause() {
        let end = Instant::now();
        let at = |seconds| end + Duration::from_secs(seconds);
        let mut recovery = Recovery {
            from: Some(at(10)),
            ..Recovery::default()
        };
        recovery.succeeded(at(20), at(9));
        assert!(!recovery.take_minute(at(200)), "asked before the pause");
        recovery.succeeded(at(20), at(10));
        assert!(!recovery.take_minute(at(69)), "not over");
        assert!(recovery.take_minute(at(70)));
        assert!(!recovery.take_minute(at(500)), "once");
        assert!(recovery.take_half_hour(at(1_810)));
        recovery.succeeded(at(2_000), at(2_000));
        recovery.interrupt();
        assert!(!recovery.take_minute(at(9_000)) && !recovery.take_half_hour(at(9_000)));
    }
}
