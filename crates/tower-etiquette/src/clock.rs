//! The clock that the layers use unless told otherwise.

use std::time::SystemTime;

use etiquette_core::{Clock, Now};

/// tokio's monotonic clock and the system's wall clock.
///
/// On paused tokio time the monotonic clock stands still with it; the wall clock does not.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioClock;

impl Clock for TokioClock {
    // The one place where the layers read the system's wall clock.
    #[expect(clippy::disallowed_methods)]
    fn now(&self) -> Now {
        Now {
            monotonic: tokio::time::Instant::now().into_std(),
            wall: SystemTime::now(),
        }
    }

    fn monotonic(&self) -> std::time::Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// A clock for tests on paused time: the wall clock follows tokio's monotonic one from a start given by the test, and
/// can be made to jump.
#[cfg(feature = "test-util")]
#[derive(Debug)]
pub struct PausedClock {
    start: tokio::time::Instant,
    wall: std::sync::Mutex<SystemTime>,
}

#[cfg(feature = "test-util")]
impl PausedClock {
    /// A clock whose wall time is `wall` now. Make it inside the runtime whose time is paused.
    #[must_use]
    pub fn new(wall: SystemTime) -> Self {
        Self {
            start: tokio::time::Instant::now(),
            wall: std::sync::Mutex::new(wall),
        }
    }

    /// Lets the wall clock jump by `seconds`, back if negative. The monotonic clock is not touched.
    pub fn jump(&self, seconds: i64) {
        let mut wall = crate::lock::lock(&self.wall);
        let by = std::time::Duration::from_secs(seconds.unsigned_abs());
        *wall = if seconds < 0 { *wall - by } else { *wall + by };
    }
}

#[cfg(feature = "test-util")]
impl Clock for PausedClock {
    fn now(&self) -> Now {
        let monotonic = tokio::time::Instant::now();
        let wall = *crate::lock::lock(&self.wall);
        Now {
            monotonic: monotonic.into_std(),
            wall: wall + (monotonic - self.start),
        }
    }
}
