//! The budget of a host that several processes share: asking its store, keeping permits there, and going on without it.
//!
//! Only the first of a host's line asks, and nobody else of the same line while it does, so that a store hears of a host
//! at most once per process at a time. What it says is kept: a known pause or wait costs no further question.
//!
//! **Without the store** nothing starts for [`Outage::hold`](etiquette_core::store::host::Outage). After that the process
//! keeps a budget of its own: one permit, and the largest delay known times the number of processes, begun at a random
//! point of it, so that processes which cannot see each other rarely meet.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Task, Poll, Waker};
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{Decision, HostPolicy, ResponseRecord, StartOptions};
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostEvent, HostReport, HostStore, LeaseId, LeaseUpdate, Seen, Shared,
};
use etiquette_core::{Clock, Origin};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::host::{Core, Host};
use crate::events::{self, Changes, Voice};

/// While the store fails, the first of a line looks again this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The most that is added to a wait, so that processes that were told the same do not come back at one instant.
const MOST_JITTER: Duration = Duration::from_millis(50);

/// What is known of a host through its store.
#[derive(Debug, Default)]
pub(super) struct View {
    /// Somebody of this line is asking.
    pub(super) asking: bool,
    /// The store said to come back then.
    floor: Option<Instant>,
    /// The delay for all processes, as last heard.
    delay: Duration,
    /// The last start of any process, as last heard.
    last_start: Option<Instant>,
    /// [`Shared::started`] at this process's last start.
    started: u64,
    /// Since when it fails, and the share of a delay that is waited in addition before going on alone.
    failing: Option<(Instant, f64)>,
}

/// The store of these hosts.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) store: Arc<dyn HostStore>,
    leases: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
    voice: Voice,
}

/// What asking came to.
pub(super) enum Reply {
    /// It may start, under a lease where the store gave it a permit.
    Start(Option<Lease>),
    /// Back to the line, which knows for how long.
    Wait,
}

impl Link {
    pub(super) fn new(
        store: Arc<dyn HostStore>,
        clock: Arc<dyn Clock>,
        voice: Voice,
        first_lease: u64,
    ) -> Self {
        Self {
            store,
            voice,
            leases: Arc::new(AtomicU64::new(first_lease)),
            clock,
        }
    }

    /// Asks for a start of a request that has its turn in the local line, under the host's policy or a stricter one.
    ///
    /// # Cancel safety
    /// Dropped, it lets the next one of the line ask, and tells the store that the permit is not used.
    pub(super) async fn acquire(
        &self,
        host: &Arc<Host>,
        policy: &HostPolicy,
        ask: StartOptions,
        crawl_delay: Option<(u64, Option<Duration>)>,
        counted: bool,
        jitter: f64,
    ) -> Reply {
        let id = LeaseId(self.leases.fetch_add(1, Ordering::Relaxed));
        let mut question = AcquireRequest::new(id, ask);
        question.crawl_delay = crawl_delay;
        question.counted = counted;
        let mut asking = Asking {
            link: self,
            host,
            id,
            taken: !ask.pauses_only,
        };
        let asked_at = self.now();
        let known = {
            let mut core = host.core();
            core.view().asking = true;
            question.started = core.view().started;
            Known::of(&core, asked_at)
        };
        let answer = self.store.acquire(known.seen(host, policy), question).await;
        if answer.is_err() {
            events::store_failed("hosts", "ask for a start");
        }
        let now = self.now();
        let mut core = host.core();
        match answer {
            Ok(Acquired::Granted(shared)) => {
                let changes = core.hear(now, &shared);
                core.view().started = shared.started;
                core.view().floor = None;
                drop(core);
                changes.tell(self.voice, &host.name, &self.clock);
                if ask.pauses_only {
                    return Reply::Start(None);
                }
                let over = self.over_at(asked_at);
                if now >= over {
                    return Reply::Wait;
                }
                asking.taken = false;
                drop(asking);
                Reply::Start(Some(Lease::new(self.clone(), Arc::clone(host), id, over)))
            }
            Ok(Acquired::Wait(wait, shared)) => {
                asking.taken = false;
                let changes = core.hear(now, &shared);
                let added = wait.mul_f64(0.1 * jitter).min(MOST_JITTER);
                core.view().floor = Some(now + wait.min(LONGEST) + added);
                drop(core);
                changes.tell(self.voice, &host.name, &self.clock);
                Reply::Wait
            }
            Ok(_) => {
                core.view().floor = Some(now + LOOK_AGAIN);
                Reply::Wait
            }
            Err(_) => match core.alone(policy, now, ask, self, jitter) {
                None => Reply::Start(None),
                Some(floor) => {
                    core.view().floor = Some(floor);
                    Reply::Wait
                }
            },
        }
    }

