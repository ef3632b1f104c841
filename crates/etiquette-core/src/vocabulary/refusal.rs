//! Refusals: why a request was not sent, or its response not read.
//!
//! Each layer has a small leaf error; [`Refusal`] is the umbrella over them, and [`Refusal::find`] finds it in whatever
//! boxes an error has been through. A refusal names the origin, the cause, the deciding rule if any, when to come back
//! if known, and where the client can be reached.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use etiquette_robots::{Rule, Verdict};

use crate::decide::accept::TypeRefused;
use crate::decide::address::AddressRefused;
use crate::decide::preferences::UseRefused;
use crate::decide::robots_txt::FetchFailure;
use crate::field::date;
use crate::vocabulary::identity::NameRefused;
use crate::vocabulary::purpose::GrantRefused;
use crate::{InvalidOrigin, Origin};

/// Why a layer did not send a request, or did not read its response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request has no origin that rules or budgets could belong to.
    NoOrigin(NoOrigin),
    /// A rule of robots.txt forbids the request.
    Disallowed(Disallowed),
    /// The site's robots.txt has no outcome yet, so nothing may be requested.
    RobotsUnreachable(RobotsUnreachable),
    /// The request would not go under the identity's name.
    Name(NameRefused),
    /// No grant covers the page that a person is said to have asked for.
    Grant(GrantRefused),
    /// The type of the response is not in Accept.
    Type(TypeRefused),
    /// The site does not want its content to be used as the client declared.
    Use(UseRefused),
    /// The request could not be signed.
    Unsigned(Unsigned),
    /// The host's budget, pause or queue does not admit the request.
    Host(HostRefused),
    /// The caller wanted a stored response only, and there is none.
    NotStored(NotStored),
    /// The host's address is not public, and only public ones are connected to.
    Address(AddressRefused),
}

/// A rule of robots.txt forbids the request (RFC 9309, 2.2.2).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Disallowed {
    /// The origin whose rules these are.
    pub origin: Origin,
    /// The deciding rule, its line and its group.
    pub verdict: Verdict,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// The site's robots.txt has no outcome, so nothing may be requested (RFC 9309, 2.3.1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RobotsUnreachable {
    /// The origin whose rules are unknown.
    pub origin: Origin,
    /// Why the last fetch failed.
    pub failure: FetchFailure,
    /// The wall time from which robots.txt may be fetched again.
    pub retry_at: Option<SystemTime>,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// The request said `only-if-cached` (RFC 9111, 5.2.1.7), and nothing usable is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotStored {
    /// The origin of the request.
    pub origin: Origin,
}

/// The request's URI has no origin, and none is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoOrigin {
    /// What the URI lacks.
    pub cause: InvalidOrigin,
}

