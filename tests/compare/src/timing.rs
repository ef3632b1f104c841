//! Seconds for one call.

use std::time::{Duration, Instant};

/// The best of fifteen rounds, each of as many calls as fit into 10 ms, at least one. What else runs on the machine only
/// ever makes a round longer, so the shortest says most.
pub(crate) fn seconds(mut call: impl FnMut()) -> f64 {
    let started = Instant::now();
    call();
    let once = started.elapsed().max(Duration::from_nanos(1));
    let round = Duration::from_millis(10);
    let calls = (round.as_nanos() / once.as_nanos()).clamp(1, 10_000_000) as u32;
    let rounds = if once > Duration::from_millis(300) {
        3
    } else {
        15
    };
    (0..rounds)
        .map(|_| {
            let started = Instant::now();
            for _ in 0..calls {
                call();
            }
            started.elapsed().as_secs_f64() / f64::from(calls)
        })
        .fold(f64::INFINITY, f64::min)
}