    /// Tells an answer, and what becomes of a permit, when somebody finds the time.
    pub(super) fn tell_later(&self, host: &Arc<Host>, report: HostReport) {
        // Without a runtime nobody can tell it: the lease ends by itself.
        if let Ok(runtime) = Handle::try_current() {
            let (link, host) = (self.clone(), Arc::clone(host));
            runtime.spawn(async move {
                link.tell(&host, report).await;
            });
        }
    }

    /// Tells an answer, and what becomes of a permit; whether the store took it.
    pub(super) async fn tell(&self, host: &Host, report: HostReport) -> bool {
        let known = Known::of(&host.core(), self.now());
        let told = self
            .store
            .tell(known.seen(host, &host.policy), report)
            .await;
        events::taken("hosts", "tell an answer", told).is_some()
    }

    /// The permit is over then for the one who asked at `asked`, a while before it is for the store.
    fn over_at(&self, asked: Instant) -> Instant {
        let lease = self.store.lease();
        asked + lease.saturating_sub((lease / 10).max(Duration::from_millis(20)))
    }

    fn now(&self) -> Instant {
        self.clock.now().monotonic
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.store.fmt(f)
    }
}

const LONGEST: Duration = Duration::from_secs(24 * 3_600);

/// An ask under way.
struct Asking<'a> {
    link: &'a Link,
    host: &'a Arc<Host>,
    id: LeaseId,
    /// A permit may be taken that nobody uses.
    taken: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.host.asked();
        if self.taken {
            let report = HostReport::new(Some(LeaseUpdate::Unused(self.id)), None);
            self.link.tell_later(self.host, report);
        }
    }
}

/// What this process knows, as spans.
struct Known {
    pause: Duration,
    since_start: Option<Duration>,
    since_end: Option<Duration>,
}

impl Known {
    fn of(core: &Core, now: Instant) -> Self {
        let ago = |at: Instant| now.saturating_duration_since(at);
        let pause = core.state.paused_until(now);
        Self {
            pause: pause.map_or(Duration::ZERO, |until| until - now),
            since_start: core.state.last_start().map(ago),
            since_end: core.state.last_end().map(ago),
        }
    }

    fn seen<'a>(&self, host: &'a Host, policy: &'a HostPolicy) -> Seen<'a> {
        let mut seen = Seen::new(&host.name, policy);
        seen.pause = self.pause;
        seen.since_start = self.since_start;
        seen.since_end = self.since_end;
        seen
    }
}

impl Core {
    pub(super) fn view(&mut self) -> &mut View {
        self.view.get_or_insert_default()
    }

    /// [`HostState::decide`](etiquette_core::decide::host::HostState::decide), and what the store said.
    pub(super) fn decide(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
    ) -> Decision {
        let decision = self.state.decide(policy, now, ask);
        let Some(view) = &self.view else {
            return decision;
        };
        let floor = view.floor.filter(|floor| *floor > now);
        match (decision, floor) {
            (Decision::Full(due), _) => Decision::Full(floor.map_or(due, |floor| due.max(floor))),
            (Decision::Admit, _) if view.asking => Decision::Full(floor.unwrap_or(now)),
            (Decision::Admit, Some(floor)) => Decision::Wait(floor),
            (Decision::Wait(due), Some(floor)) => Decision::Wait(due.max(floor)),
            (decision, _) => decision,
        }
    }

    /// [`HostState::due`](etiquette_core::decide::host::HostState::due), and what the store said.
    pub(super) fn due(&mut self, policy: &HostPolicy, now: Instant, ask: StartOptions) -> Instant {
        let due = self.state.due(policy, now, ask);
        let floor = self.view.as_ref().and_then(|view| view.floor);
        floor.map_or(due, |floor| due.max(floor))
    }

    /// The delay that all processes keep together.
    pub(super) fn delay(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
    ) -> Duration {
        let delay = self.state.delay_of(policy, now, ask);
        self.view
            .as_ref()
            .map_or(delay, |view| delay.max(view.delay))
    }

    fn hear(&mut self, now: Instant, shared: &Shared) -> Changes {
        let paused = self.state.paused_until(now);
        if !shared.pause.is_zero() {
            self.state
                .learn_pause(now, now + shared.pause.min(LONGEST * 365));
        }
        let view = self.view();
        view.failing = None;
        view.delay = shared.delay;
        let start = shared.since_start.and_then(|ago| now.checked_sub(ago));
        view.last_start = view.last_start.max(start);
        Changes::shared(paused, &self.state, now)
    }

