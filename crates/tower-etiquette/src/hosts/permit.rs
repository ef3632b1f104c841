//! The right to be under way at a host, from the start to the end of the body.

use std::net::IpAddr;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::decide::host::{HostResponse, Pace, ResponseRecord, Signal, StartOptions};
use etiquette_core::store::host::{HostEvent, HostReport};
use http::{HeaderMap, StatusCode};

use super::store::{JournalWrite, Lease, event_of};
use super::target::Target;
use crate::visit::Visit;

/// Held by a request that was started. Dropping it gives its permit back and lets the next one start.
#[derive(Debug)]
pub(crate) struct Permit {
    target: Target,
    started: Instant,
    pub(super) waited: Duration,
    pub(super) page: bool,
    /// It holds a permit, and was not only held by a pause.
    pub(super) holds_permit: bool,
    pub(super) visit: Option<Visit>,
    /// The permit as other processes see it.
    pub(super) lease: Option<Lease>,
    body: BodyState,
    /// A response that other processes have not been told of yet.
    unreported: Option<HostEvent>,
    /// What was recorded, on its way into the journal.
    journal_write: Option<JournalWrite>,
    /// The permit at an address that hosts share.
    address: Option<(IpAddr, Box<Self>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyState {
    /// The head of the response is still to come.
    Head,
    Unread,
    /// Its reader waits for more.
    Reading,
}

impl Permit {
    /// The permit of a page that has not waited.
    pub(super) fn new(target: Target, started: Instant) -> Self {
        Self {
            target,
            started,
            waited: Duration::ZERO,
            page: true,
            holds_permit: true,
            visit: None,
            lease: None,
            body: BodyState::Head,
            unreported: None,
            journal_write: None,
            address: None,
        }
    }

    /// Holds a permit at an address, too.
    pub(super) fn with_address(mut self, address: IpAddr, permit: Self) -> Self {
        self.address = Some((address, Box::new(permit)));
        self
    }

    /// The address whose budget the request is in.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.address.as_ref().map(|(address, _)| *address)
    }

    /// How long the request waited before its start.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// What the head of a response says under the host's policy.
    pub(crate) fn read(&self, status: StatusCode, headers: &HeaderMap) -> HostResponse {
        let wall = self.target.now().wall;
        HostResponse::read(&self.target.host.policy, status, headers, wall)
    }

    /// Records the head of the response: from here on the permit is held by the body.
    pub(crate) fn answered(&mut self, response: HostResponse) {
        self.answered_with(response, self.target.registry.jitter.next());
    }

    /// The same with a number from 0 to 1 that decides how late within its jitter a pause ends.
    pub(crate) fn answered_with(&mut self, response: HostResponse, jitter: f64) {
        self.record(response, jitter, self.holds_permit);
        self.body = BodyState::Unread;
        if let Some((_, permit)) = &mut self.address {
            permit.answered_elsewhere(response);
        }
        if let (Some(visit), Some(wait), true) = (&self.visit, response.wait, response.redirect) {
            let until = self.target.now().after(wait);
            visit.with(|state| state.not_before = state.not_before.max(Some(until)));
        }
    }

    /// What a response of one host says about the address that others share with it: how fast the machine is. What it asks
    /// of this client is for the host alone.
    fn answered_elsewhere(&mut self, mut response: HostResponse) {
        response.signal = Signal::Neutral;
        response.wait = None;
        response.redirect = false;
        self.page = false;
        self.record(response, 0.0, true);
        self.body = BodyState::Unread;
    }

    /// Records that no response came.
    pub(crate) fn failed(&mut self) {
        self.record(
            HostResponse::failure(),
            self.target.registry.jitter.next(),
            false,
        );
    }

    fn record(&mut self, response: HostResponse, jitter: f64, body_follows: bool) {
        let Target { registry, host, .. } = &self.target;
        let now = registry.clock.monotonic();
        let mut record = ResponseRecord::new(self.started, response, self.page, jitter)
            .of_api(self.target.api());
        record.timed = self.holds_permit;
        self.journal_write = registry.record(host, now, &record, body_follows);
        if registry.store.is_some() {
            self.unreported = Some(event_of(&record, now));
        }
    }

    /// Waits until what was recorded outlives this process, where there is a journal: before anybody hears of it.
    ///
    /// # Cancel safety
    /// Dropped, it is written all the same.
    pub(crate) async fn kept(&mut self) {
        if let Some(write) = self.journal_write.take() {
            write.done().await;
        }
    }

    /// Tells other processes at once of a response that holds them back too. Others are reported with the end of the body.
    ///
    /// # Cancel safety
    /// Dropped, the response is reported with the end of the body.
    pub(crate) async fn report(&mut self) {
        let urgent = self.unreported.is_some_and(|event| {
            event.response.wait.is_some()
                || !matches!(event.response.signal, Signal::Success | Signal::Neutral)
        });
        if let (Some(store), true) = (&self.target.registry.store, urgent) {
            let lease = self.lease.as_ref().map(Lease::renewed);
            let report = HostReport::new(lease, self.unreported());
            if store.report(&self.target.host, report).await {
                self.unreported = None;
            }
        }
    }

    fn unreported(&self) -> Option<HostEvent> {
        let mut event = self.unreported?;
        let now = self.target.monotonic();
        event.since_start = now.saturating_duration_since(self.started);
        Some(event)
    }

    /// Ready when the permit is lost, because the store that other processes share could not be reached for too long:
    /// another process may take it, and the request must end.
    pub(crate) fn poll_lost(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        match &mut self.lease {
            Some(lease) => lease.poll_lost(cx),
            None => Poll::Pending,
        }
    }

    /// The body was polled; `pending` when its reader waits for more.
    pub(crate) fn body_polled(&mut self, pending: bool) {
        if let Some((_, permit)) = &mut self.address {
            permit.body_polled(pending);
        }
        let bodies = self.target.bodies();
        bodies.polled();
        let body = if pending {
            BodyState::Reading
        } else {
            BodyState::Unread
        };
        if body != self.body {
            bodies.set_reading(pending);
            self.body = body;
        }
    }

    /// The pace at which the host is asked now.
    pub(crate) fn pace(&self) -> Pace {
        let now = self.target.monotonic();
        let api = self.target.api.as_ref();
        let options = api.map_or(StartOptions::pace(), |slot| StartOptions::api(slot.quota));
        let host = &self.target.host;
        host.lock().budget.state.pace_of(&host.policy, now, options)
    }

    /// The end of the host's pause, if it is paused.
    pub(crate) fn retry_at(&self) -> Option<SystemTime> {
        let now = self.target.now();
        let state = &self.target.host.lock().budget.state;
        let until = state.paused_until(now.monotonic)?;
        Some(now.wall_at(until))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let event = self.unreported();
        let Target { registry, host, .. } = &self.target;
        match (self.lease.take(), &registry.store) {
            (Some(lease), _) => lease.end(event),
            (None, Some(store)) if event.is_some() => {
                store.report_later(host, HostReport::new(None, event));
            }
            _ => {}
        }
        if !self.holds_permit {
            return;
        }
        if self.body == BodyState::Reading {
            self.target.bodies().set_reading(false);
        }
        let now = registry.clock.monotonic();
        host.finish(now, self.target.api(), self.body != BodyState::Head);
    }
}

/// A request that was started by [`Hosts::try_start`](super::Hosts::try_start) and holds a permit of its host. Drop it when
/// the body has ended.
#[derive(Debug)]
#[must_use = "dropping it says that the request is over"]
pub struct Start(pub(super) Permit);

impl Start {
    /// Records the head of the response.
    pub fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        let response = self.0.read(status, headers);
        self.0.answered(response);
    }

    /// Records that no response came.
    pub fn failed(&mut self) {
        self.0.failed();
    }

    /// Waits until what was recorded is in the journal of these hosts, if they have one: at most 5 s. Wait for it before
    /// the response is handed on, or a crash could undo the pause that somebody heard of. Needs a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropped, the record goes on its way.
    pub async fn kept(&mut self) {
        self.0.kept().await;
    }
}
