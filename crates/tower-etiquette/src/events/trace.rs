//! Events for `tracing`.

use std::time::{Duration, SystemTime};

use tracing::{debug, info, warn};

use super::Event;

const BUDGET: &str = "tower_etiquette::host_budget";
const RETRY: &str = "tower_etiquette::retry_after";
const ROBOTS: &str = "tower_etiquette::robots";
const CACHE: &str = "tower_etiquette::conditional_cache";
const STORE: &str = "tower_etiquette::store";

pub(super) fn trace(event: &Event<'_>) {
    match *event {
        Event::Waits { voice, host } => {
            debug!(target: BUDGET, scope = voice.scope, host, "waits");
        }
        Event::Starts {
            voice,
            host,
            waited,
        } => {
            let waited_s = waited.as_secs_f64();
            debug!(target: BUDGET, scope = voice.scope, host, waited_s, "starts");
        }
        Event::Refused {
            voice,
            host,
            why,
            retry_in,
        } => {
            let (reason, retry_in_s) = (why.kind(), retry_in.map(|span| span.as_secs_f64()));
            info!(target: BUDGET, scope = voice.scope, host, reason, retry_in_s, "refused");
        }
        Event::Paused {
            voice,
            host,
            cause,
            span,
            until,
        } => {
            let (for_s, until_unix) = (span.as_secs_f64(), unix(until));
            info!(target: BUDGET, scope = voice.scope, host, cause, for_s, until_unix, "paused");
        }
        Event::Struck {
            voice,
            host,
            backoff_level,
            rate,
        } => {
            info!(target: BUDGET, scope = voice.scope, host, backoff_level, rate, "slowed down");
        }
        Event::Blocked { voice, host } => {
            warn!(target: BUDGET, scope = voice.scope, host, "blocked");
        }
        Event::Recovers {
            voice,
            host,
            backoff_level,
            forgiven,
        } => {
            info!(target: BUDGET, scope = voice.scope, host, backoff_level, forgiven, "recovers");
        }
        Event::Retried {
            host,
            cause,
            attempt,
            ..
        } => {
            info!(target: RETRY, host, cause, attempt, "sends again");
        }
        Event::RobotsRead { origin, outcome } => {
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

fn unix(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}
