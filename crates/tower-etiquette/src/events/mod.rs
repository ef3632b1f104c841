//! What happens in the layers, told to whoever listens: `tracing` events and `metrics`, each behind the feature of its
//! name. Without them nothing of it is compiled; with them nothing else changes.
//!
//! # Events
//! Feature `tracing`. The target is the module of the layer, so that one directive such as
//! `tower_etiquette::robots=debug` chooses it. `host` is the name under which a host's budget stands, `origin` is scheme,
//! host and port: no event carries a path, a query, a header or a credential. `scope` is `host`; `pause` where a retry
//! layer held a request for a pause, outside of any budget; `address` where hosts on one address share a budget.
//!
//! | target | level | message | fields |
//! | --- | --- | --- | --- |
//! | `tower_etiquette::host_budget` | DEBUG | `waits` | `scope`, `host` |
//! | `tower_etiquette::host_budget` | DEBUG | `starts` | `scope`, `host`, `waited_s` |
//! | `tower_etiquette::host_budget` | INFO | `refused` | `scope`, `host`, `reason`, `retry_in_s` |
//! | `tower_etiquette::host_budget` | INFO | `paused` | `scope`, `host`, `cause`, `for_s`, `until_unix` |
//! | `tower_etiquette::host_budget` | INFO | `slowed down` | `scope`, `host`, `backoff_level`, `rate` |
//! | `tower_etiquette::host_budget` | WARN | `blocked` | `scope`, `host` |
//! | `tower_etiquette::host_budget` | INFO | `recovers` | `scope`, `host`, `backoff_level`, `forgiven` |
//! | `tower_etiquette::retry_after` | INFO | `sends again` | `host`, `cause`, `attempt` |
//! | `tower_etiquette::robots` | DEBUG | `robots.txt` | `origin`, `outcome` |
//! | `tower_etiquette::robots` | INFO | `refused` | `origin`, `reason` |
//! | `tower_etiquette::conditional_cache` | DEBUG | `answered` | `host`, `result` |
//! | `tower_etiquette::store` | WARN, DEBUG for `hosts` | `store failed` | `store`, `doing` |
//!
//! The numbers are seconds; `until_unix` is the wall time in seconds since 1970. `retry_in_s` is absent where nobody
//! knows when to come back. A recovery is told with the first answer after it, because time alone brings it.
//!
//! # Metrics
//! Feature `metrics`, for whatever recorder the program installs. `metrics` has the same table as `events::METRICS`,
//! and `events::describe` hands it to the recorder.
//!
//! | metric | kind | labels | what it counts |
//! | --- | --- | --- | --- |
//! | `etiquette_starts_total` | counter | `scope` | requests that had their turn |
//! | `etiquette_wait_seconds` | histogram | `scope` | how long they had waited for it |
//! | `etiquette_refused_total` | counter | `scope`, `reason` | requests that a host did not admit |
//! | `etiquette_pauses_total` | counter | `scope`, `cause` | pauses begun or prolonged |
//! | `etiquette_pause_seconds` | histogram | `scope`, `cause` | how far ahead they end |
//! | `etiquette_backoffs_total` | counter | `scope` | times that a host was slowed down |
//! | `etiquette_blocks_total` | counter | `scope` | runs of refused pages that count as being blocked |
//! | `etiquette_recoveries_total` | counter | `scope` | backoff levels forgiven after successes |
//! | `etiquette_retries_total` | counter | `cause` | requests sent again |
//! | `etiquette_robots_readings_total` | counter | `outcome` | readings of robots.txt |
//! | `etiquette_robots_refused_total` | counter | `reason` | pages refused for robots.txt |
//! | `etiquette_cache_answers_total` | counter | `result` | answers that went through the cache |
//! | `etiquette_store_failures_total` | counter | `store` | operations of a store that failed |
//!
//! No metric has the host as a label: a crawl has too many of them. `HostsBuilder::label_hosts` adds `host` to those of
//! its budget and to the retries, for programs that ask few hosts.
//!
//! # Words
//! | field | words |
//! | --- | --- |
//! | `reason` of a host | `paused`, `queue_full`, `hosts_full`, `unread_body_timeout`, `crawl_delay_too_long`, `blocked` |
//! | `cause` | `throttled`, `unavailable`, `failed`, `refused`; `asked` for a Retry-After on any other answer; `shared` for what another process learnt |
//! | `outcome` | `rules`, `none`, `closed`, `unchanged`, `unreachable`, `not_admitted`; `stored` where a store knew it |
//! | `reason` of robots.txt | `disallowed`, `robots_unreachable` |
//! | `result` | `hit`, `stale`, `revalidated`, `miss`, `collapsed`, `not_stored` |
//! | `store` | `hosts`, `journal`, `responses`, `robots` |

#[cfg(feature = "metrics")]
mod count;
mod host;
#[cfg(feature = "tracing")]
mod trace;

use std::time::{Duration, SystemTime};

use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::decide::host::Signal;
use etiquette_core::vocabulary::refusal::HostRefusal;
use etiquette_core::{Origin, Refusal};

