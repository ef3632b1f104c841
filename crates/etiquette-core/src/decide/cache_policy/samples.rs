//! What the tests of this module are made of.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use http::header::{HeaderMap, HeaderName};
use http::{StatusCode, Version};

use super::range::Extent;
use super::stored::{ResponseTimes, StoredResponse};
use super::vary::Selecting;
use crate::Now;

pub(super) fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
    lines
        .iter()
        .map(|(n, v)| (HeaderName::from_static(n), v.parse().unwrap()))
        .collect()
}

pub(super) fn at(seconds: u64) -> Now {
    static START: OnceLock<Instant> = OnceLock::new();
    Now {
        monotonic: *START.get_or_init(Instant::now) + Duration::from_secs(seconds),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 + seconds),
    }
}

pub(super) fn times(asked: u64, received: u64) -> ResponseTimes {
    ResponseTimes {
        request_time: at(asked),
        response_time: at(received),
        queued: Duration::ZERO,
    }
}

pub(super) fn stored(lines: &[(&'static str, &str)]) -> StoredResponse {
    StoredResponse::new(
        StatusCode::OK,
        Version::HTTP_11,
        &map(lines),
        Selecting::default(),
        Extent::Whole,
        &times(0, 0),
        true,
    )
}
