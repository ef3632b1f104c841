//! Events for `tracing`.

use std::time::{Duration, SystemTime};

use tracing::{debug, info, warn};

use super::event::{Event, HostEvent};

const BUDGET: &str = "tower_etiquette::host_budget";
const RETRY: &str = "tower_etiquette::retry_after";
const ROBOTS: &str = "tower_etiquette::robots";
const CACHE: &str = "tower_etiquette::conditional_cache";
const STORE: &str = "tower_etiquette::store";

pub(super) fn trace(event: &Event<'_>) {
    match *event {
        Event::Host { scope, host, what } => trace_host(scope.name, host, what),
        Event::Retried {
            host,
            cause,
            attempt,
            ..
        } => {
            info!(target: RETRY, host, cause, attempt, "sends again");
        }
        Event::RobotsFetched { origin, outcome } => {
            debug!(target: ROBOTS, %origin, outcome, "robots.txt");
        }
        Event::RobotsRefused { origin, reason } => {
            info!(target: ROBOTS, %origin, reason, "refused");
        }
        Event::Cached { host, result } => {
            debug!(target: CACHE, host, result, "answered");
        }
        // It is asked again each second for each host that waits, and tells of its outage itself.
        Event::StoreFailed {
            store: store @ "hosts",
            doing,
        } => {
            debug!(target: STORE, store, doing, "store failed");
        }
        Event::StoreFailed { store, doing } => {
            warn!(target: STORE, store, doing, "store failed");
        }
    }
}

fn trace_host(scope: &str, host: &str, what: HostEvent) {
    match what {
        HostEvent::Queued => debug!(target: BUDGET, scope, host, "waits"),
        HostEvent::Started { waited } => {
            let waited_s = waited.as_secs_f64();
            debug!(target: BUDGET, scope, host, waited_s, "starts");
        }
        HostEvent::Refused { why, retry_in } => {
            let (reason, retry_in_s) = (why.kind(), retry_in.map(|span| span.as_secs_f64()));
            info!(target: BUDGET, scope, host, reason, retry_in_s, "refused");
        }
        HostEvent::Paused { cause, span, until } => {
            let (for_s, until_unix) = (span.as_secs_f64(), unix(until));
            info!(target: BUDGET, scope, host, cause, for_s, until_unix, "paused");
        }
        HostEvent::BackedOff {
            backoff_level,
            rate,
        } => {
            info!(target: BUDGET, scope, host, backoff_level, rate, "slowed down");
        }
        HostEvent::Blocked => warn!(target: BUDGET, scope, host, "blocked"),
        HostEvent::Recovered {
            backoff_level,
            forgiven,
        } => {
            info!(target: BUDGET, scope, host, backoff_level, forgiven, "recovers");
        }
    }
}

fn unix(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}
