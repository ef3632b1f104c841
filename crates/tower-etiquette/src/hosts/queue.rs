//! The line of requests that wait for one host.
//!
//! First come, first served within a class: robots.txt before what a person waits for, that before a crawl. Nothing is
//! booked ahead and only the first is timed, so that whoever leaves leaves no debt behind. A first that is not polled any
//! more steps aside.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{ApiQuota, StartOptions};
use etiquette_core::vocabulary::refusal::HostRefusal;

/// A position in the queue. A request that has to step out, or whose start did not come about, returns to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) class: Class,
    pub(super) number: u64,
}

/// Who goes before whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    RobotsTxt,
    Person,
    Crawl,
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) waker: Option<Waker>,
    pub(super) deadline: Instant,
    pub(super) ask: StartOptions,
}

/// How long the first of a line may let pass what calls it.
const SILENT: Duration = Duration::from_millis(500);

/// Why a request may not go on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Denied {
    pub(super) why: HostRefusal,
    pub(super) retry_at: Option<Instant>,
}

/// Whom to wake once the lock is free.
pub(super) type Calls = std::iter::Flatten<std::array::IntoIter<Option<Waker>, 2>>;

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<Position, Waiter>,
    /// Requests whose rules are being renewed, or that nobody polls. They keep their position, but hold nobody up.
    away: BTreeMap<Position, Waiter>,
    denied: BTreeMap<Position, Denied>,
    /// As long as the first starts by then, nobody misses a deadline. Unknown after a change in the line's order.
    first_by: Option<Instant>,
    /// Somebody watches that the first looks when it should.
    watched: bool,
    /// The watch, while it sleeps.
    watcher: Option<Waker>,
    /// The first was called and has not looked since.
    called: bool,
    /// Since when it should have looked, or the instant at which it will; unknown until the watch sees it.
    looks_at: Option<Instant>,
}

impl Queue {
    /// Those who wait, the ones who stepped out included.
    pub(super) fn len(&self) -> usize {
        self.waiting.len() + self.away.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nobody waits, and nobody still has to learn that it was sent away.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.denied.is_empty()
    }

    /// Whether a request at `position` would be the first.
    pub(super) fn is_first(&self, position: Position) -> bool {
        self.waiting
            .first_key_value()
            .is_none_or(|(first, _)| position <= *first)
    }

    /// How many wait before `position`.
    pub(super) fn ahead(&self, position: Position) -> usize {
        match self.waiting.last_key_value() {
            Some((last, _)) if *last < position => self.waiting.len(),
            _ => self.waiting.range(..position).count(),
        }
    }

    /// Whether the position stands in the line, or in front of it.
    pub(super) fn holds(&self, position: Position) -> bool {
        self.waiting.contains_key(&position) || self.away.contains_key(&position)
    }

    pub(super) fn insert(&mut self, position: Position, waiter: Waiter) {
        self.first_by = None;
        self.waiting.insert(position, waiter);
    }

    pub(super) fn get_mut(&mut self, position: Position) -> Option<&mut Waiter> {
        self.waiting.get_mut(&position)
    }

    pub(super) fn away_mut(&mut self, position: Position) -> Option<&mut Waiter> {
        self.away.get_mut(&position)
    }

    /// Steps out of the line and keeps the position.
    pub(super) fn step_out(&mut self, position: Position, waiter: Waiter) {
        self.remove(position);
        self.away.insert(position, waiter);
    }

    /// Returns to its position after it stepped out.
    pub(super) fn step_in(&mut self, position: Position) {
        if let Some(waiter) = self.away.remove(&position) {
            self.insert(position, waiter);
        }
    }

    /// The first starts: all others move up by one `delay`.
    pub(super) fn remove_first(&mut self, position: Position, delay: Duration) {
        self.remove(position);
        self.first_by = self.first_by.and_then(|by| by.checked_add(delay));
    }

    /// Leaves the line, wherever it stood.
    pub(super) fn leave(&mut self, position: Position) {
        self.remove(position);
        self.away.remove(&position);
        self.denied.remove(&position);
    }

    pub(super) fn take_denied(&mut self, position: Position) -> Option<Denied> {
        self.denied.remove(&position)
    }

    fn remove(&mut self, position: Position) {
        if self.is_first(position) {
            self.called = false;
            self.looks_at = None;
        }
        self.waiting.remove(&position);
    }

