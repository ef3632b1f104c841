//! One host: its state and its line behind one lock.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::Now;
use etiquette_core::decide::host::{
    ApiQuota, Decision, HostMark, HostPolicy, HostRecord, HostState, PackedHost, ResponseRecord,
    StartOptions,
};

use super::line::Line;
use super::queue::{Class, Denied, Position, Queue};
use super::shared::View;
use super::sync::{Mutex, MutexGuard};
use crate::events::{Changes, Standing, Told};

/// How many APIs of one host are in use at a time. A program declares few.
const MOST_APIS: usize = 16;

#[derive(Debug)]
pub(crate) struct Host {
    pub(super) key: u64,
    pub(super) name: Box<str>,
    pub(super) policy: Arc<HostPolicy>,
    core: Mutex<Core>,
    pub(super) meter: Meter,
}

/// Bodies whose reader waits for more, and how often any body was polled: kept apart from the lock, because each frame of
/// each body touches them.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) reading: AtomicU32,
    pub(super) polls: AtomicU64,
}

#[derive(Debug, Default)]
pub(super) struct Core {
    pub(super) state: HostState,
    /// Numbers the positions of all queues.
    positions: u64,
    line: Line,
    /// The lines of APIs. One is kept as long as anybody uses it or something is owed to its API.
    apis: Vec<(Tap, Line)>,
    /// Where hosts are shared with other processes.
    pub(super) view: Option<Box<View>>,
    told: Told,
    /// What the journal has, where there is one.
    written: Option<Box<HostMark>>,
}

/// An API that a request uses, with its line.
#[derive(Clone, Debug)]
pub(super) struct Tap {
    pub(super) ask: ApiQuota,
    meter: Arc<Meter>,
}

/// A request with a reserved permit that is about to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starting<'a> {
    now: Instant,
    ask: StartOptions,
    /// What it is held to where that is stricter than the host's own policy.
    pub(super) policy: Option<&'a HostPolicy>,
    /// As for a [`Looker`](super::line::Looker).
    pub(super) delay_taken_at: Option<u64>,
    /// A layer further out on the same hosts has counted it.
    pub(super) counted: bool,
    /// It was held, and a budget elsewhere keeps this delay.
    pub(super) let_go: Option<Duration>,
}

impl Starting<'_> {
    pub(super) fn new(now: Instant, ask: StartOptions) -> Self {
        Self {
            now,
            ask,
            policy: None,
            delay_taken_at: None,
            counted: false,
            let_go: None,
        }
    }
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
    pub(super) fn tap(&self, ask: ApiQuota, now: Instant) -> Option<Tap> {
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

    /// The last position of a class.
    pub(super) fn position(&self, class: Class) -> Position {
        let mut core = self.core();
        core.positions += 1;
        Position {
            class,
            number: core.positions,
        }
    }

    /// Starts a request whose permit is reserved, if pause and delay still allow it; the number of starts so far. Gives
    /// the permit back otherwise.
    pub(super) fn commit(&self, start: Starting<'_>) -> Result<u64, ()> {
        let Starting { now, mut ask, .. } = start;
        let policy = start.policy.unwrap_or(&self.policy);
        let mut core = self.core();
        ask.delay_taken |= core.delay_taken(start.delay_taken_at);
        let outcome = if core.due(policy, now, ask) > now {
            core.unreserve(ask);
            Err(())
        } else {
            match ask.api {
                _ if ask.pauses_only => core.state.start_without_permit(now),
                Some(api) => core.state.start_api(now, api),
                None => core.state.start(now),
            }
            if start.counted {
                core.state.uncount_start();
            }
            if let Some(delay) = start.let_go {
                core.state.space_without_permit(now, delay);
            }
            Ok(core.state.started())
        };
        let waker = core.queue(ask).call_first();
        drop(core);
        wake(waker);
        outcome
    }

    /// Gives a reserved permit back that was not used.
    pub(super) fn unreserve(&self, ask: StartOptions) {
        let mut core = self.core();
        core.unreserve(ask);
        let waker = core.queue(ask).call_first();
        drop(core);
        wake(waker);
    }

    /// What robots.txt asks for.
    pub(super) fn crawl_delay(&self, origin: u64, delay: Option<Duration>, now: Instant) {
        let mut core = self.core();
        let before = core.delay(&self.policy, now, StartOptions::pace());
        core.state.crawl_delay(origin, delay, now);
        let queue = &core.line.queue;
        if !queue.is_empty() && core.delay(&self.policy, now, StartOptions::pace()) != before {
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

    /// Records an answer. `head_of_placed` when the sender holds a permit and only the body is left.
    pub(super) fn answered(
        &self,
        now: Instant,
        received: &ResponseRecord,
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
            core.state.record_response(&self.policy, now, received);
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

    /// A request that was started and holds a permit is over.
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

    /// The host in few bytes, if it is at rest and under the common policy.
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
        let ask = StartOptions::pace();
        let free = core.line.queue.is_empty();
        if free && core.state.decide(&self.policy, now, ask) == Decision::Admit {
            core.state.reserve();
            core.state.start(now);
            return Ok(());
        }
        let due = core.state.due(&self.policy, now, ask);
        let delay = core.state.delay(&self.policy, now);
        let at = if due > now {
            due
        } else {
            now.checked_add(delay).unwrap_or(now)
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
    pub(super) fn line(&mut self, api: Option<u64>) -> &mut Line {
        let found = api.and_then(|api| self.apis.iter_mut().find(|(tap, _)| tap.is(api)));
        match found {
            Some((_, line)) => line,
            None => &mut self.line,
        }
    }

    pub(super) fn queue(&mut self, ask: StartOptions) -> &mut Queue {
        &mut self.line(ask.api.map(|api| api.number)).queue
    }

    pub(super) fn meter<'a>(&'a self, own: &'a Meter, api: Option<u64>) -> &'a Meter {
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
    pub(super) fn common_ask(&mut self, api: Option<u64>) -> StartOptions {
        self.line(api)
            .queue
            .api()
            .map_or(StartOptions::pace(), StartOptions::api)
    }

    pub(super) fn reserve(&mut self, ask: StartOptions) {
        match ask.api {
            _ if ask.pauses_only => {}
            Some(api) => self.state.reserve_api(api),
            None => self.state.reserve(),
        }
    }

    fn unreserve(&mut self, ask: StartOptions) {
        match ask.api {
            _ if ask.pauses_only => {}
            Some(api) => self.state.unreserve_api(api.number),
            None => self.state.unreserve(),
        }
    }

    pub(super) fn saved_up(&mut self, now: Instant, ask: StartOptions) -> Duration {
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
            let delay = self.delay(policy, now, StartOptions::pace());
            (
                self.state.paused_until(now),
                delay,
                self.state.backoff_level(),
            )
        })
    }

    pub(super) fn delay_taken(&self, at: Option<u64>) -> bool {
        at.is_some_and(|at| at == self.state.started())
    }
}

impl Tap {
    fn is(&self, number: u64) -> bool {
        self.ask.number == number
    }
}

/// Wakes without a lock held: a waker is the runtime's code.
pub(super) fn wake(wakers: impl IntoIterator<Item = Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
