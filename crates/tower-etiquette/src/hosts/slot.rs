//! What a request that wants to start holds of its host: a position in the queue, or a permit.

use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::Now;
use etiquette_core::decide::host::{HostPolicy, StartOptions};

use super::entry::StartRequest;
use super::options::AcquireOptions;
use super::queue::{Class, Denied, PollRequest, Position, QueuePoll, UnreadBodyTimeout};
use super::store::{Lease, StartQuestion, StoreReply};
use super::target::Target;
use crate::visit::Visit;

/// Dropping it leaves the queue, or gives a reserved permit back.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) target: Target,
    pub(super) visit: Option<Visit>,
    pub(super) ask: StartOptions,
    /// The limit of an API whose queue is the host's, because the host is shared with other processes.
    policy: Option<Box<HostPolicy>>,
    pub(super) deadline: Instant,
    pub(super) never_wait: bool,
    position: Position,
    state: SlotState,
    /// It had a permit before: a full queue does not keep it out.
    returning: bool,
    unread: UnreadBodyTimeout,
}

#[derive(Debug)]
enum SlotState {
    /// Nothing has to be given back.
    Outside,
    /// Perhaps it is in the queue.
    Queued,
    /// A permit of the host is reserved, under a lease where other processes see it.
    Reserved(Option<Lease>),
}

impl Slot {
    pub(super) fn new(
        target: Target,
        visit: Option<Visit>,
        options: &AcquireOptions,
        class: Class,
        now: Now,
    ) -> Self {
        let mut ask = if options.pauses_only {
            StartOptions::pauses()
        } else {
            StartOptions::pace()
        };
        ask.delay_taken = options.paced_elsewhere;
        ask.api = target.api.as_ref().map(|slot| slot.ask);
        // A store knows no limits of APIs: the request keeps the host's shared budget, and its own limit as a delay.
        let limit = options.api.as_ref().filter(|_| target.api.is_none());
        let max_wait = if options.never_wait {
            Duration::ZERO
        } else {
            target.registry.policy().max_wait_for(options.purpose)
        };
        Self {
            visit,
            ask,
            policy: limit.map(|api| Box::new(target.host.policy.within(api.limit()))),
            deadline: now.after(max_wait),
            never_wait: options.never_wait,
            position: target.host.position(class),
            target,
            state: SlotState::Outside,
            returning: false,
            unread: UnreadBodyTimeout::default(),
        }
    }

    /// Joins the queue or polls it again.
    pub(super) fn poll(&mut self, now: Instant, rules_checked: bool, waker: &Waker) -> QueuePoll {
        self.state = SlotState::Queued;
        let request = PollRequest {
            position: self.position,
            ask: self.ask,
            policy: self.policy.as_deref(),
            visit_start: self.visit_start(),
            deadline: self.deadline,
            rules_checked,
            never_wait: self.never_wait,
            returning: self.returning,
            waker,
            bodies: self.target.bodies(),
            unread: &mut self.unread,
        };
        let outcome = self.target.host.poll(now, request);
        if let QueuePoll::Granted = outcome {
            self.state = SlotState::Reserved(None);
            self.returning = true;
        }
        outcome
    }

    /// Lets others pass while the rules are refreshed.
    pub(super) fn suspend(&mut self, now: Instant) -> Result<(), Denied> {
        self.state = SlotState::Queued;
        let host = &self.target.host;
        host.suspend(now, self.position, self.deadline, self.ask)
    }

    /// Whether it was denied while it was suspended.
    pub(super) fn poll_suspended(&self, waker: &Waker) -> Option<Denied> {
        let host = &self.target.host;
        host.poll_suspended(self.position, self.ask, waker)
    }

    /// Asks the store that other processes share, if there is one. `false` when the request has to return to its queue: the
    /// permit is given back.
    pub(super) async fn ask_store(
        &mut self,
        counted: bool,
        crawl_delay: Option<(u64, Option<Duration>)>,
    ) -> bool {
        let Target { registry, host, .. } = &self.target;
        let Some(client) = &registry.store else {
            return true;
        };
        let question = StartQuestion {
            client,
            host,
            policy: self.policy.as_deref().unwrap_or(&host.policy),
            ask: self.ask_now(),
            crawl_delay,
            counted,
            jitter: registry.jitter.next(),
        };
        match question.send().await {
            StoreReply::Start(lease) => {
                self.state = SlotState::Reserved(lease);
                true
            }
            StoreReply::Wait => {
                self.release();
                false
            }
        }
    }

    /// Starts the request, if pause and delay still allow it: the number of starts so far, and the lease of the permit.
    /// Otherwise the permit is given back and the position in the queue is kept.
    pub(super) fn start(
        &mut self,
        now: Instant,
        counted: bool,
        let_go: Option<Duration>,
    ) -> Option<(u64, Option<Lease>)> {
        let number = self.target.host.start(StartRequest {
            now,
            ask: self.ask,
            policy: self.policy.as_deref(),
            visit_start: self.visit_start(),
            counted,
            let_go,
        });
        let state = match number {
            Some(_) => SlotState::Outside,
            None => SlotState::Queued,
        };
        match (number, std::mem::replace(&mut self.state, state)) {
            (Some(number), SlotState::Reserved(lease)) => Some((number, lease)),
            (number, _) => number.map(|number| (number, None)),
        }
    }

    /// The earliest start by pause and delay.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let host = &self.target.host;
        let policy = self.policy.as_deref().unwrap_or(&host.policy);
        let ask = self.ask_now();
        host.lock().budget.due(policy, now, ask)
    }

    /// Gives back what is reserved and keeps the position in the queue.
    pub(super) fn release(&mut self) {
        if let SlotState::Reserved(_) = self.state {
            self.state = SlotState::Queued;
            self.target.host.unreserve(self.ask);
        }
    }

    /// What it asks for, which is less as long as the last start is its visit's.
    fn ask_now(&self) -> StartOptions {
        let mut ask = self.ask;
        let visit_start = self.visit_start();
        ask.delay_taken |= self.target.host.lock().budget.delay_taken(visit_start);
        ask
    }

    /// The number of the visit's last start here.
    fn visit_start(&self) -> Option<u64> {
        let visit = self.visit.as_ref()?;
        visit.with(|state| state.last_start(self.target.host.key))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let host = &self.target.host;
        match self.state {
            SlotState::Outside => {}
            SlotState::Queued => host.cancel(self.position, self.ask),
            SlotState::Reserved(_) => host.unreserve(self.ask),
        }
    }
}
