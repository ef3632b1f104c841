//! Emits events. Never called with a lock held: what listens is the program's code.

use std::time::Duration;

use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::decide::host::Signal;
use etiquette_core::vocabulary::refusal::HostRefusal;
use etiquette_core::{Origin, Refusal};

use super::event::{ENABLED, Event, EventScope, HostEvent, cause_of};

fn emit(event: &Event<'_>) {
    #[cfg(feature = "tracing")]
    super::trace::trace(event);
    #[cfg(feature = "metrics")]
    super::count::count(event);
    let _ = event;
}

pub(super) fn emit_host(scope: EventScope, host: &str, what: HostEvent) {
    emit(&Event::Host { scope, host, what });
}

/// A request is queued at its host.
pub(crate) fn queued(scope: EventScope, host: &str) {
    emit_host(scope, host, HostEvent::Queued);
}

/// A request starts.
pub(crate) fn started(scope: EventScope, host: &str, waited: Duration) {
    emit_host(scope, host, HostEvent::Started { waited });
}

/// A host does not admit a request; after `retry_in` it may.
pub(crate) fn refused(scope: EventScope, host: &str, why: HostRefusal, retry_in: Option<Duration>) {
    emit_host(scope, host, HostEvent::Refused { why, retry_in });
}

/// A request is sent again, as its `attempt`th attempt.
pub(crate) fn retried(scope: EventScope, host: &str, cause: Signal, attempt: u32) {
    let cause = cause_of(cause);
    emit(&Event::Retried {
        scope,
        host,
        cause,
        attempt,
    });
}

/// A fetch of robots.txt has ended.
pub(crate) fn robots_fetched(origin: &Origin, outcome: &'static str) {
    emit(&Event::RobotsFetched { origin, outcome });
}

/// A page is refused for robots.txt. Other refusals have events of their own where they are made.
pub(crate) fn robots_refused(refusal: &Refusal) {
    let origin = match refusal {
        Refusal::Disallowed(leaf) => &leaf.origin,
        Refusal::RobotsUnreachable(leaf) => &leaf.origin,
        _ => return,
    };
    let reason = refusal.kind();
    emit(&Event::RobotsRefused { origin, reason });
}

/// A response came through the cache; `None` where it was not looked up at all.
pub(crate) fn cached(host: &str, status: Option<CacheStatus>) {
    if ENABLED {
        let result = status.map_or("not_stored", cache_result);
        emit(&Event::Cached { host, result });
    }
}

/// What the cache did, in one word.
fn cache_result(status: CacheStatus) -> &'static str {
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

/// What a store returned; a failure is an event and `None`.
pub(crate) fn store_result<T>(
    store: &'static str,
    doing: &'static str,
    result: Result<T, impl Sized>,
) -> Option<T> {
    if result.is_err() {
        store_failed(store, doing);
    }
    result.ok()
}

/// An operation of a store failed.
pub(crate) fn store_failed(store: &'static str, doing: &'static str) {
    emit(&Event::StoreFailed { store, doing });
}