    /// Calls the first: something changed that it waits for. Those to wake are it, and the watch that sees to it.
    pub(super) fn call_first(&mut self) -> Calls {
        let first = self.waiting.first_key_value();
        let first = first.and_then(|(_, waiter)| waiter.waker.clone());
        let mut watcher = None;
        if !self.called || self.waiting.len() < 2 {
            watcher = self.watcher.take();
        }
        if !self.called {
            self.called = true;
            self.looks_at = None;
        }
        [first, watcher].into_iter().flatten()
    }

    /// The first has looked, and will again at `again`.
    pub(super) fn looked(&mut self, again: Instant) {
        self.called = false;
        self.looks_at = Some(again);
    }

    /// Whether somebody has to begin a watch: more than one waits, and there is none yet.
    pub(super) fn lacks_a_watch(&mut self) -> bool {
        let lacks = !self.watched && self.waiting.len() > 1;
        self.watched |= lacks;
        lacks
    }

    /// When the watch, which `watcher` wakes, has to look again; `None` when it is over. A first that has not looked when it
    /// should have is called, and steps aside when it has not looked after that.
    pub(super) fn watch(
        &mut self,
        now: Instant,
        watcher: &Waker,
        wakers: &mut Vec<Waker>,
    ) -> Option<Instant> {
        loop {
            if self.waiting.len() < 2 {
                self.watched = false;
                self.watcher = None;
                return None;
            }
            let until = *self.looks_at.get_or_insert(now) + SILENT;
            if now < until {
                self.watcher = Some(watcher.clone());
                return Some(until);
            }
            self.watcher = None;
            if self.called
                && let Some((position, waiter)) = self.waiting.pop_first()
            {
                self.away.insert(position, waiter);
                self.first_by = None;
            }
            self.called = false;
            wakers.extend(self.call_first());
        }
    }

    /// The watch is gone: whoever of those who wait is polled begins another one.
    pub(super) fn unwatched(&mut self) -> Vec<Waker> {
        if !std::mem::take(&mut self.watched) {
            return Vec::new();
        }
        self.watcher = None;
        let waiting = self.waiting.values();
        waiting.filter_map(|waiter| waiter.waker.clone()).collect()
    }

    /// The API that all of this line ask for, if they do.
    pub(super) fn api(&self) -> Option<ApiQuota> {
        let first = self.waiting.values().next();
        first.or(self.away.values().next())?.ask.api
    }

    /// The instant by which the first has to start, so that nobody misses a deadline, if that is known.
    pub(super) fn first_by(&self) -> Option<Instant> {
        self.first_by
    }

    /// What is known about deadlines is out of date.
    pub(super) fn forget_first_by(&mut self) {
        self.first_by = None;
    }

    /// Sends everybody away who cannot start before its deadline when the first starts at `due` and each other one
    /// `delay` after the one before, less what is `saved` up. Those who stepped out or take no delay are judged by the end of
    /// the pause alone.
    pub(super) fn review(
        &mut self,
        pause_end: Instant,
        due: Instant,
        delay: Duration,
        saved: Duration,
        mut deny: impl FnMut(Instant) -> Denied,
        wakers: &mut Vec<Waker>,
    ) {
        let first = self.waiting.keys().next().copied();
        let mut first_by: Option<Instant> = None;
        let mut sum = Duration::ZERO;
        let denied = &mut self.denied;
        self.waiting.retain(|position, waiter| {
            let undelayed = waiter.ask.pauses_only || waiter.ask.delay_taken;
            let behind = if undelayed {
                Duration::ZERO
            } else {
                sum.saturating_sub(saved)
            };
            let from = if undelayed { pause_end } else { due };
            let at = from.checked_add(behind).unwrap_or(from);
            if at > waiter.deadline {
                denied.insert(*position, deny(at));
                wakers.extend(waiter.waker.take());
                return false;
            }
            let by = waiter.deadline.checked_sub(behind).unwrap_or(due);
            first_by = Some(first_by.map_or(by, |first| first.min(by)));
            if !undelayed {
                sum = sum.saturating_add(delay);
            }
            true
        });
        self.away.retain(|position, waiter| {
            let stays = pause_end <= waiter.deadline;
            if !stays {
                denied.insert(*position, deny(pause_end));
                wakers.extend(waiter.waker.take());
            }
            stays
        });
        self.first_by = first_by;
        if first != self.waiting.keys().next().copied() {
            self.called = false;
            self.looks_at = None;
        }
    }
}