    /// The store failed: when to look again, or `None` to start on its own. A permit is reserved for the one who asks.
    fn alone(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
        link: &Link,
        jitter: f64,
    ) -> Option<Instant> {
        let outage = link.store.outage();
        let last = self.state.last_start();
        let ended = self.state.last_end();
        let others = u32::from(!ask.pauses_only);
        let busy = self.state.in_flight() > others;
        let delay = self.delay(policy, now, ask).saturating_mul(outage.nodes);
        let view = self.view();
        let (since, share) = *view.failing.get_or_insert((now, jitter));
        let held = since
            .checked_add(outage.hold)
            .and_then(|end| end.checked_add(delay.mul_f64(share)));
        let Some(held) = held else {
            return Some(now + LOOK_AGAIN);
        };
        if ask.pauses_only {
            return (now < held).then(|| held.min(now + LOOK_AGAIN));
        }
        let last = last.max(ended).max(view.last_start);
        let due = last
            .and_then(|last| last.checked_add(delay))
            .map_or(held, |due| due.max(held));
        if now < due {
            Some(due.min(now + LOOK_AGAIN))
        } else {
            busy.then(|| now + LOOK_AGAIN)
        }
    }
}

/// A permit that the store keeps for a request under way, renewed until it is dropped.
pub(super) struct Lease {
    link: Link,
    host: Arc<Host>,
    id: LeaseId,
    kept: Arc<Kept>,
    renewal: Option<AbortHandle>,
}

/// Whether a permit is still ours.
#[derive(Debug, Default)]
struct Kept {
    lost: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Kept {
    fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        let waker = self.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    fn new(link: Link, host: Arc<Host>, id: LeaseId, over: Instant) -> Self {
        let kept = Arc::new(Kept::default());
        let renewal = Handle::try_current().ok().map(|runtime| {
            let renewal = renew(link.clone(), Arc::clone(&host), id, Arc::clone(&kept), over);
            runtime.spawn(renewal).abort_handle()
        });
        Self {
            link,
            host,
            id,
            kept,
            renewal,
        }
    }

    /// Ready when the permit is not ours any more, because the store could not be told in time that it is needed.
    pub(super) fn poll_lost(&self, task: &Task<'_>) -> Poll<()> {
        if self.kept.lost.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        match &mut *self.kept.lock() {
            Some(waker) => waker.clone_from(task.waker()),
            none => *none = Some(task.waker().clone()),
        }
        if self.kept.lost.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Says that the permit is still needed.
    pub(super) fn renewal(&self) -> LeaseUpdate {
        LeaseUpdate::Renewed(self.id)
    }

    /// Gives the permit back; `unused` when nothing was sent.
    pub(super) fn end(mut self, unused: bool, event: Option<HostEvent>) {
        self.stop();
        let step = if unused {
            LeaseUpdate::Unused(self.id)
        } else {
            LeaseUpdate::Ended(self.id)
        };
        self.link
            .tell_later(&self.host, HostReport::new(Some(step), event));
    }

    fn stop(&mut self) -> bool {
        self.renewal.take().inspect(AbortHandle::abort).is_some()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.stop() {
            let report = HostReport::new(Some(LeaseUpdate::Unused(self.id)), None);
            self.link.tell_later(&self.host, report);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Renews a permit three times within its life, and oftener when that fails, until it is over for us.
async fn renew(link: Link, host: Arc<Host>, id: LeaseId, kept: Arc<Kept>, mut over: Instant) {
    let step = (link.store.lease() / 3).max(Duration::from_millis(1));
    let mut after = step;
    loop {
        let left = over.saturating_duration_since(link.now());
        if left.is_zero() {
            return kept.lose();
        }
        tokio::time::sleep(after.min(left)).await;
        let asked = link.now();
        if asked >= over {
            return kept.lose();
        }
        let told = link.tell(&host, HostReport::new(Some(LeaseUpdate::Renewed(id)), None));
        // What takes longer than the permit lasts is of no use any more.
        let told = tokio::time::timeout(over - asked, told).await;
        if told == Ok(true) {
            over = link.over_at(asked);
            after = step;
        } else {
            after = step / 4;
        }
    }
}

/// A number for an origin that all processes derive alike (FNV-1a).
pub(super) fn number_of(origin: &Origin) -> u64 {
    let text = origin.to_string();
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// An answer as others are told of it.
pub(super) fn event(received: &ResponseRecord, now: Instant) -> HostEvent {
    let since = now.saturating_duration_since(received.started);
    let mut event = HostEvent::new(received.response, received.page, received.jitter, since);
    event.latency = received.timed.then_some(since);
    event
}
