//! Asking the store for a start.

use std::sync::Arc;
use std::time::Instant;

use etiquette_core::decide::host::HostPolicy;
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, LeaseId, LeaseUpdate, SharedView,
};

use super::client::{StoreClient, local_view};
use super::lease::Lease;
use super::view::{ASK_AGAIN, StoreView};
use crate::events;
use crate::hosts::budget::Terms;
use crate::hosts::entry::Host;

/// What asking came to.
#[derive(Debug)]
pub(crate) enum StoreReply {
    /// The request may start, under a lease where the store gave it a permit.
    Start(Option<Lease>),
    /// Back to the queue, whose budget knows for how long.
    Wait,
}

/// Asks for a start of a request that has its turn in the local queue, under the host's policy or a stricter one. `jitter`
/// is a number from 0 to 1.
///
/// # Cancel safety
/// Dropped, it lets the next request of the host ask, and reports that the permit is not used.
pub(crate) async fn acquire(
    client: &Arc<StoreClient>,
    host: &Arc<Host>,
    policy: &HostPolicy,
    mut request: AcquireRequest,
    jitter: f64,
) -> StoreReply {
    let pauses_only = request.options.pauses_only;
    let mut pending = Pending {
        client,
        host,
        unused: (!pauses_only).then_some(request.lease),
    };
    let asked_at = client.now();
    pending.change_view(|view| {
        view.asking = true;
        request.started = view.started;
    });
    let local = local_view(host, policy, asked_at);
    let acquired = client.store.acquire(local, request).await;
    let now = client.now();
    match acquired {
        Ok(Acquired::Granted(shared)) => {
            pending.learn(now, &shared, |view| {
                view.started = shared.started;
                view.not_before = None;
            });
            let end = client.lease_end(asked_at);
            if pauses_only {
                return StoreReply::Start(None);
            }
            if now >= end {
                return StoreReply::Wait;
            }
            pending.unused = None;
            drop(pending);
            let (client, host) = (Arc::clone(client), Arc::clone(host));
            return StoreReply::Start(Some(Lease::new(client, host, request.lease, end)));
        }
        Ok(Acquired::Wait(wait, shared)) => {
            pending.unused = None;
            pending.learn(now, &shared, |view| view.wait(now, wait, jitter));
        }
        Ok(_) => pending.change_view(|view| view.not_before = Some(now + ASK_AGAIN)),
        Err(_) => {
            events::store_failed("hosts", "ask for a start");
            let terms = Terms::new(policy, now, request.options);
            let budget = &mut host.lock().budget;
            match budget.retry_store_at(terms, client.store.outage(), jitter) {
                Some(at) => budget.store().not_before = Some(at),
                None => return StoreReply::Start(None),
            }
        }
    }
    StoreReply::Wait
}

/// A question to the store that is not answered yet.
#[derive(Debug)]
struct Pending<'a> {
    client: &'a Arc<StoreClient>,
    host: &'a Arc<Host>,
    /// A permit that may be taken and that nobody uses.
    unused: Option<LeaseId>,
}

impl Pending<'_> {
    fn change_view(&self, change: impl FnOnce(&mut StoreView)) {
        change(self.host.lock().budget.store());
    }

    /// Takes over what all processes know together, and then changes the view of it.
    fn learn(&self, now: Instant, shared: &SharedView, change: impl FnOnce(&mut StoreView)) {
        let changes = {
            let budget = &mut self.host.lock().budget;
            let changes = budget.learn(now, shared);
            change(budget.store());
            changes
        };
        changes.emit(self.client.scope, &self.host.name, &self.client.clock);
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.host.with_queue(None, |host| {
            host.budget.store().asking = false;
            host.queue.wake_head(host.wakers);
        });
        if let Some(id) = self.unused {
            let report = HostReport::new(Some(LeaseUpdate::Unused(id)), None);
            self.client.report_later(self.host, report);
        }
    }
}
