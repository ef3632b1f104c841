//! The present, as two clocks read at one moment.
//!
//! HTTP dates are compared with the wall clock; waits are measured on the monotonic one, so that a jump of the wall
//! clock neither shortens nor lengthens a pause. A decision takes one [`Now`] and never reads a clock itself.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

/// One moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock: for waits, delays and ages.
    pub monotonic: Instant,
    /// The wall clock: for HTTP dates and for instants that leave the process.
    pub wall: SystemTime,
}

/// The longest span that is added to a clock: 100 years. Sums beyond it saturate instead of overflowing.
pub(crate) const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

impl Now {
    /// The moment `span` later on the monotonic clock; spans over 100 years count as 100 years.
    #[must_use]
    pub fn after(&self, span: Duration) -> Instant {
        later(self.monotonic, span)
    }

    /// The wall time at the monotonic `instant`, as far as the wall clock can be trusted now.
    #[must_use]
    pub fn wall_at(&self, instant: Instant) -> SystemTime {
        match instant.checked_duration_since(self.monotonic) {
            Some(ahead) => self.wall + ahead.min(LONGEST),
            None => self.wall - self.monotonic.duration_since(instant).min(LONGEST),
        }
    }
}

/// The instant `span` after `at`; spans over 100 years count as 100 years.
pub(crate) fn later(at: Instant, span: Duration) -> Instant {
    at + span.min(LONGEST)
}

/// Where the layers read the present.
///
/// The layers use tokio's clock by default, so that tests on paused time work; implement it to turn the wall clock by
/// hand.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Both clocks, read at the same moment. The monotonic one never goes back.
    fn now(&self) -> Now;

    /// The monotonic clock alone, where that is cheaper to read.
    fn monotonic(&self) -> Instant {
        self.now().monotonic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_saturate_and_wall_follows_the_monotonic_clock() {
        let now = Now {
            monotonic: Instant::now(),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000),
        };
        assert_eq!(now.after(Duration::MAX), now.monotonic + LONGEST);
        assert_eq!(
            now.wall_at(now.monotonic + Duration::from_secs(5)),
            now.wall + Duration::from_secs(5)
        );
        let later = Now {
            monotonic: now.monotonic + Duration::from_secs(9),
            wall: now.wall,
        };
        assert_eq!(
            later.wall_at(now.monotonic),
            now.wall - Duration::from_secs(9)
        );
    }
}
