//! Which requests may share one response while it is under way (RFC 9111, 4: collapsed requests).
//!
//! What a person asked for is stored for that person only, whatever RFC 9111 would allow. But where a hundred of them ask
//! for the same page at the same time, anonymously, and the response is for anybody, one request is enough for all. In
//! doubt each asks alone: that costs the site a request, and nobody a secret.

use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION, SET_COOKIE};

use super::directives::{Qualifiable, RequestDirectives, ResponseDirectives};
use super::policy::CachePolicy;
use super::reuse::Reuse;
use super::status::Forward;
use super::stored::StoredResponse;
use crate::Now;

impl CachePolicy {
    /// Whether a response that has just come also satisfies another request, made while it was under way: it is fresh, or
    /// states no lifetime. One that demands validation satisfies its own request only.
    #[must_use]
    pub fn shareable(
        &self,
        request: &RequestDirectives,
        stored: &StoredResponse,
        now: &Now,
    ) -> bool {
        match self.reuse(request, stored, now) {
            Reuse::Fresh { .. } => true,
            Reuse::Validate {
                forward: Forward::Stale,
                ..
            } => {
                stored.directives().no_cache != Qualifiable::Unqualified
                    && stored.explicit_lifetime(self.shared).is_none()
            }
            _ => false,
        }
    }
}

/// Whether a request says nothing about who makes it: no Cookie, no credentials; and does not forbid to store or to reuse
/// anything.
#[must_use]
pub fn is_anonymous(request: &HeaderMap) -> bool {
    let directives = RequestDirectives::of(request);
    let tells = [COOKIE, AUTHORIZATION, PROXY_AUTHORIZATION];
    !tells.iter().any(|name| request.contains_key(name))
        && !directives.no_store
        && !directives.no_cache
}

/// Whether the response to an anonymous request is for anybody: neither `private` (of any field) nor `no-store`, and it
/// sets no cookie.
#[must_use]
pub fn is_for_anybody(response: &HeaderMap) -> bool {
    let says = ResponseDirectives::of(response);
    !says.no_store && says.private == Qualifiable::Absent && !response.contains_key(SET_COOKIE)
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
