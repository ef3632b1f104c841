//! The right to be under way at a host, from the start to the end of the body.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::decide::host::{HostResponse, Pace, ResponseRecord, Signal, StartOptions};
use etiquette_core::store::host::{HostEvent, HostReport};

use http::{HeaderMap, StatusCode};

use super::Hosts;
use super::host::{Host, Tap};
use super::journal::Keeping;
use super::shared::{Lease, event};
use crate::ext::Visit;

/// Held by a request that was started. Dropping it gives its permit back and lets the next one go on.
#[derive(Debug)]
pub(crate) struct Permit {
    hosts: Hosts,
    host: Arc<Host>,
    started: Instant,
    waited: Duration,
    page: bool,
    /// It holds a permit and not only a start.
    placed: bool,
    visit: Option<Visit>,
    /// The API whose permit it is.
    tap: Option<Tap>,
    stage: Stage,
    lease: Option<Lease>,
    /// An answer that other processes have not been told of yet.
    untold: Option<(ResponseRecord, Duration)>,
    /// What was recorded, on its way into the journal.
    keeping: Option<Keeping>,
    /// The permit at an address that hosts share.
    beside: Option<(IpAddr, Box<Self>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    Unread,
    Reading,
}

impl Permit {
    pub(super) fn new(
        hosts: Hosts,
        host: Arc<Host>,
        started: Instant,
        waited: Duration,
        page: bool,
        placed: bool,
        visit: Option<Visit>,
    ) -> Self {
        Self {
            hosts,
            host,
            started,
            waited,
            page,
            placed,
            visit,
            tap: None,
            stage: Stage::Head,
            lease: None,
            untold: None,
            keeping: None,
            beside: None,
        }
    }

    /// Holds a permit of an API and not of the host.
    pub(super) fn using(mut self, tap: Option<Tap>) -> Self {
        self.tap = tap;
        self
    }

    /// Holds a permit that other processes see, too.
    pub(super) fn under(mut self, lease: Option<Lease>) -> Self {
        self.lease = lease;
        self
    }

    /// Holds a permit at an address, too.
    pub(super) fn beside(mut self, address: IpAddr, permit: Self) -> Self {
        self.beside = Some((address, Box::new(permit)));
        self
    }

    /// The address whose budget the request is in.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.beside.as_ref().map(|(address, _)| *address)
    }

    /// How long the request waited before its start.
    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Records the head of the answer: from here on the permit is held by the body.
    pub(crate) fn answered(&mut self, answer: HostResponse) {
        let jitter = self.hosts.jitter();
        self.answered_with(answer, jitter);
    }

    /// The same with a number from 0 to 1 that decides how late within its jitter a pause ends.
    pub(crate) fn answered_with(&mut self, answer: HostResponse, jitter: f64) {
        self.record(answer, jitter, self.placed);
        self.stage = Stage::Unread;
        if let Some((_, permit)) = &mut self.beside {
            permit.shares(answer);
        }
        if let (Some(visit), Some(wait), true) = (&self.visit, answer.wait, answer.redirect) {
            let until = self.hosts.clock().now().after(wait);
            visit.with(|journey| journey.not_before = journey.not_before.max(Some(until)));
        }
    }

    /// What an answer of one host says about the address that others share with it: how fast the machine is. What is
    /// asked of this client is the host's own.
    fn shares(&mut self, mut answer: HostResponse) {
        answer.signal = Signal::Neutral;
        answer.wait = None;
        answer.redirect = false;
        self.page = false;
        self.record(answer, 0.0, true);
        self.stage = Stage::Unread;
    }

    /// Records that no answer came.
    pub(crate) fn failed(&mut self) {
        self.record(HostResponse::failure(), self.hosts.jitter(), false);
    }

