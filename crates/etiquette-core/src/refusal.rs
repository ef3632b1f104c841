//! Refusals: why a request was not sent, or its answer not read.
//!
//! Each layer has a small leaf error; [`Refusal`] is the umbrella over them, and [`Refusal::find`] finds it in whatever
//! boxes an error has been through. A refusal names the origin, the cause, the deciding rule if any, when to come back
//! if known, and where the client can be reached.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use crate::{InvalidOrigin, Origin};

/// Why a layer did not send a request, or did not read its answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request has no origin that rules or budgets could belong to.
    NoOrigin(NoOrigin),
    /// The host's budget, pause or queue does not admit the request.
    Host(HostRefused),
}

/// The request's URI has no origin, and none is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoOrigin {
    /// What the URI lacks.
    pub cause: InvalidOrigin,
}

/// A host does not admit a request now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostRefused {
    /// The origin that was asked for.
    pub origin: Origin,
    /// What stands in the way.
    pub why: HostRefusal,
    /// The wall time from which a new try is not refused for this reason, if it is known.
    pub retry_at: Option<SystemTime>,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// What stands in the way of a request to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HostRefusal {
    /// The site asked for a pause, or the queue is so long, that the wait exceeds `max_wait`.
    Paused,
    /// The host's queue is full.
    QueueFull,
    /// The table of hosts is full and none of them may be forgotten.
    HostsFull,
    /// A caller holds an unread body of this host, and with it the place that this request waits for.
    BodyHeld,
    /// robots.txt asks for a longer Crawl-delay than the client is willing to keep.
    CrawlDelayTooLong,
    /// The site has refused so many requests in a row that it is left alone.
    Blocked,
}

impl Refusal {
    /// Finds the refusal in `error` or in one of its sources, through any number of boxing layers.
    #[must_use]
    pub fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(refusal) = error.downcast_ref::<Self>() {
                return Some(refusal);
            }
            next = error.source();
        }
        None
    }

    /// A short stable name of the cause, such as `paused` or `disallowed`, for logs and machines.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoOrigin(_) => "no_origin",
            Self::Host(leaf) => leaf.why.kind(),
        }
    }

    /// The origin that was asked for, if it is known.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::NoOrigin(_) => None,
            Self::Host(leaf) => Some(&leaf.origin),
        }
    }

    /// When to come back, if it is known.
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self {
            Self::NoOrigin(_) => None,
            Self::Host(leaf) => leaf.retry_at,
        }
    }

    /// Where the client's operator can be reached, as its identity publishes it.
    #[must_use]
    pub fn contact(&self) -> Option<&str> {
        match self {
            Self::NoOrigin(_) => None,
            Self::Host(leaf) => leaf.contact.as_deref(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin() {
            Some(origin) => write!(f, "request to {origin} refused ({})", self.kind()),
            None => write!(f, "request refused ({})", self.kind()),
        }
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            Self::NoOrigin(leaf) => leaf,
            Self::Host(leaf) => leaf,
        })
    }
}

impl From<NoOrigin> for Refusal {
    fn from(leaf: NoOrigin) -> Self {
        Self::NoOrigin(leaf)
    }
}

impl From<HostRefused> for Refusal {
    fn from(leaf: HostRefused) -> Self {
        Self::Host(leaf)
    }
}

impl NoOrigin {
    /// A refusal for `cause`.
    #[must_use]
    pub fn new(cause: InvalidOrigin) -> Self {
        Self { cause }
    }
}

impl fmt::Display for NoOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request names no site whose rules could be asked for")
    }
}

impl Error for NoOrigin {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl HostRefused {
    /// A refusal of `origin` because of `why`.
    #[must_use]
    pub fn new(
        origin: Origin,
        why: HostRefusal,
        retry_at: Option<SystemTime>,
        contact: Option<Arc<str>>,
    ) -> Self {
        Self {
            origin,
            why,
            retry_at,
            contact,
        }
    }
}

impl HostRefusal {
    /// The stable name of the cause.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::QueueFull => "queue_full",
            Self::HostsFull => "hosts_full",
            Self::BodyHeld => "body_held",
            Self::CrawlDelayTooLong => "crawl_delay_too_long",
            Self::Blocked => "blocked",
        }
    }
}

impl fmt::Display for HostRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            HostRefusal::Paused => {
                "the site asked for a pause, or its queue is longer than this request may wait"
            }
            HostRefusal::QueueFull => "the host's queue is full",
            HostRefusal::HostsFull => "the table of hosts is full",
            HostRefusal::BodyHeld => "an unread response body of this host holds the place",
            HostRefusal::CrawlDelayTooLong => {
                "robots.txt asks for a longer crawl-delay than this client keeps"
            }
            HostRefusal::Blocked => "the site keeps refusing this client",
        })
    }
}

impl Error for HostRefused {}
