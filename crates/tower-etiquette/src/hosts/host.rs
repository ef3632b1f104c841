//! One host: its state and its line behind one lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::Now;
use etiquette_core::host::{
    ApiAsk, Ask, Decision, HostMark, HostPolicy, HostRecord, HostState, PackedHost, Received,
};
use etiquette_core::refusal::HostRefusal;

use super::queue::{Class, Denied, Place, Queue, Waiter};
use super::shared::View;
use super::sync::{Mutex, MutexGuard};
use crate::events::{Changes, Standing, Told};

const FULL: Denied = Denied {
    why: HostRefusal::QueueFull,
    retry_at: None,
};

/// How many APIs of one host are in use at a time. A program declares few.
const MOST_APIS: usize = 16;

/// A body counts as being read when something of it was polled within so long.
const UNREAD: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Host {
    pub(super) key: u64,
    pub(super) name: Box<str>,
    pub(super) policy: Arc<HostPolicy>,
    core: Mutex<Core>,
    meter: Meter,
}

/// Bodies whose reader waits for more, and how often any body was polled: kept apart from the lock, because each frame of
/// each body touches them.
#[derive(Debug, Default)]
struct Meter {
    reading: AtomicU32,
    polls: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Core {
    pub(super) state: HostState,
    /// Numbers the places of all lines.
    places: u64,
    line: Line,
    /// The lines of APIs. One is kept as long as anybody uses it or something is owed to its API.
    apis: Vec<(Tap, Line)>,
    /// Where hosts are shared with other processes.
    pub(super) view: Option<Box<View>>,
    told: Told,
    /// What the journal has, where there is one.
    written: Option<Box<HostMark>>,
}

/// Those who wait for one budget: the host's own, or that of an API.
#[derive(Debug, Default)]
struct Line {
    queue: Queue,
    /// Requests under way of which only the body is left.
    bodies: u32,
}

/// An API that a request uses, with its line.
#[derive(Clone, Debug)]
pub(super) struct Tap {
    pub(super) ask: ApiAsk,
    meter: Arc<Meter>,
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
    /// It waits behind others, and has to begin a watch of the line if there is none yet.
    Behind {
        /// Whether there is none.
        watch: bool,
    },
    /// It may not wait.
    Denied(Denied),
}

/// A request that looks at the line.
#[derive(Debug)]
pub(super) struct Looker<'a> {
    pub(super) place: Place,
    pub(super) ask: Ask,
    /// What it is held to where that is stricter than the host's own policy.
    pub(super) policy: Option<&'a HostPolicy>,
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

/// A request with a reserved place that is about to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starting<'a> {
    now: Instant,
    ask: Ask,
    /// What it is held to where that is stricter than the host's own policy.
    pub(super) policy: Option<&'a HostPolicy>,
    /// As for a [`Looker`].
    pub(super) gap_taken_at: Option<u64>,
    /// A layer further out on the same hosts has counted it.
    pub(super) counted: bool,
    /// It was held, and a budget elsewhere keeps this gap.
    pub(super) let_go: Option<Duration>,
}

