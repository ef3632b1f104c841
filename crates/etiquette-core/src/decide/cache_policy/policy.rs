//! The settings of a cache, and how long it takes a response for fresh.

use std::time::Duration;

use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};

use super::directives::ResponseDirectives;
use super::stored::{Lifetime, StoredResponse};
use super::vary::Selecting;

/// How a lifetime is guessed for a response that states none (RFC 9111, 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Heuristic {
    /// The percentage of the time for which the response had not been changed.
    pub percent: u8,
    /// Never longer than this.
    pub at_most: Duration,
}

impl Heuristic {
    /// A tenth of the time since Last-Modified, at most a day: what most caches do.
    #[must_use]
    pub fn tenth() -> Self {
        Self {
            percent: 10,
            at_most: Duration::from_secs(86_400),
        }
    }

    /// Another percentage and another limit.
    #[must_use]
    pub fn new(percent: u8, at_most: Duration) -> Self {
        Self { percent, at_most }
    }
}

/// The settings of a cache and the decisions that follow from them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CachePolicy {
    /// The cache serves several users (RFC 9111, 1.1). Default: no.
    pub shared: bool,
    /// How to guess a lifetime from Last-Modified. Default: not at all.
    pub heuristic: Option<Heuristic>,
    /// The lifetime of heuristically cacheable responses that state none. Default: none.
    pub default_ttl: Option<Duration>,
    /// "Not again within": a response younger than this is used whatever it says, short of `no-store`. Default: none.
    pub floor: Option<Duration>,
    /// No response is fresh for longer. Default: none.
    pub ceiling: Option<Duration>,
    /// How long after the end of its life a response may stand in when the origin does not answer at all and the
    /// response does not forbid it (RFC 9111, 4.2.4: "disconnected"). Default: a day.
    pub stale_if_unreachable: Duration,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            shared: false,
            heuristic: None,
            default_ttl: None,
            floor: None,
            ceiling: None,
            stale_if_unreachable: Duration::from_secs(86_400),
        }
    }
}

const OWN_CREDENTIALS: [HeaderName; 1] = [AUTHORIZATION];

impl CachePolicy {
    /// The request fields that select every response, named by Vary or not: a private cache keeps what each
    /// Authorization was given apart, since one client may act for several users.
    fn always_selecting(&self) -> &'static [HeaderName] {
        if self.shared { &[] } else { &OWN_CREDENTIALS }
    }

    /// The fields of `request` that select `response`; `None` where it answers only its own request.
    #[must_use]
    pub fn selecting(&self, request: &HeaderMap, response: &HeaderMap) -> Option<Selecting> {
        Selecting::of(request, response, self.always_selecting())
    }

    /// How long a response stays fresh, by its own word or by these settings.
    #[must_use]
    pub fn fresh_for(&self, stored: &StoredResponse) -> Duration {
        let life = match stored.lifetime(self.shared) {
            Lifetime::Explicit(life) => life,
            Lifetime::Unsaid if may_guess(stored.status(), stored.directives()) => {
                self.guess(stored)
            }
            Lifetime::Unsaid => Duration::ZERO,
        };
        life.min(self.ceiling.unwrap_or(Duration::MAX))
    }

    fn guess(&self, stored: &StoredResponse) -> Duration {
        let tenth = self.heuristic.and_then(|heuristic| {
            let unchanged = stored.unchanged_for()?;
            let share = unchanged
                .as_secs()
                .saturating_mul(u64::from(heuristic.percent))
                / 100;
            Some(Duration::from_secs(share).min(heuristic.at_most))
        });
        tenth.or(self.default_ttl).unwrap_or(Duration::ZERO)
    }
}

/// Whether a lifetime may be guessed (RFC 9110, 15.1; RFC 9111, 4.2.2): the status allows it, or the response does.
pub(super) fn may_guess(status: StatusCode, says: &ResponseDirectives) -> bool {
    says.public
        || matches!(
            status.as_u16(),
            200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
        )
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
