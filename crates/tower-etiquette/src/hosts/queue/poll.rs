//! What becomes of a request that polls its queue: it joins, waits, is granted a permit or denied.

use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{Decision, HostPolicy, StartOptions};
use etiquette_core::vocabulary::refusal::HostRefusal;

use super::order::{Class, Denied, Position, Queue, Waiter};
use super::unread::{BodyMeter, UNREAD, UnreadBodyTimeout};
use crate::hosts::budget::Budget;
use crate::hosts::wake::WakeList;

/// What a poll came to.
#[derive(Debug)]
pub(crate) enum QueuePoll {
    /// A permit is reserved for the request.
    Granted,
    /// A permit is free. The rules of the site are checked before it is reserved.
    CheckRules,
    /// It waits as the head, and polls again at the instant.
    Head(Instant),
    /// It waits behind others.
    Behind {
        /// The queue has no monitor yet: the caller starts one.
        start_monitor: bool,
    },
    /// It may not wait.
    Denied(Denied),
}

/// A request that polls its queue.
#[derive(Debug)]
pub(crate) struct PollRequest<'a> {
    pub(crate) position: Position,
    pub(crate) ask: StartOptions,
    /// What it is held to where that is stricter than the host's own policy.
    pub(crate) policy: Option<&'a HostPolicy>,
    /// The number of its visit's last start here: as long as nobody else has started since, its delay is taken.
    pub(crate) visit_start: Option<u64>,
    pub(crate) deadline: Instant,
    /// The rules of the site were checked at this very moment.
    pub(crate) rules_checked: bool,
    pub(crate) never_wait: bool,
    /// It had joined the queue before: a full one does not keep it out.
    pub(crate) returning: bool,
    pub(crate) waker: &'a Waker,
    pub(crate) bodies: &'a BodyMeter,
    pub(crate) unread: &'a mut UnreadBodyTimeout,
}

/// One queue and the budget that it waits for, under their host's lock.
#[derive(Debug)]
pub(crate) struct LockedQueue<'a> {
    pub(crate) budget: &'a mut Budget,
    pub(crate) queue: &'a mut Queue,
    /// The host's.
    pub(crate) policy: &'a HostPolicy,
    pub(crate) now: Instant,
    pub(crate) wakers: &'a mut WakeList,
}

