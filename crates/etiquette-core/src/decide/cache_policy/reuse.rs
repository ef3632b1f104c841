//! Reuse of a stored response for a request (RFC 9111, 4), stale ones included (4.2.4; RFC 5861).

use std::time::Duration;

use http::StatusCode;

use super::directives::{Qualifiable, RequestDirectives};
use super::freshness::ttl;
use super::policy::CachePolicy;
use super::status::Forward;
use super::stored::StoredResponse;
use crate::Now;

/// When a stored response may be served although it is stale, because the origin failed (RFC 9111, 4.2.4; RFC 5861, 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleIfError {
    /// Instead of a 500, 502, 503 or 504.
    pub server_error: bool,
    /// When the origin does not respond at all.
    pub unreachable: bool,
}

impl StaleIfError {
    /// Whether the stored response may be served instead of a response of this status.
    #[must_use]
    pub fn covers(&self, status: StatusCode) -> bool {
        self.server_error && matches!(status.as_u16(), 500 | 502 | 503 | 504)
    }
}

/// Whether a stored response satisfies a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reuse {
    /// It does. `ttl` is negative when the caller accepted a stale one.
    Fresh {
        /// What is left of its life, in seconds.
        ttl: i64,
    },
    /// It does, and is validated meanwhile (RFC 5861, 3).
    StaleWhileRevalidate {
        /// When it may be served all the same where it is validated first.
        stale_if_error: StaleIfError,
        /// What is left of its life, in seconds: less than one.
        ttl: i64,
    },
    /// It is validated first (RFC 9111, 4.3).
    Validate {
        /// Why.
        forward: Forward,
        /// When it may be served all the same.
        stale_if_error: StaleIfError,
        /// What is left of its life, in seconds.
        ttl: i64,
    },
}

impl CachePolicy {
    /// Whether a stored response, which the request's fields select, satisfies the request at `now` (RFC 9111, 4).
    #[must_use]
    pub fn reuse(&self, request: &RequestDirectives, stored: &StoredResponse, now: &Now) -> Reuse {
        let says = stored.directives();
        let age = stored.age(now);
        let life = self.freshness_lifetime(stored);
        let ttl = ttl(life, age);
        let validate = |forward, stale_if_error| Reuse::Validate {
            forward,
            stale_if_error,
            ttl,
        };
        let at_request = validate(Forward::Request, StaleIfError::default());
        if request.no_cache || request.max_age == Some(Duration::ZERO) {
            return at_request;
        }
        let young = |floor| stored.resident_time(now).is_some_and(|since| since < floor);
        if self.floor.is_some_and(young) {
            return Reuse::Fresh { ttl };
        }
        if says.no_cache == Qualifiable::Unqualified {
            return validate(Forward::Stale, StaleIfError::default());
        }
        let too_old = request.max_age.is_some_and(|limit| age > limit);
        let left = life.saturating_sub(age);
        if age < life {
            let too_short = request.min_fresh.is_some_and(|wanted| left < wanted);
            return if too_old || too_short {
                at_request
            } else {
                Reuse::Fresh { ttl }
            };
        }
        let staleness = age.saturating_sub(life);
        let never = says.never_stale(self.shared);
        if never || too_old || request.min_fresh.is_some() {
            return validate(Forward::Stale, StaleIfError::default());
        }
        if request.max_stale.is_some_and(|limit| staleness <= limit) {
            return Reuse::Fresh { ttl };
        }
        let within = |window: Option<Duration>| window.is_some_and(|window| staleness <= window);
        let server_error = within(says.stale_if_error) || within(request.stale_if_error);
        let stale_if_error = StaleIfError {
            server_error,
            unreachable: server_error || within(Some(self.stale_if_unreachable)),
        };
        if within(says.stale_while_revalidate) {
            return Reuse::StaleWhileRevalidate {
                stale_if_error,
                ttl,
            };
        }
        validate(Forward::Stale, stale_if_error)
    }
}
