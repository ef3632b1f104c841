//! Validators and their comparison (RFC 9110, 8.8).

use std::time::SystemTime;

use http::HeaderName;
use http::header::{ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LAST_MODIFIED};

use super::directives::members;
use crate::field::date::parse_strict;

/// An entity tag without its weakness flag. Tags that lack quotes are compared as they are.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether a tag names one sequence of bytes: it has quotes and no weakness flag.
pub(super) fn is_strong(tag: &HeaderValue) -> bool {
    let tag = tag.as_bytes();
    tag.len() >= 2 && tag.starts_with(b"\"") && tag.ends_with(b"\"")
}

/// The weak comparison, which ignores weakness (RFC 9110, 8.8.3.2).
pub(super) fn weakly_equal(a: &[u8], b: &[u8]) -> bool {
    opaque(a) == opaque(b)
}

/// The strong comparison, which no weak tag passes (RFC 9110, 8.8.3.2).
pub(super) fn strongly_equal(a: &[u8], b: &[u8]) -> bool {
    a == b && !a.starts_with(b"W/")
}

pub(super) fn etag(headers: &HeaderMap) -> Option<&HeaderValue> {
    headers.get(ETAG).filter(|tag| !tag.is_empty())
}

/// The members of all `If-None-Match` lines.
pub(super) fn if_none_match(request: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = request.get_all(IF_NONE_MATCH).iter();
    lines.flat_map(|line| members(line.as_bytes()).map(<[u8]>::trim_ascii))
}

/// The date in a field.
pub(super) fn date(headers: &HeaderMap, name: HeaderName, now: SystemTime) -> Option<SystemTime> {
    parse_strict(headers.get(name)?.as_bytes(), now)
}

/// Whether a response can be validated.
#[must_use]
pub fn has_validator(response: &HeaderMap) -> bool {
    etag(response).is_some() || response.contains_key(LAST_MODIFIED)
}

/// Whether two parts of one representation may be combined: they have one strong tag (RFC 9111, 3.4).
pub(super) fn same_strong_tag(a: &HeaderMap, b: &HeaderMap) -> bool {
    match (etag(a), etag(b)) {
        (Some(a), Some(b)) => is_strong(a) && a == b,
        _ => false,
    }
}

/// How the validators of two responses for one URL compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    Same,
    Different,
    /// The new response has none that the stored one has too.
    Unknown,
}

/// Compares the validators of a new response with the stored ones; a tag decides before a date.
pub(super) fn compare(stored: &HeaderMap, new: &HeaderMap, now: SystemTime) -> Compared {
    let same = match (etag(stored), etag(new)) {
        (Some(old), Some(new)) => weakly_equal(old.as_bytes(), new.as_bytes()),
        (None, Some(_)) => false,
        (_, None) => {
            let (Some(old), Some(new)) = (stored.get(LAST_MODIFIED), new.get(LAST_MODIFIED)) else {
                return Compared::Unknown;
            };
            let dated = |value: &HeaderValue| parse_strict(value.as_bytes(), now);
            old == new || dated(old).is_some_and(|old| dated(new) == Some(old))
        }
    };
    if same {
        Compared::Same
    } else {
        Compared::Different
    }
}
