//! The settings of a cache.

use std::time::Duration;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName};

use super::vary::Selecting;

/// How a lifetime is estimated for a response that states none (RFC 9111, 4.2.2).
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
    /// How to estimate a lifetime from Last-Modified. Default: not at all.
    pub heuristic: Option<Heuristic>,
    /// The lifetime of heuristically cacheable responses that state none. Default: none.
    pub default_ttl: Option<Duration>,
    /// "Not again within": a response younger than this is used whatever it says, short of `no-store`. Default: none.
    pub floor: Option<Duration>,
    /// No response is fresh for longer. Default: none.
    pub ceiling: Option<Duration>,
    /// How long after the end of its life a response may be served when the origin does not respond at all and the
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

    /// The fields of `request` that select `response`; `None` where it satisfies only its own request.
    #[must_use]
    pub fn selecting(&self, request: &HeaderMap, response: &HeaderMap) -> Option<Selecting> {
        Selecting::of(request, response, self.always_selecting())
    }
}
