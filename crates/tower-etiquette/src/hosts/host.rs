//! One host: its state and its line behind one lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::Now;
use etiquette_core::host::{
    Ask, Decision, HostMark, HostPolicy, HostRecord, HostState, PackedHost, Received,
};
use etiquette_core::refusal::HostRefusal;

use super::queue::{Class, Denied, Place, Queue, Waiter};
use super::shared::View;
use crate::events::{Changes, Standing, Told};

const FULL: Denied = Denied {
    why: HostRefusal::QueueFull,
    retry_at: None,
};

/// A body counts as being read when something of it was polled within so long.
const UNREAD: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Host {
    pub(super) key: u64,
    pub(super) name: Box<str>,
    pub(super) policy: Arc<HostPolicy>,
    core: Mutex<Core>,
    /// Bodies whose reader waits for more, and how often any body was polled: kept apart from the lock, because each
    /// frame of each body touches them.
    reading: AtomicU32,
    polls: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Core {
    pub(super) state: HostState,
    pub(super) queue: Queue,
    /// Requests under way of which only the body is left.
    bodies: u32,
    /// Where hosts are shared with other processes.
    pub(super) view: Option<Box<View>>,
    told: Told,
    /// What the journal has, where there is one.
    written: Option<Box<HostMark>>,
}

/// What a look at the line came to.
#[derive(Debug)]
pub(super) enum Look {
    /// A place is reserved for it.
    Granted,
    /// It could be granted one; its rules are asked before.
    Due,
    /// It waits; it is first, and looks again at the instant.
    First(Instant),
    /// It waits behind others.
    Behind,
    /// It may not wait.
    Denied(Denied),
}

/// A request that looks at the line.
#[derive(Debug)]
pub(super) struct Looker<'a> {
    pub(super) place: Place,
    pub(super) ask: Ask,
    /// The number of the visit's last start here: as long as nobody else has started since, its gap is taken.
    pub(super) gap_taken_at: Option<u64>,
    pub(super) deadline: Instant,
    /// Its rules were asked at this very moment.
    pub(super) asked: bool,
    /// Refuse rather than wait.
    pub(super) never_wait: bool,
    /// It had stood in the line before.
    pub(super) returning: bool,
    pub(super) waker: &'a Waker,
    pub(super) vigil: &'a mut Vigil,
}

/// What the first of a line has seen of the bodies that block it.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    first_since: Option<Instant>,
    seen: Option<(u64, Instant)>,
}

impl Host {
    pub(super) fn new(key: u64, name: &str, policy: Arc<HostPolicy>, state: HostState) -> Self {
        Self {
            key,
            name: name.into(),
            policy,
            core: Mutex::new(Core {
                told: Told::of(&state),
                state,
                ..Core::default()
            }),
            reading: AtomicU32::new(0),
            polls: AtomicU64::new(0),
        }
    }

    /// Nothing that runs under the lock is the user's, so that a poisoned lock only means a panic of ours: go on.
    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line or looks again. Wakes whoever has to know.
    pub(super) fn look(&self, now: Instant, mut looker: Looker<'_>) -> Look {
        let mut wakers = Vec::new();
        let look = self.look_locked(&mut self.core(), now, &mut looker, &mut wakers);
        wake(wakers);
        look
    }

