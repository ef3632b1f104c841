//! Answers from the store: whole, in part, or "you have it already".

use std::time::Duration;

use bytes::Bytes;
use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{
    CacheStatus, ContentRange, Extent, Precondition, Qualifiable, RangeOutcome, RequestedRange,
    StoredResponse, precondition, range_holds, requested_range, unsatisfied_range,
};
use etiquette_core::store::Variant;
use http::header::{
    AGE, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE, DATE, ETAG, EXPIRES,
    HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, VARY,
};
use http::{Method, Response, StatusCode};

use super::body::Answer;
use super::pieces::StoredBody;
use crate::Facts;

/// The name under which this cache stands in `Cache-Status`.
pub(super) const NAME: &str = "tower-etiquette";

pub(super) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// What a 304 tells (RFC 9110, 15.4.5).
const OF_A_304: [HeaderName; 7] = [
    CACHE_CONTROL,
    CONTENT_LOCATION,
    DATE,
    ETAG,
    EXPIRES,
    LAST_MODIFIED,
    VARY,
];

/// What a stored response answers to a request, before its body is at hand.
pub(super) enum Shape {
    NotModified,
    /// Head only.
    Head,
    Whole,
    Range(u64, u64),
    Unsatisfiable,
}

impl Shape {
    /// The shape of the answer; `None` where the stored part does not hold what is asked for.
    pub(super) fn of(
        head: &StoredResponse,
        length: u64,
        method: &Method,
        request: &HeaderMap,
        now: &Now,
    ) -> Option<Self> {
        let success = head.status().is_success();
        if success && precondition(request, head.headers(), now.wall) == Precondition::NotModified {
            return Some(Self::NotModified);
        }
        if *method == Method::HEAD {
            return (head.extent() == Extent::Whole).then_some(Self::Head);
        }
        let whole = head.extent() == Extent::Whole;
        let range = match requested_range(request) {
            RequestedRange::Whole => None,
            range if whole && head.status() != StatusCode::OK => {
                let _ = range;
                None
            }
            range => range_holds(request, head.headers(), now.wall).then_some(range),
        };
        let Some(range) = range else {
            return whole.then_some(Self::Whole);
        };
        match range.of(head.extent(), length) {
            RangeOutcome::Satisfied(first, last) => Some(Self::Range(first, last)),
            RangeOutcome::Unsatisfiable if whole => Some(Self::Unsatisfiable),
            _ => None,
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        matches!(self, Self::Whole | Self::Range(..))
    }

    /// Where what it needs begins in the stored body, and how long that is.
    pub(super) fn within(&self, variant: &Variant) -> Option<(u64, u64)> {
        match *self {
            Self::Whole => Some((0, variant.length)),
            Self::Range(first, last) => {
                let start = match variant.head.extent() {
                    Extent::Part { first, .. } => first,
                    _ => 0,
                };
                Some((first - start, last - first + 1))
            }
            _ => None,
        }
    }
}

/// The answer of this shape. `body` is the stored one where the shape needs it.
pub(super) fn answer(
    variant: &Variant,
    shape: &Shape,
    body: StoredBody,
    status: CacheStatus,
    now: &Now,
    mut facts: Facts,
) -> Response<Answer> {
    let head = &*variant.head;
    let mut response = Response::new(Answer::Stored(Bytes::new()));
    *response.version_mut() = head.version();
    *response.status_mut() = head.status();
    if let Shape::NotModified = shape {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        for name in OF_A_304 {
            for value in head.headers().get_all(&name) {
                response.headers_mut().append(name.clone(), value.clone());
            }
        }
    } else {
        *response.headers_mut() = head.headers().clone();
    }
    if let CacheStatus::Hit { .. } | CacheStatus::StaleOnError { .. } = status
        && let Qualifiable::Qualified(names) = &head.directives().no_cache
    {
        // RFC 9111, 5.2.2.4: these may be used after a successful validation only.
        for name in names {
            response.headers_mut().remove(name);
        }
    }
    let headers = response.headers_mut();
    match *shape {
        Shape::NotModified => {}
        Shape::Head => {
            if !headers.contains_key(CONTENT_LENGTH) && head.status() == StatusCode::OK {
                headers.insert(CONTENT_LENGTH, variant.length.into());
            }
        }
        Shape::Whole => *response.body_mut() = body.into_answer(),
        Shape::Range(first, last) => {
            let (start, total) = match head.extent() {
                Extent::Part { first, total } => (first, total),
                _ => (0, Some(variant.length)),
            };
            headers.insert(CONTENT_RANGE, ContentRange::new(first, last, total).value());
            headers.insert(CONTENT_LENGTH, (last - first + 1).into());
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let from = usize::try_from(first - start).unwrap_or(usize::MAX);
            let length = usize::try_from(last - first + 1).unwrap_or(usize::MAX);
            *response.body_mut() = body.part(from, length).into_answer();
        }
        Shape::Unsatisfiable => {
            headers.insert(CONTENT_RANGE, unsatisfied_range(variant.length));
            headers.insert(CONTENT_LENGTH, 0.into());
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
        }
    }
    response.headers_mut().insert(AGE, age_value(head.age(now)));
    mark(&mut response, status);
    facts.cache_status = Some(status);
    response.extensions_mut().insert(facts);
    response
}

/// Adds our member to `Cache-Status`.
pub(super) fn mark<B>(response: &mut Response<B>, status: CacheStatus) {
    if let Some(member) = status.member(NAME) {
        response.headers_mut().append(CACHE_STATUS, member);
    }
}

fn age_value(age: Duration) -> HeaderValue {
    // RFC 9111, 1.2.2: what is too large for a recipient counts as 2^31.
    age.as_secs().min(1 << 31).into()
}
