//! Conditional requests that validate stored responses, and which of them a 304 names (RFC 9111, 4.3.1 and 4.3.3).

use http::header::{HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};

use super::precondition::{has_condition_or_range, if_none_match_holds};
use super::validators::{etag, if_none_match, weakly_equal};

/// The stored variants that one request is conditional on, at most.
const MOST_TAGS: usize = 16;

/// Makes `request` validate the stored `response` (RFC 9111, 4.3.1): with its tag and its date, beside the tags that the
/// caller has. Returns whether it is conditional on the stored response now.
pub fn make_conditional(request: &mut HeaderMap, response: &HeaderMap) -> bool {
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
    if !if_none_match_holds(request, response) {
        request.append(IF_NONE_MATCH, tag.clone());
    }
    match modified {
        Some(modified) => request.insert(IF_MODIFIED_SINCE, modified.clone()),
        None => request.remove(IF_MODIFIED_SINCE),
    };
    true
}

/// Makes `request`, whose fields select none of the `stored` variants, ask the origin which of them it would select
/// (RFC 9111, 4.1 and 4.3.1). Returns whether it is conditional on them now: there is a tag to ask about, and the caller
/// has neither conditions nor a range of its own.
pub fn make_conditional_on_any<'a>(
    request: &mut HeaderMap,
    stored: impl IntoIterator<Item = &'a HeaderMap>,
) -> bool {
    if has_condition_or_range(request) {
        return false;
    }
    let mut tags: Vec<&HeaderValue> = Vec::new();
    for tag in stored.into_iter().filter_map(etag) {
        if tags.len() < MOST_TAGS && !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    for tag in &tags {
        request.append(IF_NONE_MATCH, HeaderValue::clone(tag));
    }
    !tags.is_empty()
}

/// The position of the stored variant that a 304 to [`make_conditional_on_any`] selects. One that names no tag means the
/// only one whose tag was sent.
pub fn selected_by<'a>(
    response: &HeaderMap,
    stored: impl IntoIterator<Item = &'a HeaderMap>,
) -> Option<usize> {
    let mut stored = stored.into_iter();
    match etag(response) {
        Some(named) => stored.position(|variant| {
            etag(variant).is_some_and(|tag| weakly_equal(tag.as_bytes(), named.as_bytes()))
        }),
        None => {
            let tags: Vec<Option<&HeaderValue>> = stored.map(etag).collect();
            (tags.len() == 1 && tags[0].is_some()).then_some(0)
        }
    }
}

/// Whether the caller's own `If-None-Match` names something else than the `stored` tag.
#[must_use]
pub fn names_other_tags(request: &HeaderMap, stored: &HeaderMap) -> bool {
    let Some(tag) = etag(stored) else {
        return false;
    };
    if_none_match(request).any(|member| !weakly_equal(member, tag.as_bytes()))
}

/// Whether the caller's own `If-None-Match` names the tag of `response`.
#[must_use]
pub fn names_tag_of(request: &HeaderMap, response: &HeaderMap) -> bool {
    etag(response)
        .is_some_and(|tag| if_none_match(request).any(|m| weakly_equal(m, tag.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::cache_policy::samples::map;

    #[test]
    fn a_question_keeps_the_callers_tags() {
        let stored = map(&[("etag", "\"v1\"")]);
        let mut request = map(&[
            ("if-none-match", "\"v2\""),
            ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ]);
        assert!(make_conditional(&mut request, &stored));
        let tags: Vec<_> = request.get_all(IF_NONE_MATCH).iter().collect();
        assert_eq!(tags, ["\"v2\"", "\"v1\""]);
        assert!(!request.contains_key(IF_MODIFIED_SINCE));
        assert!(!make_conditional(&mut HeaderMap::new(), &map(&[])));
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
        assert!(make_conditional_on_any(&mut request, &stored));
        let lines: Vec<_> = request.get_all(IF_NONE_MATCH).iter().collect();
        assert_eq!(lines, ["\"a,b\"", "W/\"c\""]);
        let chosen = |lines: &[(&'static str, &str)]| selected_by(&map(lines), &stored);
        assert_eq!(chosen(&[("etag", "\"c\"")]), Some(1));
        assert_eq!(chosen(&[("etag", "\"a,b\"")]), Some(0));
        assert_eq!(chosen(&[("etag", "\"d\"")]), None);
        assert_eq!(chosen(&[]), None);
        assert_eq!(selected_by(&HeaderMap::new(), &stored[..1]), Some(0));
        assert_eq!(selected_by(&HeaderMap::new(), &stored[3..]), None);
        for own in [
            ("if-none-match", "\"x\""),
            ("range", "bytes=0-1"),
            ("if-match", "*"),
        ] {
            let mut request = map(&[own]);
            assert!(!make_conditional_on_any(&mut request, &stored), "{own:?}");
            assert_eq!(request, map(&[own]));
        }
        assert!(!make_conditional_on_any(
            &mut HeaderMap::new(),
            &stored[3..]
        ));
        let many: Vec<HeaderMap> = (0..40)
            .map(|n| map(&[("etag", &format!("\"{n}\""))]))
            .collect();
        let mut request = HeaderMap::new();
        assert!(make_conditional_on_any(&mut request, &many));
        assert_eq!(request.len(), MOST_TAGS);
    }

    #[test]
    fn a_callers_own_tags_are_told_apart() {
        let stored = map(&[("etag", "\"a,b\"")]);
        assert!(!names_other_tags(
            &map(&[("if-none-match", "\"a,b\"")]),
            &stored
        ));
        assert!(names_other_tags(
            &map(&[("if-none-match", "\"a,b\", \"c\"")]),
            &stored
        ));
        assert!(names_tag_of(
            &map(&[("if-none-match", "\"x\", W/\"a,b\"")]),
            &stored
        ));
        assert!(!names_tag_of(&map(&[("if-none-match", "\"a\"")]), &stored));
    }
}