    fn look_locked(
        &self,
        core: &mut Core,
        now: Instant,
        looker: &mut Looker<'_>,
        wakers: &mut Vec<Waker>,
    ) -> Look {
        let place = looker.place;
        looker.ask.gap_taken |= core.gap_taken(looker.gap_taken_at);
        if let Some(denied) = core.queue.take_denied(place) {
            return Look::Denied(denied);
        }
        core.queue.step_in(place);
        if core.queue.get_mut(place).is_none() {
            if core.queue.is_first(place)
                && core.decide(&self.policy, now, looker.ask) == Decision::Admit
            {
                if !looker.asked {
                    return Look::Due;
                }
                core.reserve(looker.ask);
                return Look::Granted;
            }
            if let Some(denied) = self.may_join(core, now, looker) {
                return Look::Denied(denied);
            }
            core.queue.insert(
                place,
                Waiter {
                    waker: None,
                    deadline: looker.deadline,
                    ask: looker.ask,
                },
            );
        }
        if !core.queue.is_first(place) {
            looker.vigil.first_since = None;
            core.remember(place, looker.waker);
            return Look::Behind;
        }
        let decision = core.decide(&self.policy, now, looker.ask);
        let (due, full) = match decision {
            Decision::Admit if looker.asked => {
                let gap = if looker.ask.pauses_only || looker.ask.gap_taken {
                    Duration::ZERO
                } else {
                    core.gap(&self.policy, now)
                };
                core.queue.remove_first(place, gap);
                core.reserve(looker.ask);
                // With a gap the next one learns its turn when this one has started.
                if gap.is_zero() {
                    wakers.extend(core.queue.first_waker());
                }
                return Look::Granted;
            }
            Decision::Admit => return Look::Due,
            Decision::Full(due) => (due, true),
            Decision::Wait(due) => (due, false),
            _ => (now + UNREAD, false),
        };
        if core.queue.first_by().is_none_or(|by| due.max(now) > by) {
            self.review(core, now, wakers);
            if let Some(denied) = core.queue.take_denied(place) {
                wakers.extend(core.queue.first_waker());
                return Look::Denied(denied);
            }
        }
        let mut again = if full { None } else { Some(due) };
        if full {
            match self.watch_bodies(core, now, looker.vigil) {
                Ok(look_at) => again = Some(look_at),
                Err(denied) => {
                    core.queue.leave(place);
                    wakers.extend(core.queue.first_waker());
                    return Look::Denied(denied);
                }
            }
        }
        core.remember(place, looker.waker);
        let by = core.queue.first_by().unwrap_or(looker.deadline);
        // Just after the deadline, because at it a start is still in time.
        let by = by + Duration::from_millis(1);
        Look::First(again.map_or(by, |again| again.min(by)))
    }

    /// Whether a new request may wait: the line has an end, and the wait a limit.
    fn may_join(&self, core: &mut Core, now: Instant, looker: &Looker<'_>) -> Option<Denied> {
        let due = core.due(&self.policy, now, looker.ask);
        let gap = core.gap(&self.policy, now);
        if looker.never_wait {
            // Where only a place is missing, nobody knows when it comes back: not before a gap has passed.
            let at = if due > now {
                due
            } else {
                now.checked_add(gap).unwrap_or(now)
            };
            return Some(self.denied(core, now, at));
        }
        let ahead = u32::try_from(core.queue.ahead(looker.place)).unwrap_or(u32::MAX);
        let before = if looker.ask.pauses_only {
            Duration::ZERO
        } else {
            gap.saturating_mul(ahead)
        };
        let at = due.checked_add(before).unwrap_or(due);
        if at > looker.deadline {
            return Some(self.denied(core, now, at));
        }
        (!looker.returning && self.line_is_full(core, looker.place)).then_some(FULL)
    }

    /// A line of pages does not keep robots.txt out, of which few wait at a time.
    fn line_is_full(&self, core: &Core, place: Place) -> bool {
        let limit = match place.class {
            Class::RobotsTxt => self
                .policy
                .queue_limit()
                .saturating_mul(2)
                .saturating_add(1),
            Class::Person | Class::Crawl => self.policy.queue_limit(),
        };
        core.queue.len() >= limit
    }

    /// A request that cannot start before `at`.
    fn denied(&self, core: &Core, now: Instant, at: Instant) -> Denied {
        let shut_out = core.state.is_shut_out(&self.policy);
        let paused = core.state.paused_until(now);
        Denied {
            why: if shut_out && paused.is_some() {
                HostRefusal::Blocked
            } else {
                HostRefusal::Paused
            },
            // The end of the pause is what the site asked for; behind it the line decides.
            retry_at: Some(paused.unwrap_or(at)),
        }
    }

    /// Sends those away who cannot start in time any more.
    fn review(&self, core: &mut Core, now: Instant, wakers: &mut Vec<Waker>) {
        if core.queue.is_empty() {
            return;
        }
        let due = core.due(&self.policy, now, Ask::pace());
        let gap = core.gap(&self.policy, now);
        let why = self.denied(core, now, due);
        let paused = core.state.paused_until(now).is_some();
        let deny = |at| Denied {
            retry_at: if paused { why.retry_at } else { Some(at) },
            ..why
        };
        let pause_end = core.due(&self.policy, now, Ask::pauses());
        core.queue.review(pause_end, due, gap, deny, wakers);
    }