#[cfg(feature = "metrics")]
pub use count::{METRICS, Metric, describe};
pub(crate) use host::{Changes, Standing, Told};

/// Whether anybody can listen.
pub(crate) const ON: bool = cfg!(any(feature = "tracing", feature = "metrics"));

/// How the events of some hosts are told.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    allow(dead_code, reason = "each listener reads what it needs")
)]
pub(crate) struct Voice {
    /// Of what a budget is kept.
    pub(crate) scope: &'static str,
    /// Whether metrics carry the host.
    pub(crate) label_hosts: bool,
}

impl Default for Voice {
    fn default() -> Self {
        Self {
            scope: "host",
            label_hosts: false,
        }
    }
}

/// A happening.
#[derive(Debug)]
#[cfg_attr(
    not(all(feature = "tracing", feature = "metrics")),
    allow(dead_code, reason = "each listener reads what it needs")
)]
pub(crate) enum Event<'a> {
    /// A request has to wait for its host.
    Waits { voice: Voice, host: &'a str },
    /// It starts.
    Starts {
        voice: Voice,
        host: &'a str,
        waited: Duration,
    },
    /// The host does not admit it.
    Refused {
        voice: Voice,
        host: &'a str,
        why: HostRefusal,
        retry_in: Option<Duration>,
    },
    /// The host is left alone for a while.
    Paused {
        voice: Voice,
        host: &'a str,
        cause: &'static str,
        span: Duration,
        until: SystemTime,
    },
    /// It is asked more slowly from now on.
    Struck {
        voice: Voice,
        host: &'a str,
        backoff_level: u32,
        rate: f64,
    },
    /// It has refused so many pages in a row that the client counts as blocked.
    Blocked { voice: Voice, host: &'a str },
    /// The backoff level fell to this.
    Recovers {
        voice: Voice,
        host: &'a str,
        backoff_level: u32,
        forgiven: u32,
    },
    /// A request is sent again.
    Retried {
        voice: Voice,
        host: &'a str,
        cause: &'static str,
        attempt: u32,
    },
    /// robots.txt was read, or somebody knew it.
    RobotsRead {
        origin: &'a Origin,
        outcome: &'static str,
    },
    /// A page is refused for robots.txt.
    RobotsRefused {
        origin: &'a Origin,
        reason: &'static str,
    },
    /// An answer came through the cache.
    Cached { host: &'a str, result: &'static str },
    /// A store failed.
    StoreFailed {
        store: &'static str,
        doing: &'static str,
    },
}

/// Tells what happened. Never called with a lock held: who listens is the program's code.
pub(crate) fn tell<'a>(event: impl FnOnce() -> Event<'a>) {
    if ON {
        let event = event();
        #[cfg(feature = "tracing")]
        trace::trace(&event);
        #[cfg(feature = "metrics")]
        count::count(&event);
        let _ = &event;
    }
}

/// Tells of a start.
pub(crate) fn starts(voice: Voice, host: &str, waited: Duration) {
    tell(|| Event::Starts {
        voice,
        host,
        waited,
    });
}

/// Tells that a host does not admit a request, and after how long to come back.
pub(crate) fn refused(voice: Voice, host: &str, why: HostRefusal, retry_in: Option<Duration>) {
    tell(|| Event::Refused {
        voice,
        host,
        why,
        retry_in,
    });
}

/// What a store returned; tells of a failure.
pub(crate) fn taken<T>(
    store: &'static str,
    doing: &'static str,
    outcome: Result<T, impl Sized>,
) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(_) => {
            store_failed(store, doing);
            None
        }
    }
}

pub(crate) fn store_failed(store: &'static str, doing: &'static str) {
    tell(|| Event::StoreFailed { store, doing });
}

/// Tells of a page that is refused for robots.txt. Other refusals are told by who refuses.
pub(crate) fn robots_refused(refusal: &Refusal) {
    let origin = match refusal {
        Refusal::Disallowed(leaf) => &leaf.origin,
        Refusal::RobotsUnreachable(leaf) => &leaf.origin,
        _ => return,
    };
    let reason = refusal.kind();
    tell(|| Event::RobotsRefused { origin, reason });
}

/// What the cache did, in one word.
pub(crate) fn result_of(status: CacheStatus) -> &'static str {
    match status {
        CacheStatus::Hit { ttl } if ttl >= 0 => "hit",
        CacheStatus::Hit { .. } | CacheStatus::StaleOnError { .. } => "stale",
        CacheStatus::Validated { collapsed, .. } | CacheStatus::Forwarded { collapsed, .. }
            if collapsed =>
        {
            "collapsed"
        }
        CacheStatus::Validated { .. } => "revalidated",
        _ => "miss",
    }
}

/// What an answer complains of, in one word.
pub(crate) fn cause_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Throttled => "throttled",
        Signal::Unavailable => "unavailable",
        Signal::Failed => "failed",
        Signal::Refused => "refused",
        _ => "asked",
    }
}