/// The request lacks a part that its signature shall cover (RFC 9421, 2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unsigned {
    /// The origin of the request, if it names one.
    pub origin: Option<Origin>,
    /// The component, as it would stand in Signature-Input.
    pub component: String,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// A host does not admit a request now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostRefused {
    /// The origin of the request.
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
    /// A caller holds an unread body of this host, and with it the permit that this request waits for.
    UnreadBody,
    /// robots.txt asks for a longer Crawl-delay than the client is willing to keep.
    CrawlDelayTooLong,
    /// The site has refused so many requests in a row that it is blocked for a while.
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
            // `Box<Refusal>` is an error of its own type, and its `source` is that of the refusal in it.
            if let Some(refusal) = error.downcast_ref::<Box<Self>>() {
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
            Self::Disallowed(_) => "disallowed",
            Self::RobotsUnreachable(_) => "robots_unreachable",
            Self::Name(leaf) => leaf.why.kind(),
            Self::Grant(leaf) => leaf.why.kind(),
            Self::Type(leaf) => leaf.why.kind(),
            Self::Use(_) => "unwanted_use",
            Self::Unsigned(_) => "unsigned",
            Self::Host(leaf) => leaf.why.kind(),
            Self::NotStored(_) => "not_stored",
            Self::Address(_) => "address_not_public",
        }
    }

    /// The origin of the request, if it is known.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::NoOrigin(_) => None,
            Self::Disallowed(leaf) => Some(&leaf.origin),
            Self::RobotsUnreachable(leaf) => Some(&leaf.origin),
            Self::Name(leaf) => leaf.origin.as_ref(),
            Self::Grant(leaf) => leaf.origin.as_ref(),
            Self::Type(leaf) => leaf.origin.as_ref(),
            Self::Use(leaf) => leaf.origin.as_ref(),
            Self::Unsigned(leaf) => leaf.origin.as_ref(),
            Self::Host(leaf) => Some(&leaf.origin),
            Self::NotStored(leaf) => Some(&leaf.origin),
            Self::Address(leaf) => leaf.origin.as_ref(),
        }
    }

    /// When to come back, if it is known.
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        match self {
            Self::NoOrigin(_)
            | Self::Name(_)
            | Self::Grant(_)
            | Self::Type(_)
            | Self::Use(_)
            | Self::Unsigned(_)
            | Self::Disallowed(_)
            | Self::NotStored(_)
            | Self::Address(_) => None,
            Self::RobotsUnreachable(leaf) => leaf.retry_at,
            Self::Host(leaf) => leaf.retry_at,
        }
    }

    /// The rule of robots.txt that decided, if one did.
    #[must_use]
    pub fn rule(&self) -> Option<&Rule> {
        match self {
            Self::Disallowed(leaf) => leaf.verdict.rule(),
            _ => None,
        }
    }

    /// Where the client's operator can be reached, as its identity publishes it.
    #[must_use]
    pub fn contact(&self) -> Option<&str> {
        match self {
            Self::NoOrigin(_) | Self::NotStored(_) => None,
            Self::Disallowed(leaf) => leaf.contact.as_deref(),
            Self::RobotsUnreachable(leaf) => leaf.contact.as_deref(),
            Self::Name(leaf) => leaf.contact.as_deref(),
            Self::Grant(leaf) => leaf.contact.as_deref(),
            Self::Type(leaf) => leaf.contact.as_deref(),
            Self::Use(leaf) => leaf.contact.as_deref(),
            Self::Unsigned(leaf) => leaf.contact.as_deref(),
            Self::Host(leaf) => leaf.contact.as_deref(),
            Self::Address(leaf) => leaf.contact.as_deref(),
        }
    }
}

impl Refusal {
    /// All of it in one line, for people: the origin, the cause, the rule, when to retry, and the contact of the client.
    #[must_use]
    pub fn explain(&self) -> impl fmt::Display + '_ {
        Explanation(self)
    }
}

struct Explanation<'a>(&'a Refusal);

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = self.0;
        write!(f, "{refusal}")?;
        let mut cause = refusal.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        if let Some(at) = refusal.retry_at() {
            write!(f, "; retry at {}", date::format(at))?;
        }
        if let Some(contact) = refusal.contact() {
            write!(f, "; contact: {contact}")?;
        }
        Ok(())
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
            Self::Disallowed(leaf) => leaf,
            Self::RobotsUnreachable(leaf) => leaf,
            Self::Name(leaf) => leaf,
            Self::Grant(leaf) => leaf,
            Self::Type(leaf) => leaf,
            Self::Use(leaf) => leaf,
            Self::Unsigned(leaf) => leaf,
            Self::Host(leaf) => leaf,
            Self::NotStored(leaf) => leaf,
            Self::Address(leaf) => leaf,
        })
    }
}

impl From<NotStored> for Refusal {
    fn from(leaf: NotStored) -> Self {
        Self::NotStored(leaf)
    }
}

