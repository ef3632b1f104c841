//! What stores keep on a disk: accepted bytes are written again and read again as the same, and can be used.

#![no_main]

use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{CachePolicy, RequestDirectives, StoredResponse};
use etiquette_core::decide::host::{StartOptions, HostPolicy, HostRecord, HostState};
use etiquette_core::decide::robots_txt::StoredRobots;
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let now = Now {
        monotonic: Instant::now(),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_076_000),
    };
    if let Some(head) = StoredResponse::decode(bytes) {
        let again = StoredResponse::decode(&head.encode()).expect("what was written is read");
        assert_eq!(again.headers(), head.headers());
        assert_eq!(again.initial_age(), head.initial_age());
        assert_eq!(again.extent(), head.extent());
        let wishes = RequestDirectives::of(&HeaderMap::new());
        let _ = CachePolicy::default().reuse(&wishes, &head, &now);
        let _ = (head.age(&now), head.lifetime(true));
    }
    if let Some(record) = HostRecord::decode(bytes) {
        assert_eq!(HostRecord::decode(&record.encode()).as_ref(), Some(&record));
        let _ = (record.over_at(), record.paused_until());
        let mut state = HostState::new();
        state.recall(&record, now);
        let policy = HostPolicy::new();
        assert!(state.due(&policy, now.monotonic, StartOptions::pace()) >= now.monotonic);
        let _ = state.to_record(now);
    }
    let robots = StoredRobots::decode(bytes, Some(Bytes::copy_from_slice(bytes)));
    assert_eq!(StoredRobots::decode(&robots.encode(), Some(Bytes::copy_from_slice(bytes))), robots);
});
