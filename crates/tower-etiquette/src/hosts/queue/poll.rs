//! What becomes of a request that polls its queue: it joins, waits, is granted a permit or denied.

use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{Decision, HostPolicy, StartOptions};
use etiquette_core::vocabulary::refusal::HostRefusal;

use super::order::{Class, Denied, Position, Queue};
use super::unread::{BodyMeter, UNREAD, UnreadBodyTimeout};
use crate::hosts::budget::{Budget, Terms};
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

/// A request as its queue knows it.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) position: Position,
    pub(crate) options: StartOptions,
    /// What it is held to where that is stricter than the host's own policy.
    pub(crate) policy: Option<Box<HostPolicy>>,
    /// The number of its visit's last start here: as long as nobody else has started since, its delay is taken.
    pub(crate) visit_start: Option<u64>,
    pub(crate) deadline: Instant,
    pub(crate) never_wait: bool,
    /// A layer further out on the same hosts has counted its start.
    pub(crate) counted: bool,
    /// It had a permit before: a full queue does not keep it out.
    pub(crate) returning: bool,
    pub(crate) unread: UnreadBodyTimeout,
}

/// The circumstances of a poll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollContext<'a> {
    pub(crate) now: Instant,
    /// The rules of the site were checked at this very moment.
    pub(crate) rules_checked: bool,
    pub(crate) waker: &'a Waker,
    pub(crate) bodies: &'a BodyMeter,
}

/// One queue and the budget that it waits for, under their host's lock.
#[derive(Debug)]
pub(crate) struct LockedQueue<'a> {
    pub(crate) budget: &'a mut Budget,
    pub(crate) queue: &'a mut Queue,
    /// The host's.
    pub(crate) policy: &'a HostPolicy,
    /// Woken when the lock is free.
    pub(crate) wakers: &'a mut WakeList,
}