impl LockedQueue<'_> {
    /// Joins the queue or polls it again.
    pub(crate) fn poll(&mut self, mut request: PollRequest<'_>) -> QueuePoll {
        let position = request.position;
        request.ask.delay_taken |= self.budget.delay_taken(request.visit_start);
        if let Some(denied) = self.queue.take_denied(position) {
            return QueuePoll::Denied(denied);
        }
        self.queue.resume(position);
        if !self.queue.is_waiting(position)
            && let Some(outcome) = self.join(&request)
        {
            return outcome;
        }
        if !self.queue.is_head(position) {
            request.unread.reset();
            self.queue.set_waker(position, request.waker);
            let start_monitor = self.queue.claim_monitor();
            return QueuePoll::Behind { start_monitor };
        }
        match self.decide(&request) {
            Decision::Admit => self.grant_head(&request),
            Decision::Wait(due) => self.wait_as_head(request, due, false),
            Decision::Full(due) => self.wait_as_head(request, due, true),
            _ => {
                let due = self.now + UNREAD;
                self.wait_as_head(request, due, false)
            }
        }
    }

    fn decide(&mut self, request: &PollRequest<'_>) -> Decision {
        let policy = request.policy.unwrap_or(self.policy);
        self.budget.decide(policy, self.now, request.ask)
    }

    /// A new request starts without waiting, or is put into the queue, for which `None` stands.
    fn join(&mut self, request: &PollRequest<'_>) -> Option<QueuePoll> {
        if self.queue.is_head(request.position) && self.decide(request) == Decision::Admit {
            if !request.rules_checked {
                return Some(QueuePoll::CheckRules);
            }
            self.budget.reserve(request.ask);
            return Some(QueuePoll::Granted);
        }
        if let Err(denied) = self.may_wait(request) {
            return Some(QueuePoll::Denied(denied));
        }
        let waiter = Waiter {
            waker: None,
            deadline: request.deadline,
            ask: request.ask,
        };
        self.queue.insert(request.position, waiter);
        None
    }

    /// Whether a new request may wait: the queue is bounded, and so is the wait.
    fn may_wait(&mut self, request: &PollRequest<'_>) -> Result<(), Denied> {
        let (now, ask) = (self.now, request.ask);
        let policy = request.policy.unwrap_or(self.policy);
        let schedule = self.budget.schedule(policy, now, ask);
        if request.never_wait {
            return Err(self.denied(schedule.retry_at(now)));
        }
        let behind = if ask.pauses_only {
            Duration::ZERO
        } else {
            let ahead = u32::try_from(self.queue.ahead(request.position)).unwrap_or(u32::MAX);
            let delays = schedule.delay.saturating_mul(ahead);
            delays.saturating_sub(schedule.saved)
        };
        let at = schedule.due.checked_add(behind).unwrap_or(schedule.due);
        if at > request.deadline {
            return Err(self.denied(at));
        }
        if !request.returning && self.is_full(request.position.class) {
            return Err(Denied::new(HostRefusal::QueueFull));
        }
        Ok(())
    }

    /// A queue full of pages does not keep robots.txt out, of which few wait at a time.
    fn is_full(&self, class: Class) -> bool {
        let limit = self.policy.get_queue_limit();
        let limit = match class {
            Class::RobotsTxt => limit.saturating_mul(2).saturating_add(1),
            Class::UserFetch | Class::Crawl => limit,
        };
        self.queue.len() >= limit
    }

    /// The head has its turn.
    fn grant_head(&mut self, request: &PollRequest<'_>) -> QueuePoll {
        let ask = request.ask;
        if !request.rules_checked {
            return QueuePoll::CheckRules;
        }
        let delay = if ask.pauses_only || ask.delay_taken {
            Duration::ZERO
        } else {
            let policy = request.policy.unwrap_or(self.policy);
            let saved = self.budget.saved_up(self.now, ask);
            let delay = self.budget.delay(policy, self.now, ask);
            delay.saturating_sub(saved)
        };
        self.queue.remove_head(request.position, delay);
        self.budget.reserve(ask);
        // With a delay the next one learns its turn when this one has started.
        if delay.is_zero() {
            self.queue.wake_head(self.wakers);
        }
        QueuePoll::Granted
    }

    /// The head waits: for `due`, or for a permit where all are taken. Whoever cannot start in time any more is denied.
    fn wait_as_head(
        &mut self,
        request: PollRequest<'_>,
        due: Instant,
        permits_taken: bool,
    ) -> QueuePoll {
        let position = request.position;
        let in_time = |by: Instant| due.max(self.now) <= by;
        if !self.queue.start_by().is_some_and(in_time) {
            self.review();
            if let Some(denied) = self.queue.take_denied(position) {
                self.queue.wake_head(self.wakers);
                return QueuePoll::Denied(denied);
            }
        }
        let next = if permits_taken {
            self.check_unread_bodies(request.ask, request.bodies, request.unread)
        } else {
            Some(due)
        };
        let Some(next) = next else {
            self.queue.leave(position);
            self.queue.wake_head(self.wakers);
            return QueuePoll::Denied(Denied::new(HostRefusal::UnreadBody));
        };
        self.queue.set_waker(position, request.waker);
        let start_by = self.queue.start_by().unwrap_or(request.deadline);
        // Just after the deadline, because at it a start is still in time.
        let next = next.min(start_by + Duration::from_millis(1));
        self.queue.head_polled(next);
        QueuePoll::Head(next)
    }

    /// When the head has to look at the bodies again that hold the permits; `None` when nobody has read them for too long:
    /// the caller that holds them may be the one that waits.
    fn check_unread_bodies(
        &self,
        ask: StartOptions,
        meter: &BodyMeter,
        unread: &mut UnreadBodyTimeout,
    ) -> Option<Instant> {
        let bodies = self.queue.bodies;
        let all_in_bodies = bodies > 0 && bodies >= self.budget.in_flight(ask);
        let timeout = self.policy.get_unread_body_timeout();
        unread.check(self.now, timeout, || {
            meter.unread_since().filter(|_| all_in_bodies)
        })
    }

    /// Denies those who cannot start in time any more.
    pub(crate) fn review(&mut self) {
        if self.queue.is_empty() {
            return;
        }
        let schedule = self
            .budget
            .schedule(self.policy, self.now, self.queue.ask());
        let deny = |at| self.budget.denied(self.policy, self.now, at);
        self.queue.review(schedule, deny, self.wakers);
    }

    /// Leaves the order, but not its position, while its rules are refreshed.
    pub(crate) fn suspend(
        &mut self,
        position: Position,
        deadline: Instant,
        ask: StartOptions,
    ) -> Result<(), Denied> {
        if let Some(denied) = self.queue.take_denied(position) {
            return Err(denied);
        }
        if self
            .budget
            .due(self.policy, self.now, StartOptions::pauses())
            > deadline
        {
            self.queue.leave(position);
            return Err(self.denied(deadline));
        }
        let joined = self.queue.is_waiting(position) || self.queue.is_suspended(position);
        if !joined && self.is_full(position.class) {
            return Err(Denied::new(HostRefusal::QueueFull));
        }
        let was_head = self.queue.is_head(position);
        let waker = None;
        self.queue.suspend(
            position,
            Waiter {
                waker,
                deadline,
                ask,
            },
        );
        if was_head {
            self.queue.wake_head(self.wakers);
        }
        Ok(())
    }

    /// A request that cannot start before `at`.
    fn denied(&self, at: Instant) -> Denied {
        self.budget.denied(self.policy, self.now, at)
    }
}
