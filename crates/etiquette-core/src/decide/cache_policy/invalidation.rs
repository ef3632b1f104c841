//! Invalidating stored responses (RFC 9111, 4.4).

use http::header::{CONTENT_LOCATION, HeaderMap, HeaderName, LOCATION};
use http::{Method, StatusCode, Uri};

use crate::Origin;

/// The URIs whose stored responses a response invalidates (RFC 9111, 4.4): after a method that is not known to be safe and
/// a response that is no error, the request's own and, of the same origin, those in Location and Content-Location.
#[must_use]
pub fn invalidates(
    method: &Method,
    uri: &Uri,
    status: StatusCode,
    response: &HeaderMap,
) -> Vec<Uri> {
    let safe = method.is_safe() || *method == Method::CONNECT;
    if safe || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut found = vec![uri.clone()];
    let named = |name: &HeaderName| {
        let reference = response.get(name)?.to_str().ok()?;
        let target = resolve(uri, reference)?;
        let same = Origin::of(uri).ok()? == Origin::of(&target).ok()?;
        same.then_some(target)
    };
    found.extend(named(&LOCATION));
    found.extend(named(&CONTENT_LOCATION));
    found
}

/// Whether the response to a POST says of itself that it is what a GET of the same URL would give (RFC 9110, 9.3.3).
pub(super) fn names_itself(uri: &Uri, response: &HeaderMap) -> bool {
    let target = response
        .get(CONTENT_LOCATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|reference| resolve(uri, reference));
    let Some(target) = target else { return false };
    matches!((Origin::of(uri), Origin::of(&target)), (Ok(a), Ok(b)) if a == b)
        && uri.path_and_query() == target.path_and_query()
}

/// The absolute URI of a reference (RFC 3986, 5.2), its fragment dropped.
fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default().trim();
    if reference.is_empty() {
        return Some(base.clone());
    }
    etiquette_robots::resolve(&base.to_string(), reference)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve() {
        let base: Uri = "http://h:8/a/b?q".parse().unwrap();
        for (reference, expected) in [
            ("", "http://h:8/a/b?q"),
            ("?x", "http://h:8/a/b?x"),
            ("c", "http://h:8/a/c"),
            ("../c?d#e", "http://h:8/c?d"),
            ("./", "http://h:8/a/"),
            ("/c/./d/..", "http://h:8/c/"),
            ("//g/c", "http://g/c"),
            ("https://g/c", "https://g/c"),
            ("c/d:e", "http://h:8/a/c/d:e"),
        ] {
            assert_eq!(resolve(&base, reference).unwrap(), expected, "{reference}");
        }
    }

    #[test]
    fn only_successful_changes_of_the_same_origin() {
        let uri: Uri = "http://h/c".parse().unwrap();
        let headers: HeaderMap = [
            (LOCATION, "/c/1".parse().unwrap()),
            (CONTENT_LOCATION, "http://other/x".parse().unwrap()),
        ]
        .into_iter()
        .collect();
        let paths = |method: &str, status: u16| -> Vec<String> {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            invalidates(
                &method,
                &uri,
                StatusCode::from_u16(status).unwrap(),
                &headers,
            )
            .iter()
            .map(|uri| uri.path().to_owned())
            .collect()
        };
        assert_eq!(paths("POST", 201), ["/c", "/c/1"]);
        assert_eq!(paths("M-SEARCH", 302), ["/c", "/c/1"]);
        assert!(paths("POST", 404).is_empty());
        assert!(paths("OPTIONS", 200).is_empty());
        assert!(paths("GET", 200).is_empty());
    }
}
