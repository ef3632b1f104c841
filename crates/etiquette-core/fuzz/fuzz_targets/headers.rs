//! A request and a response, line by line, before the cache's decisions. A line that begins with `<` is the response's.

#![no_main]

use std::time::{Duration, Instant, SystemTime};

use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{
    CachePolicy, ContentRange, Extent, Heuristic, RequestDirectives, ResponseDirectives, ResponseTimes,
    StoredResponse, invalidates, make_conditional, precondition, range_holds, requested_range,
};
use etiquette_core::decide::host::{HostResponse, HostPolicy};
use etiquette_core::decide::preferences::Preferences;
use etiquette_core::decide::robots_txt::{RobotsPolicy, RobotsResponse};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use libfuzzer_sys::fuzz_target;

const CEILING: Duration = Duration::from_secs(86_400);

fn read(bytes: &[u8]) -> Option<(StatusCode, HeaderMap, HeaderMap)> {
    let (status, lines) = bytes.split_first_chunk::<2>()?;
    let status = 100 + u16::from_be_bytes(*status) % 500;
    let (mut request, mut response) = (HeaderMap::new(), HeaderMap::new());
    for line in lines.split(|&byte| byte == b'\n').take(64) {
        let (map, line) = match line.strip_prefix(b"<") {
            Some(line) => (&mut response, line),
            None => (&mut request, line),
        };
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(line[..colon].trim_ascii());
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            map.append(name, value);
        }
    }
    Some((StatusCode::from_u16(status).ok()?, request, response))
}

fuzz_target!(|bytes: &[u8]| {
    let Some((status, request, response)) = read(bytes) else {
        return;
    };
    let now = Now {
        monotonic: Instant::now(),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_076_000),
    };
    let times = ResponseTimes {
        request_time: now,
        response_time: now,
        queued: Duration::ZERO,
    };
    let uri: Uri = "http://site.example/a/b?c".parse().expect("a URI");
    let answer = HostResponse::read(&HostPolicy::new(), status, &response, now.wall);
    // A wait of zero says nothing.
    assert_ne!(answer.wait, Some(Duration::ZERO));
    let _ = RobotsResponse::read(status, &response, &RobotsPolicy::default());
    let _ = Preferences::read(&response, None, "ExampleBot");
    let _ = invalidates(&Method::POST, &uri, status, &response);
    let _ = (requested_range(&request), ContentRange::of(&response));
    let wishes = RequestDirectives::of(&request);
    for shared in [false, true] {
        let mut policy = CachePolicy::default();
        policy.shared = shared;
        policy.ceiling = Some(CEILING);
        policy.heuristic = Some(Heuristic::tenth());
        let Some(selecting) = policy.may_store(&Method::GET, &uri, &request, status, &response) else {
            continue;
        };
        let says = ResponseDirectives::of(&response);
        assert!(!says.no_store || says.must_understand);
        assert!(selecting.matches(&request));
        let stored = StoredResponse::new(
            status,
            Version::HTTP_11,
            &response,
            selecting.clone(),
            Extent::Whole,
            &times,
            shared,
        );
        assert!(policy.freshness_lifetime(&stored) <= CEILING);
        let back = StoredResponse::decode(&stored.encode()).expect("what was written is read");
        assert_eq!(back.headers(), stored.headers());
        assert_eq!(back.selecting(), stored.selecting());
        assert_eq!(back.explicit_lifetime(shared), stored.explicit_lifetime(shared));
        let _ = policy.reuse(&wishes, &stored, &now);
        let _ = policy.shareable(&wishes, &stored, &now);
        let _ = precondition(&request, stored.headers(), now.wall);
        let _ = range_holds(&request, stored.headers(), now.wall);
        let mut asked = request.clone();
        make_conditional(&mut asked, stored.headers());
        let _ = stored.freshen(&response, selecting, &times, shared, false);
    }
});
