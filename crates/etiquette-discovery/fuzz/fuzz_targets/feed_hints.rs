//! What feeds say about their pace: nothing panics, and the next time is never before the one that was asked about.
#![no_main]

use std::time::{Duration, SystemTime};

use etiquette_discovery::feed::Hints;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let hints = Hints::of(body);
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_534_400);
    let next = hints.not_skipped(at);
    assert!(next >= at && next <= at + Duration::from_secs(7 * 24 * 3600));
});
