//! One value, or several lines of it, as each of the fields that have a syntax of their own.

#![no_main]

use std::time::{Duration, SystemTime};

use etiquette_core::RetryAfter;
use etiquette_core::decide::accept::judge;
use etiquette_core::decide::cache_policy::{RequestDirectives, ResponseDirectives, requested_range};
use etiquette_core::decide::host::{HostPolicy, HostResponse};
use etiquette_core::decide::preferences::{Directives, Tdm, content_signal, content_usage};
use etiquette_core::field::date;
use http::{HeaderMap, HeaderValue, StatusCode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let lines = || bytes.split(|&byte| byte == b'\n').take(16);
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_076_000);
    let present = 1_796_076_000;
    let _ = RetryAfter::parse(lines(), present).wait();
    for line in lines() {
        let one = date::parse(line, present);
        assert_eq!(one, date::parse(line, present));
        let _ = date::parse_strict(line, wall);
    }
    // Said twice is said once.
    let usage = content_usage::from_header(lines());
    assert_eq!(usage, usage.and(usage));
    let signal = content_signal::from_header(lines());
    assert_eq!(signal, signal.and(signal));
    let rules = Directives::from_header(lines(), "ExampleBot");
    assert_eq!(rules.is_empty(), rules.iter().next().is_none());
    let mut headers = HeaderMap::new();
    for line in lines() {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            let _ = judge(&HeaderValue::from_static("text/html, */*;q=0.1"), Some(&value));
            for name in [
                "age",
                "date",
                "ratelimit",
                "retry-after",
                "cache-control",
                "range",
                "tdm-reservation",
                "tdm-policy",
                "vary",
            ] {
                headers.append(name, value.clone());
            }
        }
    }
    let _ = RetryAfter::of(&headers, wall);
    let _ = Tdm::from_headers(&headers);
    let _ = (ResponseDirectives::of(&headers), RequestDirectives::of(&headers), requested_range(&headers));
    let read = HostResponse::read(&HostPolicy::new(), StatusCode::OK, &headers, wall);
    assert_ne!(read.wait, Some(Duration::ZERO));
});