impl LockedQueue<'_> {
    /// Joins the queue or polls it again.
    pub(crate) fn poll(&mut self, request: &mut QueuedRequest, poll: PollContext<'_>) -> QueuePoll {
        let position = request.position;
        if let Some(denied) = self.queue.take_denied(position) {
            return QueuePoll::Denied(denied);
        }
        self.queue.resume(position);
        if !self.queue.is_waiting(position)
            && let Some(outcome) = self.join(request, poll)
        {
            return outcome;
        }
        if !self.queue.is_head(position) {
            request.unread.reset();
            self.queue.set_waker(position, poll.waker);
            let start_monitor = self.queue.claim_monitor();
            return QueuePoll::Behind { start_monitor };
        }
        match self.decide(request, poll.now) {
            Decision::Admit => self.grant_head(request, poll),
            Decision::Wait(due) => self.wait_as_head(request, poll, due, false),
            Decision::Full(due) => self.wait_as_head(request, poll, due, true),
            _ => self.wait_as_head(request, poll, poll.now + UNREAD, false),
        }
    }

    /// A new request starts without waiting, or is put into the queue, for which `None` stands.
    fn join(&mut self, request: &QueuedRequest, poll: PollContext<'_>) -> Option<QueuePoll> {
        if self.queue.is_head(request.position) && self.decide(request, poll.now) == Decision::Admit
        {
            if !poll.rules_checked {
                return Some(QueuePoll::CheckRules);
            }
            self.budget.reserve(request.options);
            return Some(QueuePoll::Granted);
        }
        if let Err(denied) = self.may_wait(request, poll.now) {
            return Some(QueuePoll::Denied(denied));
        }
        let options = self.terms(request, poll.now).options;
        self.queue
            .insert(request.position, request.deadline, options);
        None
    }

    /// Whether a new request may wait: the queue is bounded, and so is the wait.
    fn may_wait(&mut self, request: &QueuedRequest, now: Instant) -> Result<(), Denied> {
        let schedule = self.budget.schedule(self.terms(request, now));
        let at = if request.never_wait {
            schedule.retry_at(now)
        } else if request.options.pauses_only {
            schedule.due
        } else {
            schedule.due_behind(self.queue.ahead(request.position))
        };
        if request.never_wait || at > request.deadline {
            return Err(self.budget.denied(self.policy, now, at));
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
    fn grant_head(&mut self, request: &QueuedRequest, poll: PollContext<'_>) -> QueuePoll {
        if !poll.rules_checked {
            return QueuePoll::CheckRules;
        }
        let terms = self.terms(request, poll.now);
        let delay = if terms.options.pauses_only || terms.options.delay_taken {
            Duration::ZERO
        } else {
            let delay = self.budget.delay(terms);
            delay.saturating_sub(self.budget.saved_up(terms))
        };
        self.queue.remove_head(request.position, delay);
        self.budget.reserve(request.options);
        // With a delay the next one learns its turn when this one has started.
        if delay.is_zero() {
            self.queue.wake_head(self.wakers);
        }
        QueuePoll::Granted
    }

    /// The head waits: for `due`, or for a permit where all are taken. Whoever cannot start in time any more is denied.
    fn wait_as_head(
        &mut self,
        request: &mut QueuedRequest,
        poll: PollContext<'_>,
        due: Instant,
        permits_taken: bool,
    ) -> QueuePoll {
        let (now, position) = (poll.now, request.position);
        let in_time = |by: Instant| due.max(now) <= by;
        if !self.queue.start_by().is_some_and(in_time) {
            self.review(now);
            if let Some(denied) = self.queue.take_denied(position) {
                self.queue.wake_head(self.wakers);
                return QueuePoll::Denied(denied);
            }
        }
        let next = if permits_taken {
            self.check_unread_bodies(request, poll)
        } else {
            Some(due)
        };
        let Some(next) = next else {
            self.queue.leave(position);
            self.queue.wake_head(self.wakers);
            return QueuePoll::Denied(Denied::new(HostRefusal::UnreadBody));
        };
        self.queue.set_waker(position, poll.waker);
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
        request: &mut QueuedRequest,
        poll: PollContext<'_>,
    ) -> Option<Instant> {
        let bodies = self.queue.bodies;
        let all_in_bodies = bodies > 0 && bodies >= self.budget.in_flight(request.options);
        let unread = || poll.bodies.unread().filter(|_| all_in_bodies);
        let timeout = self.policy.get_unread_body_timeout();
        request.unread.check(poll.now, timeout, unread)
    }

    /// Denies those who cannot start in time any more.
    pub(crate) fn review(&mut self, now: Instant) {
        if self.queue.is_empty() {
            return;
        }
        let policy = self.policy;
        let terms = Terms::new(policy, now, self.queue.options());
        let schedule = self.budget.schedule(terms);
        let deny = |at| self.budget.denied(policy, now, at);
        self.queue.review(schedule, deny, self.wakers);
    }

    /// Lets others pass, and keeps the position, while its rules are refreshed.
    pub(crate) fn suspend(&mut self, request: &QueuedRequest, now: Instant) -> Result<(), Denied> {
        let position = request.position;
        if let Some(denied) = self.queue.take_denied(position) {
            return Err(denied);
        }
        if self.budget.pause_end(self.policy, now) > request.deadline {
            self.queue.leave(position);
            return Err(self.budget.denied(self.policy, now, request.deadline));
        }
        if !self.queue.contains(position) && self.is_full(position.class) {
            return Err(Denied::new(HostRefusal::QueueFull));
        }
        let was_head = self.queue.is_head(position);
        self.queue
            .suspend(position, request.deadline, request.options);
        if was_head {
            self.queue.wake_head(self.wakers);
        }
        Ok(())
    }

    /// Starts a request whose permit is reserved, if pause and delay still allow it; the number of starts so far. Gives
    /// the permit back otherwise. `spacing` is the delay of a budget elsewhere, where the request was held here after it.
    pub(crate) fn start(
        &mut self,
        request: &QueuedRequest,
        now: Instant,
        spacing: Option<Duration>,
    ) -> Option<u64> {
        let is_due = self.due(request, now) <= now;
        if is_due {
            self.budget.start(now, request.options);
            let state = &mut self.budget.state;
            if request.counted {
                state.uncount_start();
            }
            if let Some(delay) = spacing {
                state.space_without_permit(now, delay);
            }
        } else {
            self.budget.unreserve(request.options);
        }
        self.queue.wake_head(self.wakers);
        is_due.then(|| self.budget.state.started())
    }

    /// Gives a reserved permit back that was not used.
    pub(crate) fn unreserve(&mut self, request: &QueuedRequest) {
        self.budget.unreserve(request.options);
        self.queue.wake_head(self.wakers);
    }

    /// The earliest start by pause and delay.
    pub(crate) fn due(&mut self, request: &QueuedRequest, now: Instant) -> Instant {
        self.budget.due(self.terms(request, now))
    }

    fn decide(&mut self, request: &QueuedRequest, now: Instant) -> Decision {
        self.budget.decide(self.terms(request, now))
    }

    fn terms<'r>(&self, request: &'r QueuedRequest, now: Instant) -> Terms<'r>
    where
        Self: 'r,
    {
        let policy = request.policy.as_deref().unwrap_or(self.policy);
        Terms::new(policy, now, self.options(request))
    }

    /// What the request asks for: no delay as long as the last start is its visit's.
    pub(crate) fn options(&self, request: &QueuedRequest) -> StartOptions {
        let mut options = request.options;
        let started = self.budget.state.started();
        options.delay_taken |= request.visit_start == Some(started);
        options
    }
}
