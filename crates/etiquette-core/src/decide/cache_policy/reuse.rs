//! The decision whether a stored response answers a request.

use std::time::Duration;

use http::StatusCode;

use super::directives::{RequestDirectives, Scope};
use super::policy::CachePolicy;
use super::status::{Forward, ttl};
use super::stored::{Lifetime, StoredResponse};
use crate::Now;

/// What may be done with a stored response when asking the origin fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StaleAllowed {
    /// It may replace a 500, 502, 503 or 504 (RFC 5861, 4).
    pub on_error: bool,
    /// It may stand in when there is no answer.
    pub on_silence: bool,
}

impl StaleAllowed {
    /// Whether a stored response may replace an answer of this status.
    #[must_use]
    pub fn covers(&self, status: StatusCode) -> bool {
        self.on_error && matches!(status.as_u16(), 500 | 502 | 503 | 504)
    }
}

/// What a stored response is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reuse {
    /// It answers the request. `ttl` is negative when the caller accepted a stale one.
    Fresh {
        /// What is left of its life, in seconds.
        ttl: i64,
    },
    /// It answers the request, and the origin is asked meanwhile (RFC 5861, 3).
    StaleWhileRevalidate {
        /// What may be done if nobody can ask meanwhile, and asking first fails.
        stale_allowed: StaleAllowed,
        /// What is left of its life, in seconds: less than one.
        ttl: i64,
    },
    /// The origin is asked first.
    Validate {
        /// Why.
        forward: Forward,
        /// What may be done if that fails.
        stale_allowed: StaleAllowed,
        /// What is left of its life, in seconds.
        ttl: i64,
    },
}

impl CachePolicy {
    /// Judges a stored response, which the request's fields select, at `now`.
    #[must_use]
    pub fn reuse(&self, wishes: &RequestDirectives, stored: &StoredResponse, now: &Now) -> Reuse {
        let says = stored.directives();
        let age = stored.age(now);
        let life = self.fresh_for(stored);
        let ttl = ttl(life, age);
        let ask = |forward, stale_allowed| Reuse::Validate {
            forward,
            stale_allowed,
            ttl,
        };
        let on_request = ask(Forward::Request, StaleAllowed::default());
        if wishes.no_cache || wishes.max_age == Some(Duration::ZERO) {
            return on_request;
        }
        let young = |floor| stored.resident(now).is_some_and(|since| since < floor);
        if self.floor.is_some_and(young) {
            return Reuse::Fresh { ttl };
        }
        if says.no_cache == Scope::All {
            return ask(Forward::Stale, StaleAllowed::default());
        }
        let too_old = wishes.max_age.is_some_and(|limit| age > limit);
        let left = life.saturating_sub(age);
        if age < life {
            let too_short = wishes.min_fresh.is_some_and(|wish| left < wish);
            return if too_old || too_short {
                on_request
            } else {
                Reuse::Fresh { ttl }
            };
        }
        let staleness = age.saturating_sub(life);
        let never = says.never_stale(self.shared);
        if never || too_old || wishes.min_fresh.is_some() {
            return ask(Forward::Stale, StaleAllowed::default());
        }
        if wishes.max_stale.is_some_and(|limit| staleness <= limit) {
            return Reuse::Fresh { ttl };
        }
        let within = |window: Option<Duration>| window.is_some_and(|window| staleness <= window);
        let on_error = within(says.stale_if_error) || within(wishes.stale_if_error);
        let stale_allowed = StaleAllowed {
            on_error,
            on_silence: on_error || within(Some(self.stale_if_unreachable)),
        };
        if within(says.stale_while_revalidate) {
            return Reuse::StaleWhileRevalidate { stale_allowed, ttl };
        }
        ask(Forward::Stale, stale_allowed)
    }

    /// Whether an answer that has just come may also answer another request, made while it was under way: it is fresh,
    /// or says nothing about its life. One that demands validation answers its own request only.
    #[must_use]
    pub fn shareable(
        &self,
        wishes: &RequestDirectives,
        stored: &StoredResponse,
        now: &Now,
    ) -> bool {
        match self.reuse(wishes, stored, now) {
            Reuse::Fresh { .. } => true,
            Reuse::Validate {
                forward: Forward::Stale,
                ..
            } => {
                stored.directives().no_cache != Scope::All
                    && stored.lifetime(self.shared) == Lifetime::Unsaid
            }
            _ => false,
        }
    }
}
