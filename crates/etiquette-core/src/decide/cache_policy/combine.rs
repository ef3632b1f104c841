//! Partial responses: what an incomplete one lacks, and how two are combined (RFC 9111, 3.3 and 3.4; RFC 9110, 14.2 and
//! 15.3.7.3).
//!
//! Bytes are combined only under one strong tag. Without one, what came first and what came later may belong to two
//! versions, and no look at them tells.

use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE};

use super::precondition::has_condition_or_range;
use super::range::{ContentRange, Extent};
use super::stored::StoredResponse;
use super::validators::{is_strong, same_strong_tag};

/// A new body and a stored one as one body: the first `before` bytes of the stored one, the new one, and the stored
/// one from its byte `after` on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Combined {
    /// The head of the two together: a 200 if nothing is missing any more, else a 206.
    pub head: StoredResponse,
    /// So many bytes of the stored body come first.
    pub before: u64,
    /// Where in the stored body the rest of it begins. Its length, if there is no rest.
    pub after: u64,
}

/// Combines a `new` part with what is `stored` (RFC 9111, 3.4); `None` where they do not touch or are not known to be of
/// one version.
///
/// The head is the stored one with the fields of the new one (RFC 9111, 3.2), as old as the new one.
#[must_use]
pub fn combine(
    stored: &StoredResponse,
    stored_length: u64,
    new: &StoredResponse,
    new_length: u64,
) -> Option<Combined> {
    let Extent::Part {
        first,
        total: new_total,
    } = new.extent()
    else {
        return None;
    };
    let (start, stored_total) = match stored.extent() {
        Extent::Whole if stored.status() == StatusCode::OK => (0, Some(stored_length)),
        Extent::Whole | Extent::HeadOnly => return None,
        Extent::Part { first, total } => (first, total),
    };
    if new_length == 0 || !same_strong_tag(stored.headers(), new.headers()) {
        return None;
    }
    let total = match (stored_total, new_total) {
        (Some(a), Some(b)) if a != b => return None,
        (a, b) => a.or(b),
    };
    let stored_end = start.checked_add(stored_length)?;
    let new_end = first.checked_add(new_length)?;
    let touch = first <= stored_end && start <= new_end;
    let (begin, end) = (start.min(first), stored_end.max(new_end));
    if !touch || total.is_some_and(|total| end > total) {
        return None;
    }
    Some(Combined {
        head: combined_head(stored, new, begin, end, total),
        before: first.saturating_sub(start),
        after: new_end.saturating_sub(start).min(stored_length),
    })
}

fn combined_head(
    stored: &StoredResponse,
    new: &StoredResponse,
    begin: u64,
    end: u64,
    total: Option<u64>,
) -> StoredResponse {
    let mut headers = stored.updated_fields(new.headers());
    headers.insert(CONTENT_LENGTH, (end - begin).into());
    if begin == 0 && total == Some(end) {
        headers.remove(CONTENT_RANGE);
        new.with(StatusCode::OK, headers, Extent::Whole)
    } else {
        let range = ContentRange::new(begin, end - 1, total);
        headers.insert(CONTENT_RANGE, range.value());
        new.with(StatusCode::PARTIAL_CONTENT, headers, range.extent())
    }
}

/// Makes a request for a whole one for what the `stored` part of `length` bytes lacks (RFC 9111, 3.3); otherwise leaves it
/// alone. Returns whether it did.
///
/// The part must have a strong tag, which goes along as `If-Range`: an origin that has another version by now sends all
/// of it. It must reach one end of the whole, so that one range is missing. A request that has conditions of its own
/// stays as it is.
pub fn request_missing_range(
    request: &mut HeaderMap,
    stored: &StoredResponse,
    length: u64,
) -> bool {
    let Extent::Part { first, total } = stored.extent() else {
        return false;
    };
    let Some(tag) = stored.headers().get(ETAG).filter(|tag| is_strong(tag)) else {
        return false;
    };
    let end = first.saturating_add(length);
    let range = if first == 0 && length > 0 && total != Some(end) {
        format!("bytes={end}-")
    } else if first > 0 && total == Some(end) {
        format!("bytes=0-{}", first - 1)
    } else {
        return false;
    };
    let Ok(range) = HeaderValue::from_str(&range) else {
        return false;
    };
    if has_condition_or_range(request) {
        return false;
    }
    request.insert(RANGE, range);
    request.insert(IF_RANGE, tag.clone());
    true
}