    /// When the places come from unread bodies alone for too long, waiting for them is pointless: the one who holds
    /// them may be the one who waits.
    fn watch_bodies(
        &self,
        core: &Core,
        now: Instant,
        vigil: &mut Vigil,
    ) -> Result<Instant, Denied> {
        let held = self.policy.body_held_after();
        let since = *vigil.first_since.get_or_insert(now);
        let judge_at = since.checked_add(held).unwrap_or(now + UNREAD);
        let watch_from = since
            .checked_add(held.saturating_sub(UNREAD))
            .unwrap_or(judge_at);
        if now < watch_from {
            return Ok(watch_from);
        }
        let blocked = core.bodies > 0
            && core.bodies >= core.state.in_flight()
            && self.reading.load(Ordering::Acquire) == 0;
        let polls = self.polls.load(Ordering::Acquire);
        match vigil.seen {
            Some((seen, at)) if blocked && seen == polls => {
                let judge_at = judge_at.max(at + UNREAD.min(held));
                if now >= judge_at {
                    Err(Denied {
                        why: HostRefusal::BodyHeld,
                        retry_at: None,
                    })
                } else {
                    Ok(judge_at)
                }
            }
            _ => {
                vigil.seen = blocked.then_some((polls, now));
                Ok(judge_at
                    .max(now + UNREAD.min(held))
                    .max(now + Duration::from_millis(1)))
            }
        }
    }

    /// Steps out of the line while the rules are renewed; `Err` when it may not wait at all.
    pub(super) fn step_out(
        &self,
        now: Instant,
        place: Place,
        deadline: Instant,
        ask: Ask,
    ) -> Result<(), Denied> {
        let mut wakers = Vec::new();
        let outcome = {
            let mut core = self.core();
            if let Some(denied) = core.queue.take_denied(place) {
                Err(denied)
            } else if core.due(&self.policy, now, Ask::pauses()) > deadline {
                core.queue.leave(place);
                Err(self.denied(&core, now, deadline))
            } else if !core.queue.holds(place) && self.line_is_full(&core, place) {
                Err(FULL)
            } else {
                let first = core.queue.is_first(place);
                core.queue.step_out(
                    place,
                    Waiter {
                        waker: None,
                        deadline,
                        ask,
                    },
                );
                if first {
                    wakers.extend(core.queue.first_waker());
                }
                Ok(())
            }
        };
        wake(wakers);
        outcome
    }

    /// Whether somebody who stepped out was sent away meanwhile; remembers whom to wake then.
    pub(super) fn sent_away(&self, place: Place, waker: &Waker) -> Option<Denied> {
        let mut core = self.core();
        if let Some(denied) = core.queue.take_denied(place) {
            return Some(denied);
        }
        if let Some(waiter) = core.queue.away_mut(place) {
            remember(waiter, waker);
        }
        None
    }

    /// Leaves the line for good.
    pub(super) fn leave(&self, place: Place) {
        let mut core = self.core();
        let first = core.queue.is_first(place);
        core.queue.leave(place);
        let waker = first.then(|| core.queue.first_waker()).flatten();
        drop(core);
        wake(waker);
    }

    /// Starts a request whose place is reserved, if pause and gap still allow it; the number of starts so far. Gives
    /// the place back otherwise.
    pub(super) fn commit(
        &self,
        now: Instant,
        mut ask: Ask,
        gap_taken_at: Option<u64>,
    ) -> Result<u64, ()> {
        let mut core = self.core();
        ask.gap_taken |= core.gap_taken(gap_taken_at);
        let outcome = if core.due(&self.policy, now, ask) > now {
            core.unreserve(ask);
            Err(())
        } else {
            if ask.pauses_only {
                core.state.start_unplaced(now);
            } else {
                core.state.start(now);
            }
            Ok(core.state.started())
        };
        let waker = core.queue.first_waker();
        drop(core);
        wake(waker);
        outcome
    }

    /// Gives a reserved place back that was not used.
    pub(super) fn unreserve(&self, ask: Ask) {
        let mut core = self.core();
        core.unreserve(ask);
        let waker = core.queue.first_waker();
        drop(core);
        wake(waker);
    }

    /// What robots.txt asks for.
    pub(super) fn crawl_delay(&self, origin: u64, delay: Option<Duration>, now: Instant) {
        let mut core = self.core();
        let before = core.gap(&self.policy, now);
        core.state.crawl_delay(origin, delay, now);
        if !core.queue.is_empty() && core.gap(&self.policy, now) != before {
            core.queue.forget_first_by();
            let waker = core.queue.first_waker();
            drop(core);
            wake(waker);
        }
    }

    /// Nobody of this line asks the store any more.
    pub(super) fn asked(&self) {
        let mut core = self.core();
        core.view().asking = false;
        let waker = core.queue.first_waker();
        drop(core);
        wake(waker);
    }

