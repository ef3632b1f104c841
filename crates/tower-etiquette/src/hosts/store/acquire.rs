//! Asking the store for a start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{HostPolicy, StartOptions};
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, LeaseId, LeaseUpdate, SharedView,
};

use super::client::{LocalTimes, StoreClient};
use super::lease::Lease;
use super::view::{ASK_AGAIN, StoreView};
use crate::events;
use crate::hosts::entry::Host;

/// A request that has its turn in the local queue asks for a start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartQuestion<'a> {
    pub(crate) client: &'a Arc<StoreClient>,
    pub(crate) host: &'a Arc<Host>,
    /// The host's, or a stricter one.
    pub(crate) policy: &'a HostPolicy,
    pub(crate) ask: StartOptions,
    pub(crate) crawl_delay: Option<(u64, Option<Duration>)>,
    pub(crate) counted: bool,
    /// A number from 0 to 1 that spreads what processes do at once.
    pub(crate) jitter: f64,
}

/// What asking came to.
#[derive(Debug)]
pub(crate) enum StoreReply {
    /// It may start, under a lease where the store gave it a permit.
    Start(Option<Lease>),
    /// Back to the queue, whose budget knows for how long.
    Wait,
}

impl StartQuestion<'_> {
    /// # Cancel safety
    /// Dropped, it lets the next request of the host ask, and reports that the permit is not used.
    pub(crate) async fn send(self) -> StoreReply {
        let Self { client, host, .. } = self;
        let id = client.new_lease();
        let mut question = AcquireRequest::new(id, self.ask);
        question.crawl_delay = self.crawl_delay;
        question.counted = self.counted;
        let mut pending = Pending {
            question: &self,
            unused: (!self.ask.pauses_only).then_some(id),
        };
        let asked_at = client.now();
        let local = {
            let budget = &mut host.lock().budget;
            budget.store().asking = true;
            question.started = budget.store().started;
            LocalTimes::of(&budget.state, asked_at)
        };
        let acquired = client
            .store
            .acquire(local.view(host, self.policy), question);
        let acquired = acquired.await;
        let now = client.now();
        match acquired {
            Ok(Acquired::Granted(shared)) => pending.granted(id, asked_at, now, &shared),
            Ok(Acquired::Wait(wait, shared)) => {
                pending.unused = None;
                self.learn(now, &shared, |view| view.wait(now, wait, self.jitter));
                StoreReply::Wait
            }
            Ok(_) => {
                self.wait_until(now + ASK_AGAIN);
                StoreReply::Wait
            }
            Err(_) => self.failed(now),
        }
    }

    /// The store failed: the process may have to go on without it.
    fn failed(&self, now: Instant) -> StoreReply {
        events::store_failed("hosts", "ask for a start");
        let outage = self.client.store.outage();
        let retry_at = {
            let budget = &mut self.host.lock().budget;
            budget.retry_store_at(self.policy, now, self.ask, outage, self.jitter)
        };
        match retry_at {
            Some(at) => {
                self.wait_until(at);
                StoreReply::Wait
            }
            None => StoreReply::Start(None),
        }
    }

    fn wait_until(&self, at: Instant) {
        self.host.lock().budget.store().not_before = Some(at);
    }

    /// Takes over what all processes know together, and `change`s the view of it.
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

/// A question that is not answered yet.
#[derive(Debug)]
struct Pending<'a> {
    question: &'a StartQuestion<'a>,
    /// A permit that may be taken and that nobody uses.
    unused: Option<LeaseId>,
}

impl Pending<'_> {
    /// The request may start, if the reply did not take longer than the permit lasts.
    fn granted(
        mut self,
        id: LeaseId,
        asked_at: Instant,
        now: Instant,
        shared: &SharedView,
    ) -> StoreReply {
        let StartQuestion { client, host, .. } = *self.question;
        self.question.learn(now, shared, |view| {
            view.started = shared.started;
            view.not_before = None;
        });
        if self.question.ask.pauses_only {
            return StoreReply::Start(None);
        }
        let end = client.lease_end(asked_at);
        if now >= end {
            return StoreReply::Wait;
        }
        self.unused = None;
        drop(self);
        let lease = Lease::new(Arc::clone(client), Arc::clone(host), id, end);
        StoreReply::Start(Some(lease))
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let StartQuestion { client, host, .. } = *self.question;
        host.store_replied();
        if let Some(id) = self.unused {
            let report = HostReport::new(Some(LeaseUpdate::Unused(id)), None);
            client.report_later(host, report);
        }
    }
}
