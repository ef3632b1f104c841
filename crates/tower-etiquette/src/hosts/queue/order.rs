//! The order of the requests that wait for one budget.
//!
//! First come, first served within a class: robots.txt before what a person waits for, that before a crawl. No start is
//! booked ahead and only the head has a timer, so that whoever leaves the queue leaves no debt behind.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::StartOptions;
use etiquette_core::vocabulary::refusal::HostRefusal;

use super::head::HeadPolls;
use crate::hosts::wake::WakeList;

/// A position in the queue. A request that is suspended, or whose start did not come about, returns to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) class: Class,
    pub(crate) number: u64,
}

/// Who goes before whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    RobotsTxt,
    UserFetch,
    Crawl,
}

/// A request that waits.
#[derive(Debug)]
struct Waiter {
    waker: Option<Waker>,
    deadline: Instant,
    options: StartOptions,
}

impl Waiter {
    fn new(deadline: Instant, options: StartOptions) -> Self {
        let waker = None;
        Self {
            waker,
            deadline,
            options,
        }
    }
}

/// Why a request may not start or wait, and when to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) why: HostRefusal,
    pub(crate) retry_at: Option<Instant>,
}

impl Denied {
    /// Denied for a reason that no time is known for.
    pub(crate) fn new(why: HostRefusal) -> Self {
        let retry_at = None;
        Self { why, retry_at }
    }
}

/// When the requests of a queue could start, by pause and delay as known now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    pub(crate) pause_end: Instant,
    /// When the head could.
    pub(crate) due: Instant,
    /// How long after each request the next one could.
    pub(crate) delay: Duration,
    /// What may be taken of these delays at once, because an API was idle before.
    pub(crate) saved: Duration,
}

impl Schedule {
    /// The first instant after `now` at which it is worth coming back. Where only a permit is missing nobody knows when it
    /// is given back: not before a delay has passed.
    pub(crate) fn retry_at(&self, now: Instant) -> Instant {
        if self.due > now {
            self.due
        } else {
            now.checked_add(self.delay).unwrap_or(now)
        }
    }

    /// When a request could with so many `ahead` of it.
    pub(super) fn due_behind(&self, ahead: usize) -> Instant {
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        let delays = self.delay.saturating_mul(ahead);
        let behind = delays.saturating_sub(self.saved);
        self.due.checked_add(behind).unwrap_or(self.due)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: BTreeMap<Position, Waiter>,
    /// Requests whose rules are being refreshed, or that nobody polls. They keep their position, but hold nobody up.
    suspended: BTreeMap<Position, Waiter>,
    /// Those who may not wait any more and have not been polled since.
    denied: BTreeMap<Position, Denied>,
    /// If the head starts by then, nobody misses a deadline. Unknown after a change of the order.
    start_by: Option<Instant>,
    head: HeadPolls,
    /// Requests under way of which only the body is left.
    pub(crate) bodies: u32,
}

impl Queue {
    /// Those who wait, suspended ones included.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.suspended.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nobody waits, and nobody still has to learn that it was denied.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.denied.is_empty()
    }

    /// Whether a request at `position` is the head, or would be.
    pub(super) fn is_head(&self, position: Position) -> bool {
        self.waiting
            .first_key_value()
            .is_none_or(|(head, _)| position <= *head)
    }

    /// How many wait before `position`.
    pub(super) fn ahead(&self, position: Position) -> usize {
        match self.waiting.last_key_value() {
            Some((last, _)) if *last < position => self.waiting.len(),
            _ => self.waiting.range(..position).count(),
        }
    }

    pub(super) fn is_waiting(&self, position: Position) -> bool {
        self.waiting.contains_key(&position)
    }

    /// Whether it waits, suspended or not.
    pub(super) fn contains(&self, position: Position) -> bool {
        self.is_waiting(position) || self.suspended.contains_key(&position)
    }

    /// What those who wait ask for: the same quota, if it is that of an API.
    pub(super) fn options(&self) -> StartOptions {
        let mut waiters = self.waiting.values().chain(self.suspended.values());
        let api = waiters.next().and_then(|waiter| waiter.options.api);
        api.map_or_else(StartOptions::pace, StartOptions::api)
    }

    pub(super) fn insert(&mut self, position: Position, deadline: Instant, options: StartOptions) {
        self.start_by = None;
        let waiter = Waiter::new(deadline, options);
        self.waiting.insert(position, waiter);
    }