impl NotStored {
    /// A refusal to send a request to `origin`.
    #[must_use]
    pub fn new(origin: Origin) -> Self {
        Self { origin }
    }
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no usable stored response, and only-if-cached forbids a request")
    }
}

impl Error for NotStored {}

impl From<NoOrigin> for Refusal {
    fn from(leaf: NoOrigin) -> Self {
        Self::NoOrigin(leaf)
    }
}

impl From<Disallowed> for Refusal {
    fn from(leaf: Disallowed) -> Self {
        Self::Disallowed(leaf)
    }
}

impl From<RobotsUnreachable> for Refusal {
    fn from(leaf: RobotsUnreachable) -> Self {
        Self::RobotsUnreachable(leaf)
    }
}

impl From<NameRefused> for Refusal {
    fn from(leaf: NameRefused) -> Self {
        Self::Name(leaf)
    }
}

impl From<GrantRefused> for Refusal {
    fn from(leaf: GrantRefused) -> Self {
        Self::Grant(leaf)
    }
}

impl From<TypeRefused> for Refusal {
    fn from(leaf: TypeRefused) -> Self {
        Self::Type(leaf)
    }
}

impl From<UseRefused> for Refusal {
    fn from(leaf: UseRefused) -> Self {
        Self::Use(leaf)
    }
}

impl From<Unsigned> for Refusal {
    fn from(leaf: Unsigned) -> Self {
        Self::Unsigned(leaf)
    }
}

impl From<AddressRefused> for Refusal {
    fn from(leaf: AddressRefused) -> Self {
        Self::Address(leaf)
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
        f.write_str("the request has no origin")
    }
}

impl Error for NoOrigin {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl Disallowed {
    /// A refusal by `verdict` over `origin`.
    #[must_use]
    pub fn new(origin: Origin, verdict: Verdict, contact: Option<Arc<str>>) -> Self {
        Self {
            origin,
            verdict,
            contact,
        }
    }
}

impl fmt::Display for Disallowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verdict.rule() {
            Some(rule) => write!(f, "robots.txt disallows it, line {}: {rule}", rule.line()),
            None => f.write_str("robots.txt disallows it"),
        }
    }
}

impl Error for Disallowed {}

impl RobotsUnreachable {
    /// A refusal because the last fetch of the robots.txt of `origin` ended in `failure`.
    #[must_use]
    pub fn new(
        origin: Origin,
        failure: FetchFailure,
        retry_at: Option<SystemTime>,
        contact: Option<Arc<str>>,
    ) -> Self {
        Self {
            origin,
            failure,
            retry_at,
            contact,
        }
    }
}

impl fmt::Display for RobotsUnreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "robots.txt could not be fetched: {}", self.failure)
    }
}

impl Error for RobotsUnreachable {}

impl Unsigned {
    /// A refusal because the request lacks `component`.
    #[must_use]
    pub fn new(
        origin: Option<Origin>,
        component: impl Into<String>,
        contact: Option<Arc<str>>,
    ) -> Self {
        Self {
            origin,
            component: component.into(),
            contact,
        }
    }
}

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the signature covers {}, which the request does not have",
            self.component
        )
    }
}

impl Error for Unsigned {}

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
            Self::UnreadBody => "unread_body",
            Self::CrawlDelayTooLong => "crawl_delay_too_long",
            Self::Blocked => "blocked",
        }
    }
}

impl fmt::Display for HostRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            HostRefusal::Paused => "the host is paused, or its queue is longer than max_wait",
            HostRefusal::QueueFull => "the host's queue is full",
            HostRefusal::HostsFull => "the table of hosts is full",
            HostRefusal::UnreadBody => "an unread response body of this host holds the permit",
            HostRefusal::CrawlDelayTooLong => {
                "the Crawl-delay of robots.txt is longer than this client keeps"
            }
            HostRefusal::Blocked => {
                "the host is blocked: it answers 401, 403 or 451 to this client"
            }
        })
    }
}

impl Error for HostRefused {}
