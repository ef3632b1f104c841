//! Validators and preconditions (RFC 9110, 8.8 and 13; RFC 9111, 4.3).

use std::time::{Duration, SystemTime};

use http::header::{
    DATE, ETAG, HeaderMap, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};

use super::directives::members;
use crate::field::date::parse_strict;

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

/// Whether a tag names one sequence of bytes: it has quotes and no weakness flag.
pub(super) fn is_strong(tag: &HeaderValue) -> bool {
    let tag = tag.as_bytes();
    tag.len() >= 2 && tag.starts_with(b"\"") && tag.ends_with(b"\"")
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
    parse_strict(headers.get(name)?.as_bytes(), now)
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
            .and_then(|value| parse_strict(value.as_bytes(), now));
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
    tags(request)
        .any(|member| member == b"*" || tag.is_some_and(|tag| weakly_equal(member, tag.as_bytes())))
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
            parse_strict(old.as_bytes(), now),
            parse_strict(new.as_bytes(), now),
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

/// The stored variants that a request asks about at once, at most.
const MOST_TAGS: usize = 16;

/// Makes `request`, whose fields select none of the stored variants, a question which of them the origin would select
/// for it (RFC 9111, 4.1 and 4.3.1). Returns whether it is one now: there is a tag to ask about, and the caller has
/// neither conditions nor a range of its own.
pub fn ask_which<'a>(
    request: &mut HeaderMap,
    stored: impl IntoIterator<Item = &'a HeaderMap>,
) -> bool {
    let busy = is_conditional(request)
        || is_for_the_origin(request)
        || request.contains_key(RANGE)
        || request.contains_key(IF_RANGE);
    if busy {
        return false;
    }
    let mut asked: Vec<&HeaderValue> = Vec::new();
    for tag in stored.into_iter().filter_map(etag) {
        if asked.len() < MOST_TAGS && !asked.contains(&tag) {
            asked.push(tag);
        }
    }
    for tag in &asked {
        request.append(IF_NONE_MATCH, HeaderValue::clone(tag));
    }
    !asked.is_empty()
}

/// The place of the stored variant that a 304 to [`ask_which`] names. One that names none means the only one that was
/// asked about.
pub fn which<'a>(
    answer: &HeaderMap,
    stored: impl IntoIterator<Item = &'a HeaderMap>,
) -> Option<usize> {
    let mut stored = stored.into_iter();
    match etag(answer) {
        Some(named) => stored.position(|variant| {
            etag(variant).is_some_and(|tag| weakly_equal(tag.as_bytes(), named.as_bytes()))
        }),
        None => {
            let tags: Vec<Option<&HeaderValue>> = stored.map(etag).collect();
            (tags.len() == 1 && tags[0].is_some()).then_some(0)
        }
    }
}

/// Whether the request's own `If-None-Match` names something else than the `stored` tag.
#[must_use]
pub fn asks_about_others(request: &HeaderMap, stored: &HeaderMap) -> bool {
    let Some(tag) = etag(stored) else {
        return false;
    };
    tags(request).any(|member| !weakly_equal(member, tag.as_bytes()))
}

/// Whether the request's own `If-None-Match` names the tag of `answer`.
#[must_use]
pub fn asks_about(request: &HeaderMap, answer: &HeaderMap) -> bool {
    etag(answer).is_some_and(|tag| tags(request).any(|member| weakly_equal(member, tag.as_bytes())))
}

fn tags(request: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = request.get_all(IF_NONE_MATCH).iter();
    lines.flat_map(|line| members(line.as_bytes()).map(<[u8]>::trim_ascii))
}

/// Whether two parts of one resource belong together: one strong tag (RFC 9111, 3.4).
pub(super) fn same_strong_tag(a: &HeaderMap, b: &HeaderMap) -> bool {
    match (etag(a), etag(b)) {
        (Some(a), Some(b)) => is_strong(a) && a == b,
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

    #[test]
    fn tags_of_variants_are_asked_about_together() {
        let stored = [
            map(&[("etag", "\"a,b\"")]),
            map(&[("etag", "W/\"c\"")]),
            map(&[("etag", "\"a,b\"")]),
            map(&[("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")]),
        ];
        let mut request = HeaderMap::new();
        assert!(ask_which(&mut request, &stored));
        let lines: Vec<_> = request.get_all(IF_NONE_MATCH).iter().collect();
        assert_eq!(lines, ["\"a,b\"", "W/\"c\""]);
        let chosen = |lines: &[(&'static str, &str)]| which(&map(lines), &stored);
        assert_eq!(chosen(&[("etag", "\"c\"")]), Some(1));
        assert_eq!(chosen(&[("etag", "\"a,b\"")]), Some(0));
        assert_eq!(chosen(&[("etag", "\"d\"")]), None);
        assert_eq!(chosen(&[]), None);
        assert_eq!(which(&HeaderMap::new(), &stored[..1]), Some(0));
        assert_eq!(which(&HeaderMap::new(), &stored[3..]), None);
        for own in [
            ("if-none-match", "\"x\""),
            ("range", "bytes=0-1"),
            ("if-match", "*"),
        ] {
            let mut request = map(&[own]);
            assert!(!ask_which(&mut request, &stored), "{own:?}");
            assert_eq!(request, map(&[own]));
        }
        assert!(!ask_which(&mut HeaderMap::new(), &stored[3..]));
        let many: Vec<HeaderMap> = (0..40)
            .map(|n| map(&[("etag", &format!("\"{n}\""))]))
            .collect();
        let mut request = HeaderMap::new();
        assert!(ask_which(&mut request, &many));
        assert_eq!(request.len(), MOST_TAGS);
    }

    #[test]
    fn a_callers_own_tags_are_told_apart() {
        let stored = map(&[("etag", "\"a,b\"")]);
        assert!(!asks_about_others(
            &map(&[("if-none-match", "\"a,b\"")]),
            &stored
        ));
        assert!(asks_about_others(
            &map(&[("if-none-match", "\"a,b\", \"c\"")]),
            &stored
        ));
        assert!(asks_about(
            &map(&[("if-none-match", "\"x\", W/\"a,b\"")]),
            &stored
        ));
        assert!(!asks_about(&map(&[("if-none-match", "\"a\"")]), &stored));
    }
}