    /// Remembers whom to wake at `position`.
    pub(super) fn set_waker(&mut self, position: Position, waker: &Waker) {
        let waiting = self.waiting.get_mut(&position);
        let Some(waiter) = waiting.or(self.suspended.get_mut(&position)) else {
            return;
        };
        match &mut waiter.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Lets others pass, and keeps the position.
    pub(super) fn suspend(&mut self, position: Position, deadline: Instant, options: StartOptions) {
        self.remove(position);
        let waiter = Waiter::new(deadline, options);
        self.suspended.insert(position, waiter);
    }

    /// Whether a suspended request was denied meanwhile; remembers whom to wake then.
    pub(crate) fn poll_suspended(&mut self, position: Position, waker: &Waker) -> Option<Denied> {
        let denied = self.take_denied(position);
        if denied.is_none() {
            self.set_waker(position, waker);
        }
        denied
    }

    /// Returns to the position, if it was suspended.
    pub(super) fn resume(&mut self, position: Position) {
        if let Some(waiter) = self.suspended.remove(&position) {
            self.start_by = None;
            self.waiting.insert(position, waiter);
        }
    }

    /// The head starts: all others move up by one `delay`.
    pub(super) fn remove_head(&mut self, position: Position, delay: Duration) {
        self.remove(position);
        self.start_by = self.start_by.and_then(|by| by.checked_add(delay));
    }

    /// Leaves the queue for good.
    pub(super) fn leave(&mut self, position: Position) {
        self.remove(position);
        self.suspended.remove(&position);
        self.denied.remove(&position);
    }

    /// Leaves the queue for good, and wakes the next one where it is concerned.
    pub(crate) fn cancel(&mut self, position: Position, wakers: &mut WakeList) {
        // The monitor has to hear of a queue that has become short.
        let concerned = self.is_head(position) || self.len() <= 2;
        self.leave(position);
        if concerned {
            self.wake_head(wakers);
        }
    }

    fn remove(&mut self, position: Position) {
        if self.is_head(position) {
            self.head.changed();
        }
        self.waiting.remove(&position);
    }

    pub(super) fn take_denied(&mut self, position: Position) -> Option<Denied> {
        self.denied.remove(&position)
    }

    /// Wakes the head, because something changed that it waits for, and the monitor that sees to it.
    pub(crate) fn wake_head(&mut self, wakers: &mut WakeList) {
        let head = self.waiting.first_key_value();
        wakers.push(head.and_then(|(_, waiter)| waiter.waker.clone()));
        wakers.push(self.head.wake(self.waiting.len() > 1));
    }

    /// The head was polled and will be again at `next`.
    pub(super) fn head_polled(&mut self, next: Instant) {
        self.head.polled(next);
    }

    /// Whether the caller has to start a monitor: somebody waits behind the head, and there is none yet.
    pub(super) fn claim_monitor(&mut self) -> bool {
        self.head.claim_monitor(self.waiting.len() > 1)
    }

    /// When the monitor has to check again; `None` when it is over. A head that was not polled when it should have been is
    /// woken, and suspended when it is not polled after that.
    pub(crate) fn check_head(
        &mut self,
        now: Instant,
        monitor: &Waker,
        wakers: &mut WakeList,
    ) -> Option<Instant> {
        while self.waiting.len() > 1 {
            if let Some(at) = self.head.stalled_at(now, monitor) {
                return Some(at);
            }
            if self.head.is_woken()
                && let Some((position, waiter)) = self.waiting.pop_first()
            {
                self.suspended.insert(position, waiter);
                self.start_by = None;
            }
            self.head.changed();
            self.wake_head(wakers);
        }
        self.head.end_monitor();
        None
    }

    /// The monitor is gone: whoever of those who wait is polled starts another one.
    pub(crate) fn monitor_stopped(&mut self, wakers: &mut WakeList) {
        if self.head.end_monitor() {
            for waiter in self.waiting.values() {
                wakers.push(waiter.waker.clone());
            }
        }
    }

    /// The instant by which the head has to start, so that nobody misses a deadline, if that is known.
    pub(super) fn start_by(&self) -> Option<Instant> {
        self.start_by
    }

    /// Pause or delay may have changed: the head checks the deadlines anew.
    pub(crate) fn recheck_deadlines(&mut self, wakers: &mut WakeList) {
        self.start_by = None;
        self.wake_head(wakers);
    }

    /// Denies all who cannot start before their deadline: by `schedule`, or by the end of the pause alone if they are
    /// suspended or take no delay.
    pub(super) fn review(
        &mut self,
        schedule: Schedule,
        deny: impl Fn(Instant) -> Denied,
        wakers: &mut WakeList,
    ) {
        let head = self.waiting.keys().next().copied();
        let mut start_by: Option<Instant> = None;
        let mut delays = Duration::ZERO;
        let denied = &mut self.denied;
        let mut stays = |position: Position, waiter: &mut Waiter, at: Instant| {
            let stays = at <= waiter.deadline;
            if !stays {
                denied.insert(position, deny(at));
                wakers.push(waiter.waker.take());
            }
            stays
        };
        self.waiting.retain(|position, waiter| {
            let undelayed = waiter.options.pauses_only || waiter.options.delay_taken;
            let (from, behind) = if undelayed {
                (schedule.pause_end, Duration::ZERO)
            } else {
                (schedule.due, delays.saturating_sub(schedule.saved))
            };
            let at = from.checked_add(behind).unwrap_or(from);
            if !stays(*position, waiter, at) {
                return false;
            }
            let by = waiter.deadline.checked_sub(behind).unwrap_or(schedule.due);
            start_by = Some(start_by.map_or(by, |least| least.min(by)));
            if !undelayed {
                delays = delays.saturating_add(schedule.delay);
            }
            true
        });
        self.suspended
            .retain(|position, waiter| stays(*position, waiter, schedule.pause_end));
        self.start_by = start_by;
        if head != self.waiting.keys().next().copied() {
            self.head.changed();
        }
    }
}