/// Combines a stored part with the 206 that [`request_missing_range`] brought; `None` when the two do not make a whole.
/// The second value is the number of bytes that the 206 promises for its body.
#[must_use]
pub fn complete(
    stored: &StoredResponse,
    length: u64,
    new: &StoredResponse,
) -> Option<(Combined, u64)> {
    let promised = ContentRange::of(new.headers())?.length();
    let combined = combine(stored, length, new, promised)?;
    (combined.head.extent() == Extent::Whole).then_some((combined, promised))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decide::cache_policy::samples::{at, map, times};
    use crate::decide::cache_policy::{ResponseTimes, Selecting};
    use http::Version;

    fn response(lines: &[(&'static str, &str)], times: &ResponseTimes) -> StoredResponse {
        let headers = map(lines);
        let extent = ContentRange::of(&headers).map_or(Extent::Whole, |range| range.extent());
        let status = match extent {
            Extent::Whole => StatusCode::OK,
            _ => StatusCode::PARTIAL_CONTENT,
        };
        let selecting = Selecting::default();
        StoredResponse::new(
            status,
            Version::HTTP_11,
            &headers,
            selecting,
            extent,
            times,
            true,
        )
    }

    fn tagged(range: &str) -> StoredResponse {
        response(&[("etag", "\"a\""), ("content-range", range)], &times(0, 0))
    }

    fn rest(stored: &StoredResponse, length: u64, request: &[(&'static str, &str)]) -> HeaderMap {
        let mut request = map(request);
        request_missing_range(&mut request, stored, length);
        request
    }

    #[test]
    fn two_neighbours_become_a_whole_under_the_newer_head() {
        let old = [
            ("etag", "\"a\""),
            ("x", "old"),
            ("link", "1"),
            ("content-range", "bytes 0-3/10"),
        ];
        let old = response(&old, &times(0, 0));
        let new = [
            ("etag", "\"a\""),
            ("x", "new"),
            ("content-range", "bytes 4-9/10"),
        ];
        let new = response(&new, &times(20, 20));
        let combined = combine(&old, 4, &new, 6).unwrap();
        assert_eq!((combined.before, combined.after), (4, 4));
        assert_eq!(combined.head.status(), 200);
        assert_eq!(combined.head.extent(), Extent::Whole);
        assert!(!combined.head.headers().contains_key("content-range"));
        for (name, value) in [("content-length", "10"), ("x", "new"), ("link", "1")] {
            assert_eq!(combined.head.headers()[name], value, "{name}");
        }
        assert_eq!(combined.head.age(&at(21)).as_secs(), 1);
    }

    #[test]
    fn only_one_strong_tag_and_one_length_combine() {
        let stored = tagged("bytes 0-3/10");
        for other in [
            &[("etag", "\"b\""), ("content-range", "bytes 4-9/10")][..],
            &[("etag", "W/\"a\""), ("content-range", "bytes 4-9/10")],
            &[
                ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("content-range", "bytes 4-9/10"),
            ],
            &[("etag", "\"a\""), ("content-range", "bytes 4-9/11")],
            &[("etag", "\"a\""), ("content-range", "bytes 5-9/10")],
            &[("etag", "\"a\"")],
        ] {
            assert!(
                combine(&stored, 4, &response(other, &times(0, 0)), 6).is_none(),
                "{other:?}"
            );
        }
        let open = tagged("bytes 4-9/*");
        assert_eq!(
            combine(&stored, 4, &open, 6).unwrap().head.extent(),
            Extent::Whole
        );
        // Bytes that are not there are not combined.
        assert!(combine(&tagged("bytes 0-9/20"), 10, &tagged("bytes 4-9/20"), 0).is_none());
    }

    #[test]
    fn the_rest_is_asked_for_under_the_tag() {
        let asked = rest(&tagged("bytes 0-3/10"), 4, &[]);
        assert_eq!(
            (&asked["range"], &asked["if-range"]),
            (&"bytes=4-".parse().unwrap(), &"\"a\"".parse().unwrap())
        );
        assert_eq!(rest(&tagged("bytes 0-3/*"), 4, &[])["range"], "bytes=4-");
        assert_eq!(rest(&tagged("bytes 4-9/10"), 6, &[])["range"], "bytes=0-3");
        let nothing = [
            (tagged("bytes 4-8/10"), 5),
            (tagged("bytes 4-9/*"), 6),
            (response(&[("etag", "\"a\"")], &times(0, 0)), 10),
            (
                response(
                    &[("etag", "W/\"a\""), ("content-range", "bytes 0-3/10")],
                    &times(0, 0),
                ),
                4,
            ),
            (
                response(&[("content-range", "bytes 0-3/10")], &times(0, 0)),
                4,
            ),
        ];
        for (stored, length) in nothing {
            assert!(rest(&stored, length, &[]).is_empty(), "{stored:?}");
        }
        for own in [
            "range",
            "if-none-match",
            "if-match",
            "if-range",
            "if-modified-since",
        ] {
            assert_eq!(
                rest(&tagged("bytes 0-3/10"), 4, &[(own, "bytes=1-2")]).len(),
                1,
                "{own}"
            );
        }
    }

    #[test]
    fn only_all_of_the_rest_completes() {
        let stored = tagged("bytes 0-3/10");
        assert_eq!(complete(&stored, 4, &tagged("bytes 4-9/10")).unwrap().1, 6);
        for short in [
            "bytes 4-8/10",
            "bytes 5-9/10",
            "bytes 0-3/10",
            "bytes 4-9/*x",
        ] {
            assert!(complete(&stored, 4, &tagged(short)).is_none(), "{short}");
        }
    }

    proptest! {
        /// Whatever parts of one body come in whatever order: what is combined is that body's, byte for byte.
        #[test]
        fn combined_bytes_are_the_bytes_of_the_whole(
            length in 1_u64..40,
            parts in proptest::collection::vec((0_u64..40, 1_u64..20, any::<bool>()), 1..8),
        ) {
            let bytes: Vec<u8> = (0..length).map(|n| u8::try_from(n).unwrap()).collect();
            let place = |n: u64| usize::try_from(n).unwrap();
            let mut held: Option<(StoredResponse, Vec<u8>)> = None;
            for (first, count, says_total) in parts {
                let first = first % length;
                let last = (first + count - 1).min(length - 1);
                let total = if says_total { length.to_string() } else { "*".to_owned() };
                let new = tagged(&format!("bytes {first}-{last}/{total}"));
                let body = bytes[place(first)..=place(last)].to_vec();
                let combined = held.as_ref().and_then(|(head, old)| {
                    let combined = combine(head, old.len() as u64, &new, body.len() as u64)?;
                    let all = [&old[..place(combined.before)], &body, &old[place(combined.after)..]].concat();
                    Some((combined.head, all))
                });
                held = Some(combined.unwrap_or((new, body)));
                let (head, body) = held.as_ref().unwrap();
                match head.extent() {
                    Extent::Whole => prop_assert_eq!(body, &bytes),
                    Extent::Part { first, total } => {
                        prop_assert!(total.is_none_or(|total| total == length));
                        prop_assert_eq!(body, &bytes[place(first)..place(first) + body.len()]);
                        prop_assert_eq!(ContentRange::of(head.headers()).map(|range| range.length()), Some(body.len() as u64));
                    }
                    Extent::HeadOnly => prop_assert!(false, "a body was combined with none"),
                }
            }
        }
    }
}