impl Starting<'_> {
    pub(super) fn new(now: Instant, ask: Ask) -> Self {
        Self {
            now,
            ask,
            policy: None,
            gap_taken_at: None,
            counted: false,
            let_go: None,
        }
    }
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
            meter: Meter::default(),
        }
    }

    /// Nothing that runs under the lock is the user's, so that a poisoned lock only means a panic of ours: go on.
    pub(super) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line of an API; `None` when too many of this host are in use.
    pub(super) fn tap(&self, ask: ApiAsk, now: Instant) -> Option<Tap> {
        let core = &mut *self.core();
        if let Some((tap, _)) = core.apis.iter().find(|(tap, _)| tap.is(ask.number)) {
            return Some(Tap {
                ask,
                meter: Arc::clone(&tap.meter),
            });
        }
        if core.apis.len() >= MOST_APIS {
            let state = &mut core.state;
            core.apis.retain(|(tap, _)| {
                Arc::strong_count(&tap.meter) > 1 || state.owes_api(now, tap.ask.number, true)
            });
        }
        if core.apis.len() >= MOST_APIS {
            return None;
        }
        let meter = Arc::default();
        let tap = Tap { ask, meter };
        core.apis.push((tap.clone(), Line::default()));
        Some(tap)
    }

    /// The last place of a class.
    pub(super) fn place(&self, class: Class) -> Place {
        let mut core = self.core();
        core.places += 1;
        Place {
            class,
            number: core.places,
        }
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
        let policy = looker.policy.unwrap_or(&self.policy);
        looker.ask.gap_taken |= core.gap_taken(looker.gap_taken_at);
        let ask = looker.ask;
        let queue = core.queue(ask);
        if let Some(denied) = queue.take_denied(place) {
            return Look::Denied(denied);
        }
        queue.step_in(place);
        if queue.get_mut(place).is_none() {
            if queue.is_first(place) && core.decide(policy, now, ask) == Decision::Admit {
                if !looker.asked {
                    return Look::Due;
                }
                core.reserve(ask);
                return Look::Granted;
            }
            if let Some(denied) = self.may_join(core, now, looker) {
                return Look::Denied(denied);
            }
            let waiter = Waiter {
                waker: None,
                deadline: looker.deadline,
                ask,
            };
            core.queue(ask).insert(place, waiter);
        }
        if !core.queue(ask).is_first(place) {
            looker.vigil.first_since = None;
            core.remember(place, looker);
            let watch = core.queue(ask).lacks_a_watch();
            return Look::Behind { watch };
        }
        let decision = core.decide(policy, now, ask);
        let (due, full) = match decision {
            Decision::Admit if looker.asked => {
                let gap = if ask.pauses_only || ask.gap_taken {
                    Duration::ZERO
                } else {
                    let saved = core.saved_up(now, ask);
                    core.gap(policy, now, ask).saturating_sub(saved)
                };
                core.queue(ask).remove_first(place, gap);
                core.reserve(ask);
                // With a gap the next one learns its turn when this one has started.
                if gap.is_zero() {
                    wakers.extend(core.queue(ask).call_first());
                }
                return Look::Granted;
            }
            Decision::Admit => return Look::Due,
            Decision::Full(due) => (due, true),
            Decision::Wait(due) => (due, false),
            _ => (now + UNREAD, false),
        };
        let by = core.queue(ask).first_by();
        if by.is_none_or(|by| due.max(now) > by) {
            self.review(core, ask.api.map(|api| api.number), now, wakers);
            let queue = core.queue(ask);
            if let Some(denied) = queue.take_denied(place) {
                wakers.extend(queue.call_first());
                return Look::Denied(denied);
            }
        }
        let mut again = if full { None } else { Some(due) };
        if full {
            match self.watch_bodies(core, now, looker) {
                Ok(look_at) => again = Some(look_at),
                Err(denied) => {
                    let queue = core.queue(ask);
                    queue.leave(place);
                    wakers.extend(queue.call_first());
                    return Look::Denied(denied);
                }
            }
        }
        core.remember(place, looker);
        let by = core.queue(ask).first_by().unwrap_or(looker.deadline);
        // Just after the deadline, because at it a start is still in time.
        let by = by + Duration::from_millis(1);
        let again = again.map_or(by, |again| again.min(by));
        core.queue(ask).looked(again);
        Look::First(again)
    }

    /// Whether a new request may wait: the line has an end, and the wait a limit.
    fn may_join(&self, core: &mut Core, now: Instant, looker: &Looker<'_>) -> Option<Denied> {
        let policy = looker.policy.unwrap_or(&self.policy);
        let ask = looker.ask;
        let due = core.due(policy, now, ask);
        let gap = core.gap(policy, now, ask);
        if looker.never_wait {
            // Where only a place is missing, nobody knows when it comes back: not before a gap has passed.
            let at = if due > now {
                due
            } else {
                now.checked_add(gap).unwrap_or(now)
            };
            return Some(self.denied(core, now, at));
        }
        let ahead = core.queue(ask).ahead(looker.place);
        let before = if ask.pauses_only {
            Duration::ZERO
        } else {
            gap.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX))
                .saturating_sub(core.saved_up(now, ask))
        };
        let at = due.checked_add(before).unwrap_or(due);
        if at > looker.deadline {
            return Some(self.denied(core, now, at));
        }
        (!looker.returning && self.line_is_full(core.queue(ask), looker.place)).then_some(FULL)
    }

    /// A line of pages does not keep robots.txt out, of which few wait at a time.
    fn line_is_full(&self, queue: &Queue, place: Place) -> bool {
        let limit = match place.class {
            Class::RobotsTxt => self
                .policy
                .queue_limit()
                .saturating_mul(2)
                .saturating_add(1),
            Class::Person | Class::Crawl => self.policy.queue_limit(),
        };
        queue.len() >= limit
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

    /// Sends those of a line away who cannot start in time any more.
    fn review(&self, core: &mut Core, api: Option<u64>, now: Instant, wakers: &mut Vec<Waker>) {
        if core.line(api).queue.is_empty() {
            return;
        }
        let ask = core.common_ask(api);
        let due = core.due(&self.policy, now, ask);
        let gap = core.gap(&self.policy, now, ask);
        let saved = core.saved_up(now, ask);
        let why = self.denied(core, now, due);
        let paused = core.state.paused_until(now).is_some();
        let deny = |at| Denied {
            retry_at: if paused { why.retry_at } else { Some(at) },
            ..why
        };
        let pause_end = core.due(&self.policy, now, Ask::pauses());
        let queue = &mut core.line(api).queue;
        queue.review(pause_end, due, gap, saved, deny, wakers);
    }

    /// When the places come from unread bodies alone for too long, waiting for them is pointless: the one who holds
    /// them may be the one who waits.
    fn watch_bodies(
        &self,
        core: &mut Core,
        now: Instant,
        looker: &mut Looker<'_>,
    ) -> Result<Instant, Denied> {
        let vigil = &mut *looker.vigil;
        let held = self.policy.body_held_after();
        let since = *vigil.first_since.get_or_insert(now);
        let judge_at = since.checked_add(held).unwrap_or(now + UNREAD);
        let watch_from = since
            .checked_add(held.saturating_sub(UNREAD))
            .unwrap_or(judge_at);
        if now < watch_from {
            return Ok(watch_from);
        }
        let api = looker.ask.api.map(|api| api.number);
        let in_flight = match api {
            Some(number) => core.state.api_in_flight(number),
            None => core.state.in_flight(),
        };
        let bodies = core.line(api).bodies;
        let meter = core.meter(&self.meter, api);
        let blocked =
            bodies > 0 && bodies >= in_flight && meter.reading.load(Ordering::Acquire) == 0;
        let polls = meter.polls.load(Ordering::Acquire);
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
            if let Some(denied) = core.queue(ask).take_denied(place) {
                Err(denied)
            } else if core.due(&self.policy, now, Ask::pauses()) > deadline {
                core.queue(ask).leave(place);
                Err(self.denied(&core, now, deadline))
            } else if !core.queue(ask).holds(place) && self.line_is_full(core.queue(ask), place) {
                Err(FULL)
            } else {
                let queue = core.queue(ask);
                let first = queue.is_first(place);
                queue.step_out(
                    place,
                    Waiter {
                        waker: None,
                        deadline,
                        ask,
                    },
                );
                if first {
                    wakers.extend(queue.call_first());
                }
                Ok(())
            }
        };
        wake(wakers);
        outcome
    }

    /// Whether somebody who stepped out was sent away meanwhile; remembers whom to wake then.
    pub(super) fn sent_away(&self, place: Place, ask: Ask, waker: &Waker) -> Option<Denied> {
        let mut core = self.core();
        let queue = core.queue(ask);
        if let Some(denied) = queue.take_denied(place) {
            return Some(denied);
        }
        if let Some(waiter) = queue.away_mut(place) {
            remember(waiter, waker);
        }
        None
    }

    /// When the watch of a line has to look again; `None` when it is over.
    pub(super) fn watch(&self, now: Instant, api: Option<u64>, watcher: &Waker) -> Option<Instant> {
        let mut wakers = Vec::new();
        let until = {
            let mut core = self.core();
            core.line(api).queue.watch(now, watcher, &mut wakers)
        };
        wake(wakers);
        until
    }

    /// A line's watch is gone.
    pub(super) fn unwatched(&self, api: Option<u64>) {
        let wakers = self.core().line(api).queue.unwatched();
        wake(wakers);
    }

    /// Leaves the line for good.
    pub(super) fn leave(&self, place: Place, ask: Ask) {
        let mut core = self.core();
        let queue = core.queue(ask);
        // The watch has to hear of a line that has become short.
        let calls = queue.is_first(place) || queue.len() <= 2;
        queue.leave(place);
        let wakers = calls.then(|| queue.call_first());
        drop(core);
        wake(wakers.into_iter().flatten());
    }

    /// Starts a request whose place is reserved, if pause and gap still allow it; the number of starts so far. Gives
    /// the place back otherwise.
    pub(super) fn commit(&self, start: Starting<'_>) -> Result<u64, ()> {
        let Starting { now, mut ask, .. } = start;
        let policy = start.policy.unwrap_or(&self.policy);
        let mut core = self.core();
        ask.gap_taken |= core.gap_taken(start.gap_taken_at);
        let outcome = if core.due(policy, now, ask) > now {
            core.unreserve(ask);
            Err(())
        } else {
            match ask.api {
                _ if ask.pauses_only => core.state.start_unplaced(now),
                Some(api) => core.state.start_api(now, api),
                None => core.state.start(now),
            }
            if start.counted {
                core.state.counted_before();
            }
            if let Some(gap) = start.let_go {
                core.state.let_go(now, gap);
            }
            Ok(core.state.started())
        };
        let waker = core.queue(ask).call_first();
        drop(core);
        wake(waker);
        outcome
    }

    /// Gives a reserved place back that was not used.
    pub(super) fn unreserve(&self, ask: Ask) {
        let mut core = self.core();
        core.unreserve(ask);
        let waker = core.queue(ask).call_first();
        drop(core);
        wake(waker);
    }

    /// What robots.txt asks for.
    pub(super) fn crawl_delay(&self, origin: u64, delay: Option<Duration>, now: Instant) {
        let mut core = self.core();
        let before = core.gap(&self.policy, now, Ask::pace());
        core.state.crawl_delay(origin, delay, now);
        let queue = &core.line.queue;
        if !queue.is_empty() && core.gap(&self.policy, now, Ask::pace()) != before {
            core.line.queue.forget_first_by();
            let waker = core.line.queue.call_first();
            drop(core);
            wake(waker);
        }
    }

    /// Nobody of this line asks the store any more.
    pub(super) fn asked(&self) {
        let mut core = self.core();
        core.view().asking = false;
        let waker = core.line.queue.call_first();
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
            let core = &mut *self.core();
            if head_of_placed {
                core.line(received.api).bodies += 1;
            }
            let before = core.prospects(&self.policy, now);
            let stood = Standing::of(&mut core.state, &self.policy, now);
            core.state.answered(&self.policy, now, received);
            if let Some(before) = before {
                let changed = core.prospects(&self.policy, now) != Some(before);
                for api in core.lines() {
                    if changed {
                        self.review(core, api, now, &mut wakers);
                    }
                    wakers.extend(core.line(api).queue.call_first());
                }
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
        let mut wakers = Vec::new();
        for api in core.lines() {
            let queue = &mut core.line(api).queue;
            queue.forget_first_by();
            wakers.extend(queue.call_first());
        }
        drop(core);
        wake(wakers);
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
    pub(super) fn finish(&self, now: Instant, in_body: bool, api: Option<u64>) {
        let mut core = self.core();
        if in_body {
            let line = core.line(api);
            line.bodies = line.bodies.saturating_sub(1);
        }
        match api {
            Some(number) => core.state.finish_api(number),
            None => core.state.finish(now),
        }
        let waker = core.line(api).queue.call_first();
        drop(core);
        wake(waker);
    }

    /// Somebody begins or ceases to wait for more of a body.
    pub(super) fn reading(&self, tap: Option<&Tap>, begins: bool) {
        let reading = &self.meter_of(tap).reading;
        if begins {
            reading.fetch_add(1, Ordering::AcqRel);
        } else {
            reading.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(super) fn polled(&self, tap: Option<&Tap>) {
        self.meter_of(tap).polls.fetch_add(1, Ordering::Relaxed);
    }

    fn meter_of<'a>(&'a self, tap: Option<&'a Tap>) -> &'a Meter {
        tap.map_or(&self.meter, |tap| &tap.meter)
    }

    /// The host in few octets, if it is at rest and under the common policy.
    pub(super) fn pack(
        &self,
        common: &Arc<HostPolicy>,
        base: Instant,
        now: Instant,
    ) -> Option<PackedHost> {
        let core = self.core();
        (Arc::ptr_eq(&self.policy, common) && core.is_idle()).then(|| core.state.pack(base, now))?
    }

    /// Starts a request at once, or says why it may not; the number of starts so far.
    pub(super) fn start_at_once(&self, now: Instant) -> Result<(), Denied> {
        let mut core = self.core();
        let ask = Ask::pace();
        let free = core.line.queue.is_empty();
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
        core.waiting() + core.state.under_way() as usize
    }

    /// Whether forgetting the host changes nothing. The caller makes sure that nobody else holds it.
    pub(super) fn is_forgettable(&self, now: Instant, pressure: bool) -> bool {
        let mut core = self.core();
        core.is_idle() && core.state.is_forgettable(&self.policy, now, pressure)
    }
}

impl Core {
    /// The line of an API, or the host's own. An API has one as long as anybody uses it.
    fn line(&mut self, api: Option<u64>) -> &mut Line {
        let found = api.and_then(|api| self.apis.iter_mut().find(|(tap, _)| tap.is(api)));
        match found {
            Some((_, line)) => line,
            None => &mut self.line,
        }
    }

    fn queue(&mut self, ask: Ask) -> &mut Queue {
        &mut self.line(ask.api.map(|api| api.number)).queue
    }

    fn meter<'a>(&'a self, own: &'a Meter, api: Option<u64>) -> &'a Meter {
        let found = api.and_then(|api| self.apis.iter().find(|(tap, _)| tap.is(api)));
        found.map_or(own, |(tap, _)| &tap.meter)
    }

    /// All lines, by their API.
    fn lines(&self) -> Vec<Option<u64>> {
        let apis = self.apis.iter().map(|(tap, _)| Some(tap.ask.number));
        std::iter::once(None).chain(apis).collect()
    }

    /// The requests that wait.
    pub(super) fn waiting(&self) -> usize {
        let apis = self.apis.iter().map(|(_, line)| line.queue.len());
        self.line.queue.len() + apis.sum::<usize>()
    }

    /// Nobody waits, and nobody still has to learn that it was sent away.
    fn is_idle(&self) -> bool {
        self.line.queue.is_idle() && self.apis.iter().all(|(_, line)| line.queue.is_idle())
    }

    /// What those of a line ask for.
    fn common_ask(&mut self, api: Option<u64>) -> Ask {
        self.line(api).queue.api().map_or(Ask::pace(), Ask::api)
    }

    fn reserve(&mut self, ask: Ask) {
        match ask.api {
            _ if ask.pauses_only => {}
            Some(api) => self.state.reserve_api(api),
            None => self.state.reserve(),
        }
    }

    fn unreserve(&mut self, ask: Ask) {
        match ask.api {
            _ if ask.pauses_only => {}
            Some(api) => self.state.unreserve_api(api.number),
            None => self.state.unreserve(),
        }
    }

    fn saved_up(&mut self, now: Instant, ask: Ask) -> Duration {
        match ask.api {
            Some(api) if !ask.pauses_only => self.state.saved_up(now, api),
            _ => Duration::ZERO,
        }
    }

    /// What decides how long those who wait have to wait; `None` when nobody does.
    fn prospects(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
    ) -> Option<(Option<Instant>, Duration, u32)> {
        (self.waiting() > 0).then(|| {
            let gap = self.gap(policy, now, Ask::pace());
            (self.state.paused_until(now), gap, self.state.strikes())
        })
    }

    pub(super) fn gap_taken(&self, at: Option<u64>) -> bool {
        at.is_some_and(|at| at == self.state.started())
    }

    fn remember(&mut self, place: Place, looker: &Looker<'_>) {
        if let Some(waiter) = self.queue(looker.ask).get_mut(place) {
            remember(waiter, looker.waker);
        }
    }
}

impl Tap {
    fn is(&self, number: u64) -> bool {
        self.ask.number == number
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
