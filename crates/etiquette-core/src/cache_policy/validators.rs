//! Validators and preconditions (RFC 9110, 8.8 and 13; RFC 9111, 4.3).

use std::time::{Duration, SystemTime};

use http::header::{
    DATE, ETAG, HeaderMap, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED,
};

use super::date::parse_http_date;
use super::directives::members;

/// The outcome of a caller's `If-None-Match` or `If-Modified-Since` against a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Precondition {
    /// There is none, or the caller does not have this response: it gets all of it.
    Send,
    /// The caller has it already: 304.
    NotModified,
}

/// An entity tag without its weakness flag. Tags that lack quotes are compared as they are.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn is_weak(tag: &[u8]) -> bool {
    tag.starts_with(b"W/")
}

/// The comparison that ignores weakness (RFC 9110, 8.8.3.2).
pub(super) fn weakly_equal(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b)
}

/// The comparison that no weak tag passes.
pub(super) fn strongly_equal(a: &[u8], b: &[u8]) -> bool {
    !is_weak(a) && !is_weak(b) && a == b
}

pub(super) fn etag(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(ETAG).filter(|tag| !tag.is_empty())
}

fn date(headers: &HeaderMap, name: http::HeaderName, now: SystemTime) -> Option<SystemTime> {
    parse_http_date(headers.get(name)?.as_bytes(), now)
}

/// Judges the caller's conditions against a stored response, which has a 2xx status.
///
/// `If-None-Match` goes before `If-Modified-Since`, which is compared with Last-Modified or, where there is none, with
/// Date (RFC 9111, 4.3.2).
#[must_use]
pub fn precondition(request: &HeaderMap, response: &HeaderMap, now: SystemTime) -> Precondition {
    let not_modified = if request.contains_key(IF_NONE_MATCH) {
        names_tag(request, response)
    } else {
        let since = request
            .get(IF_MODIFIED_SINCE)
            .and_then(|value| parse_http_date(value.as_bytes(), now));
        let changed = || {
            date(response, LAST_MODIFIED, now).or_else(|| {
                match response.contains_key(LAST_MODIFIED) {
                    true => None,
                    false => date(response, DATE, now),
                }
            })
        };
        since.is_some_and(|since| changed().is_some_and(|changed| changed <= since))
    };
    if not_modified {
        Precondition::NotModified
    } else {
        Precondition::Send
    }
}

/// Whether `If-None-Match` names the tag of `response`, or any.
fn names_tag(request: &HeaderMap, response: &HeaderMap) -> bool {
    let tag = etag(response);
    request.get_all(IF_NONE_MATCH).iter().any(|line| {
        members(line.as_bytes())
            .map(<[u8]>::trim_ascii)
            .any(|member| {
                member == b"*" || tag.is_some_and(|tag| weakly_equal(member, tag.as_bytes()))
            })
    })
}

/// Whether the request has conditions that only an origin can judge (RFC 9111, 4.3.2).
#[must_use]
pub fn is_for_the_origin(request: &HeaderMap) -> bool {
    request.contains_key(IF_MATCH) || request.contains_key(IF_UNMODIFIED_SINCE)
}

/// Whether the request says what its caller already has.
#[must_use]
pub fn is_conditional(request: &HeaderMap) -> bool {
    request.contains_key(IF_NONE_MATCH) || request.contains_key(IF_MODIFIED_SINCE)
}

/// Whether a response can be asked for conditionally.
#[must_use]
pub fn has_validator(response: &HeaderMap) -> bool {
    etag(response).is_some() || response.contains_key(LAST_MODIFIED)
}

/// Makes `request` a question whether the stored `response` is still right: with its tag and its date, beside the tags
/// that the caller has. Returns whether it is conditional on the stored response now.
pub fn ask_conditionally(request: &mut HeaderMap, response: &HeaderMap) -> bool {
    let modified = response.get(LAST_MODIFIED);
    let Some(tag) = etag(response) else {
        let Some(modified) = modified else {
            return false;
        };
        // The caller's tags would go before the date and the stored response has none to set beside them.
        request.remove(IF_NONE_MATCH);
        request.insert(IF_MODIFIED_SINCE, modified.clone());
        return true;
    };
    if !names_tag(request, response) {
        request.append(IF_NONE_MATCH, tag.clone());
    }
    match modified {
        Some(modified) => request.insert(IF_MODIFIED_SINCE, modified.clone()),
        None => request.remove(IF_MODIFIED_SINCE),
    };
    true
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

/// How the validators of two answers for one URL compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    Same,
    Different,
    /// The new answer has none that the stored one has too.
    Unknown,
}

/// Compares the validators that a new answer shows with the stored ones; a tag decides before a date.
pub(super) fn compare(stored: &HeaderMap, new: &HeaderMap, now: SystemTime) -> Compared {
    match (etag(stored), etag(new)) {
        (Some(old), Some(new)) if weakly_equal(old.as_bytes(), new.as_bytes()) => {
            return Compared::Same;
        }
        (_, Some(_)) => return Compared::Different,
        (_, None) => {}
    }
    let (Some(old), Some(new)) = (stored.get(LAST_MODIFIED), new.get(LAST_MODIFIED)) else {
        return Compared::Unknown;
    };
    let same = old == new
        || match (
            parse_http_date(old.as_bytes(), now),
            parse_http_date(new.as_bytes(), now),
        ) {
            (Some(old), Some(new)) => old == new,
            _ => false,
        };
    if same {
        Compared::Same
    } else {
        Compared::Different
    }
}

/// Whether two parts of one resource belong together: one strong tag (RFC 9111, 3.4).
#[must_use]
pub fn same_strong_tag(a: &HeaderMap, b: &HeaderMap) -> bool {
    match (etag(a), etag(b)) {
        (Some(a), Some(b)) => strongly_equal(a.as_bytes(), b.as_bytes()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(n, v)| (http::HeaderName::from_static(n), v.parse().unwrap()))
            .collect()
    }

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
    fn a_question_keeps_the_callers_tags() {
        let stored = map(&[("etag", "\"v1\"")]);
        let mut request = map(&[
            ("if-none-match", "\"v2\""),
            ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        assert!(ask_conditionally(&mut request, &stored));
        let tags: Vec<_> = request.get_all(IF_NONE_MATCH).iter().collect();
        assert_eq!(tags, ["\"v2\"", "\"v1\""]);
        assert!(!request.contains_key(IF_MODIFIED_SINCE));
        assert!(!ask_conditionally(&mut HeaderMap::new(), &map(&[])));
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
