//! Preconditions of a request, evaluated against a stored response (RFC 9110, 13; RFC 9111, 4.3.2).

use std::time::{Duration, SystemTime};

use http::header::{
    DATE, HeaderMap, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED, RANGE,
};

use super::validators::{date, etag, if_none_match, strongly_equal, weakly_equal};

/// The outcome of a caller's `If-None-Match` or `If-Modified-Since` against a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precondition {
    /// There is none, or the caller does not have this response: it gets all of it.
    Send,
    /// The caller has it already: 304.
    NotModified,
}

/// Evaluates the caller's conditions against a stored response, which has a 2xx status.
///
/// `If-None-Match` goes before `If-Modified-Since`, which is compared with Last-Modified or, where there is none, with
/// Date (RFC 9111, 4.3.2).
#[must_use]
pub fn precondition(request: &HeaderMap, response: &HeaderMap, now: SystemTime) -> Precondition {
    let not_modified = if request.contains_key(IF_NONE_MATCH) {
        if_none_match_holds(request, response)
    } else {
        let modified = match response.contains_key(LAST_MODIFIED) {
            true => LAST_MODIFIED,
            false => DATE,
        };
        let since = date(request, IF_MODIFIED_SINCE, now);
        since.is_some_and(|since| date(response, modified, now).is_some_and(|date| date <= since))
    };
    if not_modified {
        Precondition::NotModified
    } else {
        Precondition::Send
    }
}

/// Whether `If-None-Match` names the tag of `response`, or any.
pub(super) fn if_none_match_holds(request: &HeaderMap, response: &HeaderMap) -> bool {
    let tag = etag(response);
    if_none_match(request)
        .any(|member| member == b"*" || tag.is_some_and(|tag| weakly_equal(member, tag.as_bytes())))
}

/// Whether the request has conditions that only an origin can evaluate (RFC 9111, 4.3.2).
#[must_use]
pub fn is_for_the_origin(request: &HeaderMap) -> bool {
    request.contains_key(IF_MATCH) || request.contains_key(IF_UNMODIFIED_SINCE)
}

/// Whether the request says what its caller already has.
#[must_use]
pub fn is_conditional(request: &HeaderMap) -> bool {
    request.contains_key(IF_NONE_MATCH) || request.contains_key(IF_MODIFIED_SINCE)
}

/// Whether the request has a condition or a range of its own, beside which a cache adds none.
#[must_use]
pub fn has_condition_or_range(request: &HeaderMap) -> bool {
    is_conditional(request)
        || is_for_the_origin(request)
        || request.contains_key(RANGE)
        || request.contains_key(IF_RANGE)
}

/// Whether `If-Range` lets a range of `response` be sent: absent, or the same strong validator (RFC 9110, 13.1.5).
#[must_use]
pub fn range_holds(request: &HeaderMap, response: &HeaderMap, now: SystemTime) -> bool {
    let Some(condition) = request.get(IF_RANGE) else {
        return true;
    };
    let condition = condition.as_bytes();
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        return etag(response).is_some_and(|tag| strongly_equal(condition, tag.as_bytes()));
    }
    let exact = response
        .get(LAST_MODIFIED)
        .is_some_and(|modified| modified.as_bytes() == condition);
    exact && date_is_strong(response, now)
}

/// Whether Last-Modified is strong: the origin's clock was past that second when it answered (RFC 9110, 8.8.2.2).
fn date_is_strong(response: &HeaderMap, now: SystemTime) -> bool {
    match (
        date(response, LAST_MODIFIED, now),
        date(response, DATE, now),
    ) {
        (Some(modified), Some(date)) => modified + Duration::from_secs(1) <= date,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::cache_policy::samples::map;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn tags_go_before_dates() {
        let stored = map(&[
            ("etag", "\"a,b\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        for (request, expected) in [
            (
                ("if-none-match", "\"x\", W/\"a,b\""),
                Precondition::NotModified,
            ),
            (("if-none-match", "*"), Precondition::NotModified),
            (("if-none-match", "\"a\""), Precondition::Send),
            (
                ("if-modified-since", "Sunday, 06-Nov-94 08:49:37 GMT"),
                Precondition::NotModified,
            ),
            (
                ("if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT"),
                Precondition::Send,
            ),
            (("if-modified-since", "yesterday"), Precondition::Send),
        ] {
            assert_eq!(
                precondition(&map(&[request]), &stored, NOW),
                expected,
                "{request:?}"
            );
        }
        let both = map(&[
            ("if-none-match", "\"old\""),
            ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        assert_eq!(precondition(&both, &stored, NOW), Precondition::Send);
        let undated = map(&[("date", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        let since = map(&[("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        assert_eq!(
            precondition(&since, &undated, NOW),
            Precondition::NotModified
        );
    }

    #[test]
    fn ranges_need_strong_validators() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let stored = map(&[
            ("etag", "\"v\""),
            ("last-modified", date),
            ("date", "Sun, 06 Nov 1994 08:49:38 GMT"),
        ]);
        assert!(range_holds(&map(&[("if-range", "\"v\"")]), &stored, NOW));
        assert!(!range_holds(&map(&[("if-range", "W/\"v\"")]), &stored, NOW));
        assert!(range_holds(&map(&[("if-range", date)]), &stored, NOW));
        let at_once = map(&[("last-modified", date), ("date", date)]);
        assert!(!range_holds(&map(&[("if-range", date)]), &at_once, NOW));
    }
}
