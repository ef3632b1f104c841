//! Responses from the store: whole, in part, or "not modified".

use std::time::Duration;

use bytes::Bytes;
use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{
    CacheStatus, ContentRange, Extent, Precondition, Qualifiable, RangeOutcome, RequestedRange,
    precondition, range_holds, requested_range, unsatisfied_range,
};
use etiquette_core::store::Variant;
use http::header::{
    AGE, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE, DATE, ETAG, EXPIRES,
    HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED, VARY,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::super::body::ResponseBody;
use crate::Facts;

/// The name under which this cache stands in `Cache-Status`.
const NAME: &str = "tower-etiquette";

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// How a stored response satisfies a request.
pub(crate) enum Reply {
    NotModified,
    Head,
    Full,
    Range(u64, u64),
    RangeNotSatisfiable,
}

impl Reply {
    /// How `variant` satisfies the request; `None` where what is stored does not hold what is requested.
    pub(crate) fn of(variant: &Variant, parts: &Parts, now: &Now) -> Option<Self> {
        let (head, request) = (&variant.head, &parts.headers);
        let not_modified =
            || precondition(request, head.headers(), now.wall) == Precondition::NotModified;
        if head.status().is_success() && not_modified() {
            return Some(Self::NotModified);
        }
        let whole = head.extent() == Extent::Whole;
        if parts.method == Method::HEAD {
            return whole.then_some(Self::Head);
        }
        let range = requested_range(request);
        let ignored = range == RequestedRange::Whole
            || (whole && head.status() != StatusCode::OK)
            || !range_holds(request, head.headers(), now.wall);
        if ignored {
            return whole.then_some(Self::Full);
        }
        match range.of(head.extent(), variant.length) {
            RangeOutcome::Satisfied(first, last) => Some(Self::Range(first, last)),
            RangeOutcome::Unsatisfiable if whole => Some(Self::RangeNotSatisfiable),
            _ => None,
        }
    }

    /// The bytes of the stored body that it needs: where they begin, and how many they are.
    pub(crate) fn bytes(&self, variant: &Variant) -> Option<(u64, u64)> {
        match *self {
            Self::Full => Some((0, variant.length)),
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

    /// Its body, of the stored `body`.
    pub(crate) fn cut(&self, variant: &Variant, body: &Bytes) -> ResponseBody {
        let Some((from, length)) = self.bytes(variant) else {
            return ResponseBody::empty();
        };
        if let Self::Full = self {
            return ResponseBody::full(body.clone());
        }
        let place = |at: u64| usize::try_from(at).map_or(body.len(), |at| at.min(body.len()));
        ResponseBody::full(body.slice(place(from)..place(from.saturating_add(length))))
    }

    /// Makes the stored fields those of the reply. Gives its status.
    fn adapt(&self, variant: &Variant, headers: &mut HeaderMap) -> StatusCode {
        let (range, length, status) = match *self {
            Self::NotModified => return StatusCode::NOT_MODIFIED,
            Self::Range(first, last) => {
                let total = match variant.head.extent() {
                    Extent::Part { total, .. } => total,
                    _ => Some(variant.length),
                };
                let range = ContentRange::new(first, last, total);
                (range.value(), range.length(), StatusCode::PARTIAL_CONTENT)
            }
            Self::RangeNotSatisfiable => {
                let range = unsatisfied_range(variant.length);
                (range, 0, StatusCode::RANGE_NOT_SATISFIABLE)
            }
            _ => {
                let status = variant.head.status();
                if matches!(self, Self::Head) && status == StatusCode::OK {
                    let length = headers.entry(CONTENT_LENGTH);
                    length.or_insert_with(|| variant.length.into());
                }
                return status;
            }
        };
        headers.insert(CONTENT_RANGE, range);
        headers.insert(CONTENT_LENGTH, length.into());
        status
    }
}

/// The fields of a 304 (RFC 9110, 15.4.5).
fn not_modified_fields(stored: &HeaderMap) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for name in [
        CACHE_CONTROL,
        CONTENT_LOCATION,
        DATE,
        ETAG,
        EXPIRES,
        LAST_MODIFIED,
        VARY,
    ] {
        for value in stored.get_all(&name) {
            fields.append(name.clone(), value.clone());
        }
    }
    fields
}

/// The stored response as `reply`, which has this body.
pub(crate) fn respond(
    variant: &Variant,
    reply: &Reply,
    body: ResponseBody,
    status: CacheStatus,
    now: &Now,
) -> Response<ResponseBody> {
    let head = &*variant.head;
    let mut headers = match reply {
        Reply::NotModified => not_modified_fields(head.headers()),
        _ => head.headers().clone(),
    };
    if let CacheStatus::Hit { .. } | CacheStatus::StaleOnError { .. } = status
        && let Qualifiable::Qualified(names) = &head.directives().no_cache
    {
        // RFC 9111, 5.2.2.4: these may be used after a successful validation only.
        for name in names {
            headers.remove(name);
        }
    }
    let mut response = Response::new(body);
    *response.version_mut() = head.version();
    *response.status_mut() = reply.adapt(variant, &mut headers);
    headers.insert(AGE, age_value(head.age(now)));
    add_cache_status(&mut headers, status);
    *response.headers_mut() = headers;
    response.extensions_mut().insert(Facts {
        cache_status: Some(status),
        ..Facts::default()
    });
    response
}

/// Says of a response that comes from elsewhere what the cache did.
pub(crate) fn mark(
    mut response: Response<ResponseBody>,
    status: CacheStatus,
) -> Response<ResponseBody> {
    add_cache_status(response.headers_mut(), status);
    Facts::edit(response.extensions_mut(), |facts| {
        facts.cache_status = Some(status);
    });
    response
}

/// Adds our member to `Cache-Status` (RFC 9211).
fn add_cache_status(headers: &mut HeaderMap, status: CacheStatus) {
    if let Some(member) = status.member(NAME) {
        headers.append(CACHE_STATUS, member);
    }
}

fn age_value(age: Duration) -> HeaderValue {
    // RFC 9111, 1.2.2: what is too large for a recipient counts as 2^31.
    age.as_secs().min(1 << 31).into()
}