    fn record(&mut self, answer: HostResponse, jitter: f64, head_of_placed: bool) {
        let now = self.hosts.clock().monotonic();
        let api = self.tap.as_ref().map(|tap| tap.ask.number);
        let received = ResponseRecord::new(self.started, answer, self.page, jitter).of_api(api);
        let received = if self.placed {
            received
        } else {
            received.untimed()
        };
        let changes = self.host.answered(now, &received, head_of_placed);
        self.hosts.tell(&self.host, changes);
        if self.hosts.0.link.is_some() {
            let latency = now.saturating_duration_since(self.started);
            self.untold = Some((received, latency));
        }
        if let Some(journal) = self.hosts.0.journal.get() {
            self.keeping = journal.keep(&self.host, self.hosts.clock().now());
        }
    }

    /// Waits until what was recorded outlives this process, where there is a journal: before anybody hears of it.
    ///
    /// # Cancel safety
    /// Dropped, it is written all the same.
    pub(crate) async fn kept(&mut self) {
        if let Some(keeping) = self.keeping.take() {
            keeping.done().await;
        }
    }

    /// Tells other processes of an answer at once that holds them back too. Others are told with the end of the body.
    ///
    /// # Cancel safety
    /// Dropped, the answer is told with the end of the body.
    pub(crate) async fn tell(&mut self) {
        let urgent = self.untold.is_some_and(|(received, _)| {
            received.response.wait.is_some()
                || !matches!(received.response.signal, Signal::Success | Signal::Neutral)
        });
        if let (Some(link), true) = (&self.hosts.0.link, urgent) {
            let event = self.untold();
            let report = HostReport::new(self.lease.as_ref().map(Lease::renewal), event);
            if link.tell(&self.host, report).await {
                self.untold = None;
            }
        }
    }

    fn untold(&self) -> Option<HostEvent> {
        let (received, latency) = self.untold?;
        let now = self.hosts.clock().now().monotonic;
        let mut event = event(&received, now);
        event.latency = event.latency.and(Some(latency));
        Some(event)
    }

    /// Ready when the permit is lost, because the store that other processes share could not be reached for too long:
    /// another process may take it, and the request must end.
    pub(crate) fn poll_lost(&self, task: &Task<'_>) -> Poll<()> {
        match &self.lease {
            Some(lease) => lease.poll_lost(task),
            None => Poll::Pending,
        }
    }

    /// The body was polled; `pending` when its reader waits for more.
    pub(crate) fn body_polled(&mut self, pending: bool) {
        if let Some((_, permit)) = &mut self.beside {
            permit.body_polled(pending);
        }
        self.host.polled(self.tap.as_ref());
        let stage = if pending {
            Stage::Reading
        } else {
            Stage::Unread
        };
        if stage != self.stage {
            self.host.reading(self.tap.as_ref(), pending);
            self.stage = stage;
        }
    }

    /// What the head of an answer says under the host's policy.
    pub(crate) fn read(&self, status: StatusCode, headers: &HeaderMap) -> HostResponse {
        let now = self.hosts.clock().now();
        HostResponse::read(&self.host.policy, status, headers, now.wall)
    }

    /// The pace at which the host is asked now.
    pub(crate) fn pace(&self) -> Pace {
        let now = self.hosts.clock().monotonic();
        let ask = self
            .tap
            .as_ref()
            .map_or(StartOptions::pace(), |tap| StartOptions::api(tap.ask));
        let mut core = self.host.core();
        core.state.pace_of(&self.host.policy, now, ask)
    }

    /// The end of the host's pause, if it is paused.
    pub(crate) fn retry_at(&self) -> Option<SystemTime> {
        let now = self.hosts.clock().now();
        let until = self.host.core().state.paused_until(now.monotonic)?;
        Some(now.wall_at(until))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let event = self.untold();
        match (self.lease.take(), &self.hosts.0.link) {
            (Some(lease), _) => lease.end(false, event),
            (None, Some(link)) if event.is_some() => {
                link.tell_later(&self.host, HostReport::new(None, event));
            }
            _ => {}
        }
        if !self.placed {
            return;
        }
        if self.stage == Stage::Reading {
            self.host.reading(self.tap.as_ref(), false);
        }
        let now = self.hosts.clock().monotonic();
        let api = self.tap.as_ref().map(|tap| tap.ask.number);
        self.host.finish(now, self.stage != Stage::Head, api);
    }
}
