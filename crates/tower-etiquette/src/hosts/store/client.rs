//! The store of a process's hosts, and the reports to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{HostPolicy, ResponseRecord};
use etiquette_core::store::host::{HostEvent, HostReport, HostStore, LeaseId, LocalView};
use etiquette_core::{Clock, Origin};
use tokio::runtime::Handle;

use crate::events::{self, EventScope};
use crate::hosts::entry::Host;

/// The store of these hosts.
#[derive(Debug)]
pub(crate) struct StoreClient {
    pub(super) store: Arc<dyn HostStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) scope: EventScope,
    next_lease: AtomicU64,
}

impl StoreClient {
    pub(crate) fn new(
        store: Arc<dyn HostStore>,
        clock: Arc<dyn Clock>,
        scope: EventScope,
        first_lease: u64,
    ) -> Self {
        Self {
            store,
            clock,
            scope,
            next_lease: AtomicU64::new(first_lease),
        }
    }

    /// Reports a response, and what became of a permit; whether the store took it.
    pub(crate) async fn report(&self, host: &Host, report: HostReport) -> bool {
        let local = local_view(host, &host.policy, self.now());
        let reported = self.store.report(local, report);
        events::store_result("hosts", "report a response", reported.await).is_some()
    }

    /// Reports in the background. Without a runtime nobody can: the lease expires by itself.
    pub(crate) fn report_later(self: &Arc<Self>, host: &Arc<Host>, report: HostReport) {
        if let Ok(runtime) = Handle::try_current() {
            let (client, host) = (Arc::clone(self), Arc::clone(host));
            runtime.spawn(async move {
                client.report(&host, report).await;
            });
        }
    }

    pub(crate) fn new_lease(&self) -> LeaseId {
        LeaseId(self.next_lease.fetch_add(1, Ordering::Relaxed))
    }

    /// When a permit that was asked for, or renewed, at `asked` is over for us: a while before it is for the store.
    pub(super) fn lease_end(&self, asked: Instant) -> Instant {
        let lease = self.store.lease();
        let margin = (lease / 10).max(Duration::from_millis(20));
        asked + lease.saturating_sub(margin)
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now().monotonic
    }
}

/// What this process knows of a host, relative to the present.
pub(super) fn local_view<'a>(
    host: &'a Host,
    policy: &'a HostPolicy,
    now: Instant,
) -> LocalView<'a> {
    let state = &host.lock().budget.state;
    let since = |at: Instant| now.saturating_duration_since(at);
    let mut view = LocalView::new(&host.name, policy);
    if let Some(until) = state.paused_until(now) {
        view.pause = until - now;
    }
    view.since_start = state.last_start().map(since);
    view.since_end = state.last_end().map(since);
    view
}

/// A number for an origin that all processes derive alike (FNV-1a).
pub(crate) fn origin_number(origin: &Origin) -> u64 {
    let text = origin.to_string();
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A response as it is reported to others.
pub(crate) fn event_of(record: &ResponseRecord, now: Instant) -> HostEvent {
    let since = now.saturating_duration_since(record.started);
    let mut event = HostEvent::new(record.response, record.page, record.jitter, since);
    event.latency = record.timed.then_some(since);
    event
}