    /// Records an answer. `head_of_placed` when the sender holds a place and only the body is left.
    pub(super) fn answered(
        &self,
        now: Instant,
        received: &Received,
        head_of_placed: bool,
    ) -> Changes {
        let mut wakers = Vec::new();
        let changes = {
            let mut core = self.core();
            let core = &mut *core;
            if head_of_placed {
                core.bodies += 1;
            }
            let before = core.prospects(&self.policy, now);
            let stood = Standing::of(&mut core.state, &self.policy, now);
            core.state.answered(&self.policy, now, received);
            if !core.queue.is_empty() {
                if core.prospects(&self.policy, now) != before {
                    self.review(core, now, &mut wakers);
                }
                wakers.extend(core.queue.first_waker());
            }
            stood.changes(&mut core.state, &mut core.told, &self.policy, now, received)
        };
        wake(wakers);
        changes
    }

    /// Takes over what a journal knows; whether anything of it still matters.
    pub(super) fn recall(&self, record: &HostRecord, now: Now) -> bool {
        let mut core = self.core();
        core.state.recall(record, now);
        let mark = core.state.mark(now.monotonic);
        core.told = Told::of(&core.state);
        if !record.is_from_the_future(now.wall) {
            core.written = mark.map(Box::new);
        }
        core.queue.forget_first_by();
        let waker = core.queue.first_waker();
        drop(core);
        wake(waker);
        mark.is_some()
    }

    /// Whether the journal has what is to be known.
    pub(super) fn is_written(&self, now: Instant) -> bool {
        let mut core = self.core();
        core.state.mark(now).as_ref() == core.written.as_deref()
    }

    /// The journal has this now.
    pub(super) fn written(&self, mark: Option<HostMark>) {
        self.core().written = mark.map(Box::new);
    }

    /// A request that was started and holds a place is over.
    pub(super) fn finish(&self, now: Instant, in_body: bool) {
        let mut core = self.core();
        if in_body {
            core.bodies = core.bodies.saturating_sub(1);
        }
        core.state.finish(now);
        let waker = core.queue.first_waker();
        drop(core);
        wake(waker);
    }

    /// Somebody begins or ceases to wait for more of a body.
    pub(super) fn reading(&self, begins: bool) {
        if begins {
            self.reading.fetch_add(1, Ordering::AcqRel);
        } else {
            self.reading.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// The host in few octets, if it is at rest and under the common policy.
    pub(super) fn pack(
        &self,
        common: &Arc<HostPolicy>,
        base: Instant,
        now: Instant,
    ) -> Option<PackedHost> {
        let core = self.core();
        (Arc::ptr_eq(&self.policy, common) && core.queue.is_idle())
            .then(|| core.state.pack(base, now))?
    }

    /// Starts a request at once, or says why it may not; the number of starts so far.
    pub(super) fn start_at_once(&self, now: Instant) -> Result<(), Denied> {
        let mut core = self.core();
        let ask = Ask::pace();
        let free = core.queue.is_empty();
        if free && core.state.decide(&self.policy, now, ask) == Decision::Admit {
            core.state.reserve();
            core.state.start(now);
            return Ok(());
        }
        let due = core.state.due(&self.policy, now, ask);
        let gap = core.state.gap(&self.policy, now);
        let at = if due > now {
            due
        } else {
            now.checked_add(gap).unwrap_or(now)
        };
        Err(self.denied(&core, now, at))
    }

    /// The requests under way and waiting.
    pub(super) fn load(&self) -> usize {
        let core = self.core();
        core.queue.len() + core.state.in_flight() as usize
    }

    /// Whether forgetting the host changes nothing. The caller makes sure that nobody else holds it.
    pub(super) fn is_forgettable(&self, now: Instant, pressure: bool) -> bool {
        let mut core = self.core();
        core.queue.is_idle() && core.state.is_forgettable(&self.policy, now, pressure)
    }
}

impl Core {
    fn reserve(&mut self, ask: Ask) {
        if !ask.pauses_only {
            self.state.reserve();
        }
    }

    fn unreserve(&mut self, ask: Ask) {
        if !ask.pauses_only {
            self.state.unreserve();
        }
    }

    /// What decides how long those who wait have to wait.
    fn prospects(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
    ) -> Option<(Option<Instant>, Duration)> {
        (!self.queue.is_empty()).then(|| (self.state.paused_until(now), self.gap(policy, now)))
    }

    pub(super) fn gap_taken(&self, at: Option<u64>) -> bool {
        at.is_some_and(|at| at == self.state.started())
    }

    fn remember(&mut self, place: Place, waker: &Waker) {
        if let Some(waiter) = self.queue.get_mut(place) {
            remember(waiter, waker);
        }
    }
}

fn remember(waiter: &mut Waiter, waker: &Waker) {
    match &mut waiter.waker {
        Some(known) => known.clone_from(waker),
        none => *none = Some(waker.clone()),
    }
}

/// Wakes without a lock held: a waker is the runtime's code.
fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
