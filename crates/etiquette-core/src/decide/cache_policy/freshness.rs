//! Freshness (RFC 9111, 4.2): how long a response is fresh, and what of it is left.

use std::time::Duration;

use http::StatusCode;
use http::header::{EXPIRES, LAST_MODIFIED};

use super::directives::ResponseDirectives;
use super::policy::CachePolicy;
use super::stored::StoredResponse;
use crate::field::date::parse_strict;

impl CachePolicy {
    /// How long a response is fresh, by its own word or by these settings (RFC 9111, 4.2.1 and 4.2.2).
    #[must_use]
    pub fn freshness_lifetime(&self, stored: &StoredResponse) -> Duration {
        let life = match stored.explicit_lifetime(self.shared) {
            Some(life) => life,
            None if is_heuristically_cacheable(stored.status(), stored.directives()) => {
                self.heuristic_lifetime(stored)
            }
            None => Duration::ZERO,
        };
        life.min(self.ceiling.unwrap_or(Duration::MAX))
    }

    /// The estimated lifetime of a response that states none (RFC 9111, 4.2.2).
    fn heuristic_lifetime(&self, stored: &StoredResponse) -> Duration {
        let share = self.heuristic.and_then(|heuristic| {
            let unmodified = stored.unmodified_for()?.as_secs();
            let share = unmodified.saturating_mul(u64::from(heuristic.percent)) / 100;
            Some(Duration::from_secs(share).min(heuristic.at_most))
        });
        share.or(self.default_ttl).unwrap_or(Duration::ZERO)
    }
}

impl StoredResponse {
    /// How long the origin says that it is fresh, if it says so (RFC 9111, 4.2.1).
    #[must_use]
    pub fn explicit_lifetime(&self, shared: bool) -> Option<Duration> {
        let says = self.directives();
        let stated = says.s_maxage.filter(|_| shared).or(says.max_age);
        stated.or_else(|| {
            let expires = self.headers().get(EXPIRES)?.as_bytes();
            let life = parse_strict(expires, self.initial_age().response_time)
                .and_then(|end| end.duration_since(self.date()).ok());
            Some(life.unwrap_or(Duration::ZERO))
        })
    }

    /// How long it had not been modified when it was sent, if it says so.
    fn unmodified_for(&self) -> Option<Duration> {
        let modified = self.headers().get(LAST_MODIFIED)?.as_bytes();
        let modified = parse_strict(modified, self.initial_age().response_time)?;
        self.date().duration_since(modified).ok()
    }
}

/// Whether a lifetime may be estimated (RFC 9110, 15.1; RFC 9111, 4.2.2): the status allows it, or the response does.
pub(super) fn is_heuristically_cacheable(status: StatusCode, says: &ResponseDirectives) -> bool {
    says.public
        || matches!(
            status.as_u16(),
            200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
        )
}

/// Seconds left of `lifetime` at `age`, negative when it is over.
pub(super) fn ttl(lifetime: Duration, age: Duration) -> i64 {
    let whole = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX / 2);
    whole(lifetime).saturating_sub(whole(age))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::cache_policy::samples::stored;

    #[test]
    fn lifetimes_in_their_order() {
        let explicit = |s| Some(Duration::from_secs(s));
        let both = stored(&[("cache-control", "max-age=1, s-maxage=2")]);
        assert_eq!(both.explicit_lifetime(true), explicit(2));
        assert_eq!(both.explicit_lifetime(false), explicit(1));
        let date = ("date", "Sun, 06 Nov 1994 08:49:27 GMT");
        let expires = ("expires", "Sun, 06 Nov 1994 08:49:57 GMT");
        assert_eq!(
            stored(&[date, expires]).explicit_lifetime(true),
            explicit(30)
        );
        assert_eq!(
            stored(&[("date", "?"), expires]).explicit_lifetime(true),
            explicit(20)
        );
        assert_eq!(
            stored(&[("expires", "0")]).explicit_lifetime(true),
            explicit(0)
        );
        assert_eq!(stored(&[]).explicit_lifetime(true), None);
    }
}
