//! Whether people who do not know each other may share the answer to one request while it is under way.
//!
//! What a person asked for is stored for that person only, whatever RFC 9111 would allow. But where a hundred of them ask
//! for the same page at the same time, as strangers to the site, and the site answers as to a stranger, one request is
//! enough for all. In doubt each asks alone: that costs the site a request, and nobody a secret.

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};

use super::{RequestDirectives, ResponseDirectives, Scope};

/// Whether a request says nothing about who makes it: no Cookie, no credentials; and does not forbid to keep or to reuse
/// anything.
#[must_use]
pub fn is_anonymous(request: &HeaderMap) -> bool {
    let wishes = RequestDirectives::of(request);
    let tells = [COOKIE, AUTHORIZATION, PROXY_AUTHORIZATION];
    !tells.iter().any(|name| request.contains_key(name)) && !wishes.no_store && !wishes.no_cache
}

/// Whether an answer to an anonymous request is for anybody: neither `private` (of any field) nor `no-store`, and it
/// sets no cookie.
#[must_use]
pub fn is_for_anybody(answer: &HeaderMap) -> bool {
    let says = ResponseDirectives::of(answer);
    !says.no_store && says.private == Scope::Absent && !answer.contains_key(SET_COOKIE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| {
                (
                    http::HeaderName::from_static(name),
                    http::HeaderValue::from_static(value),
                )
            })
            .collect()
    }

    #[test]
    fn in_doubt_alone() {
        for (fields, anonymous) in [
            (&[][..], true),
            (
                &[("accept", "text/html"), ("cache-control", "max-age=0")],
                true,
            ),
            (&[("cookie", "a=b")], false),
            (&[("authorization", "Basic x")], false),
            (&[("proxy-authorization", "Basic x")], false),
            (&[("cache-control", "no-store")], false),
            (&[("cache-control", "no-cache")], false),
            (&[("pragma", "no-cache")], false),
        ] {
            assert_eq!(is_anonymous(&map(fields)), anonymous, "{fields:?}");
        }
        for (fields, anybody) in [
            (&[][..], true),
            (&[("cache-control", "max-age=1, no-cache")], true),
            (
                &[("cache-control", "public"), ("cache-control", "No-Store")],
                false,
            ),
            (&[("cache-control", "no-store, must-understand")], false),
            (&[("cache-control", "private")], false),
            (&[("cache-control", "private=\"x-name\"")], false),
            (&[("set-cookie", "a=b"), ("cache-control", "public")], false),
        ] {
            assert_eq!(is_for_anybody(&map(fields)), anybody, "{fields:?}");
        }
    }
}
