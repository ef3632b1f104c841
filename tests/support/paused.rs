//! Time that stands still until everybody waits, for tests that assert exact instants.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tower_etiquette::PausedClock;

/// Runs `work` on a runtime of its own whose time is paused.
///
/// # Panics
/// When the runtime cannot be built.
pub fn run<F: Future>(work: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be built")
        .block_on(work)
}

/// A clock that follows the runtime's time, from `seconds` after 1970 on.
#[must_use]
pub fn clock_at(seconds: u64) -> Arc<PausedClock> {
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Arc::new(PausedClock::new(wall))
}

/// Fails the test when `work` needs longer than a day: it hangs.
///
/// # Panics
/// When it does.
pub async fn in_time<F: Future>(what: &str, work: F) -> F::Output {
    let day = Duration::from_secs(86_400);
    tokio::time::timeout(day, work)
        .await
        .unwrap_or_else(|_| panic!("{what}: it hangs"))
}
