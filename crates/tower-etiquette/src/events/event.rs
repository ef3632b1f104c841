//! What can happen, for whoever counts or traces it.

use std::time::{Duration, SystemTime};

use etiquette_core::Origin;
use etiquette_core::decide::host::Signal;
use etiquette_core::vocabulary::refusal::HostRefusal;

/// Whether events are compiled in.
pub(crate) const ENABLED: bool = cfg!(any(feature = "tracing", feature = "metrics"));

/// What the budgets are kept for whose events these are.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    allow(dead_code, reason = "each listener reads what it needs")
)]
pub(crate) struct EventScope {
    /// `host`, `pause` or `address`: see the [module](super).
    pub(crate) name: &'static str,
    /// Whether metrics carry the host.
    pub(crate) label_hosts: bool,
}

impl Default for EventScope {
    fn default() -> Self {
        Self {
            name: "host",
            label_hosts: false,
        }
    }
}

/// Something that happened.
#[derive(Debug)]
#[cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    allow(dead_code, reason = "each listener reads what it needs")
)]
pub(crate) enum Event<'a> {
    /// In the budget of a host.
    Host {
        scope: EventScope,
        host: &'a str,
        what: HostEvent,
    },
    /// A request is sent again.
    Retried {
        scope: EventScope,
        host: &'a str,
        cause: &'static str,
        attempt: u32,
    },
    /// robots.txt was fetched, or a store knew it.
    RobotsFetched {
        origin: &'a Origin,
        outcome: &'static str,
    },
    /// A page is refused for robots.txt.
    RobotsRefused {
        origin: &'a Origin,
        reason: &'static str,
    },
    /// A response came through the cache.
    Cached { host: &'a str, result: &'static str },
    /// An operation of a store failed.
    StoreFailed {
        store: &'static str,
        doing: &'static str,
    },
}

/// Something that happened in the budget of a host.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    allow(dead_code, reason = "each listener reads what it needs")
)]
pub(crate) enum HostEvent {
    /// A request is queued.
    Queued,
    /// A request starts.
    Started { waited: Duration },
    /// The host does not admit a request.
    Refused {
        why: HostRefusal,
        retry_in: Option<Duration>,
    },
    /// A pause begins, or is prolonged.
    Paused {
        cause: &'static str,
        span: Duration,
        until: SystemTime,
    },
    /// The backoff level rose: requests start at a lower rate from now on.
    BackedOff { backoff_level: u32, rate: f64 },
    /// The host has refused so many pages in a row that the client counts as blocked.
    Blocked,
    /// The backoff level fell.
    Recovered { backoff_level: u32, forgiven: u32 },
}

/// The cause of a pause or a retry, in one word.
pub(crate) fn cause_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Throttled => "throttled",
        Signal::Unavailable => "unavailable",
        Signal::Failed => "failed",
        Signal::Refused => "refused",
        _ => "asked",
    }
}
