//! One host: its budget and its queues behind one lock.
//!
//! Every method takes the lock once, leaves the decision to [`Budget`] and [`Queue`], and wakes whoever has to know after the
//! lock is free.

use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::Now;
use etiquette_core::decide::host::{
    ApiQuota, Decision, HostMark, HostPolicy, HostRecord, HostState, PackedHost, ResponseRecord,
    StartOptions,
};

use super::budget::Budget;
use super::queue::{
    ApiSlot, BodyMeter, Class, Denied, LockedQueue, PollRequest, Position, Queue, QueuePoll, Queues,
};
use super::sync::{Mutex, MutexGuard};
use super::wake::WakeList;
use crate::events::{HostChanges, LastReported, PaceSnapshot};

#[derive(Debug)]
pub(crate) struct Host {
    pub(super) key: u64,
    pub(super) name: Box<str>,
    pub(super) policy: Arc<HostPolicy>,
    inner: Mutex<HostInner>,
    /// The bodies of pages.
    pub(super) bodies: BodyMeter,
}

#[derive(Debug)]
pub(super) struct HostInner {
    pub(super) budget: Budget,
    pub(super) queues: Queues,
    told: LastReported,
    /// What the journal has, where there is one.
    written: Option<Box<HostMark>>,
}

/// A request with a reserved permit that is about to start.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartRequest<'a> {
    pub(super) now: Instant,
    pub(super) ask: StartOptions,
    /// What it is held to where that is stricter than the host's own policy.
    pub(super) policy: Option<&'a HostPolicy>,
    /// As in a [`PollRequest`].
    pub(super) visit_start: Option<u64>,
    /// A layer further out on the same hosts has counted it.
    pub(super) counted: bool,
    /// It was held, and a budget elsewhere keeps this delay.
    pub(super) let_go: Option<Duration>,
}

impl Host {
    pub(super) fn new(key: u64, name: &str, policy: Arc<HostPolicy>, state: HostState) -> Self {
        Self {
            key,
            name: name.into(),
            policy,
            inner: Mutex::new(HostInner {
                told: LastReported::of(&state),
                budget: Budget::new(state),
                queues: Queues::default(),
                written: None,
            }),
            bodies: BodyMeter::default(),
        }
    }

    /// Nothing that runs under the lock is the user's, so that a poisoned lock only means a panic of ours: go on.
    pub(super) fn lock(&self) -> MutexGuard<'_, HostInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update<T>(&self, change: impl FnOnce(&mut HostInner, &mut WakeList) -> T) -> T {
        let mut wakers = WakeList::default();
        let outcome = change(&mut self.lock(), &mut wakers);
        wakers.wake_all();
        outcome
    }

    fn with_queue<T>(
        &self,
        api: Option<u64>,
        change: impl FnOnce(&mut Budget, &mut Queue, &mut WakeList) -> T,
    ) -> T {
        self.update(|inner, wakers| change(&mut inner.budget, inner.queues.of(api), wakers))
    }
}

/// Waiting.
impl Host {
    /// The slot of an API; `None` when too many of this host are in use.
    pub(super) fn open_api(&self, ask: ApiQuota, now: Instant) -> Option<ApiSlot> {
        let HostInner { budget, queues, .. } = &mut *self.lock();
        queues.open_api(ask, |number| budget.state.owes_api(now, number, true))
    }

    /// The last position of a class.
    pub(super) fn position(&self, class: Class) -> Position {
        self.lock().queues.position(class)
    }

    /// Joins the queue or polls it again.
    pub(super) fn poll(&self, now: Instant, request: PollRequest<'_>) -> QueuePoll {
        self.with_queue(api_of(request.ask), |budget, queue, wakers| {
            self.locked(now, budget, queue, wakers).poll(request)
        })
    }

    /// Leaves the order, but not its position, while its rules are refreshed; `Err` when it may not wait at all.
    pub(super) fn suspend(
        &self,
        now: Instant,
        position: Position,
        deadline: Instant,
        ask: StartOptions,
    ) -> Result<(), Denied> {
        self.with_queue(api_of(ask), |budget, queue, wakers| {
            let mut queue = self.locked(now, budget, queue, wakers);
            queue.suspend(position, deadline, ask)
        })
    }

    /// Whether a suspended request was denied meanwhile; remembers whom to wake then.
    pub(super) fn poll_suspended(
        &self,
        position: Position,
        ask: StartOptions,
        waker: &Waker,
    ) -> Option<Denied> {
        let queues = &mut self.lock().queues;
        let queue = queues.of(api_of(ask));
        let denied = queue.take_denied(position);
        if denied.is_none() {
            queue.set_waker(position, waker);
        }
        denied
    }

    /// Leaves the queue for good.
    pub(super) fn cancel(&self, position: Position, ask: StartOptions) {
        self.with_queue(api_of(ask), |_, queue, wakers| {
            queue.cancel(position, wakers);
        });
    }

    /// When the monitor of a queue has to check its head again; `None` when it is over.
    pub(super) fn check_head(
        &self,
        now: Instant,
        api: Option<u64>,
        monitor: &Waker,
    ) -> Option<Instant> {
        self.with_queue(api, |_, queue, wakers| {
            queue.check_head(now, monitor, wakers)
        })
    }

    /// The monitor of a queue is gone.
    pub(super) fn monitor_stopped(&self, api: Option<u64>) {
        self.with_queue(api, |_, queue, wakers| queue.monitor_stopped(wakers));
    }

    fn locked<'a>(
        &'a self,
        now: Instant,
        budget: &'a mut Budget,
        queue: &'a mut Queue,
        wakers: &'a mut WakeList,
    ) -> LockedQueue<'a> {
        LockedQueue {
            budget,
            queue,
            policy: &self.policy,
            now,
            wakers,
        }
    }
}

/// Starts and ends.
impl Host {
    /// Starts a request whose permit is reserved, if pause and delay still allow it; the number of starts so far. Gives
    /// the permit back otherwise.
    pub(super) fn start(&self, request: StartRequest<'_>) -> Option<u64> {
        let StartRequest { now, mut ask, .. } = request;
        let policy = request.policy.unwrap_or(&self.policy);
        self.with_queue(api_of(ask), |budget, queue, wakers| {
            ask.delay_taken |= budget.delay_taken(request.visit_start);
            let is_due = budget.due(policy, now, ask) <= now;
            if is_due {
                budget.start(now, ask);
                if request.counted {
                    budget.state.uncount_start();
                }
                if let Some(delay) = request.let_go {
                    budget.state.space_without_permit(now, delay);
                }
            } else {
                budget.unreserve(ask);
            }
            queue.wake_head(wakers);
            is_due.then(|| budget.state.started())
        })
    }

    /// Starts a request at once, or says why it may not.
    pub(super) fn start_now(&self, now: Instant) -> Result<(), Denied> {
        let HostInner { budget, queues, .. } = &mut *self.lock();
        let ask = StartOptions::pace();
        if queues.host.is_empty() && budget.decide(&self.policy, now, ask) == Decision::Admit {
            budget.reserve(ask);
            budget.start(now, ask);
            return Ok(());
        }
        let schedule = budget.schedule(&self.policy, now, ask);
        Err(budget.denied(&self.policy, now, schedule.retry_at(now)))
    }

    /// Gives a reserved permit back that was not used.
    pub(super) fn unreserve(&self, ask: StartOptions) {
        self.with_queue(api_of(ask), |budget, queue, wakers| {
            budget.unreserve(ask);
            queue.wake_head(wakers);
        });
    }

    /// A request that was started and holds a permit is over.
    pub(super) fn finish(&self, now: Instant, in_body: bool, api: Option<u64>) {
        self.with_queue(api, |budget, queue, wakers| {
            queue.bodies = queue.bodies.saturating_sub(u32::from(in_body));
            budget.finish(now, api);
            queue.wake_head(wakers);
        });
    }

    /// The store has replied, or is not waited for any more.
    pub(super) fn store_replied(&self) {
        self.with_queue(None, |budget, queue, wakers| {
            budget.store().asking = false;
            queue.wake_head(wakers);
        });
    }
}

/// What is learnt of the site.
impl Host {
    /// What robots.txt asks for.
    pub(super) fn set_crawl_delay(&self, origin: u64, crawl_delay: Option<Duration>, now: Instant) {
        self.with_queue(None, |budget, queue, wakers| {
            let before = budget.delay(&self.policy, now, StartOptions::pace());
            budget.state.crawl_delay(origin, crawl_delay, now);
            if !queue.is_empty() && budget.delay(&self.policy, now, StartOptions::pace()) != before
            {
                queue.recheck_deadlines(wakers);
            }
        });
    }

    /// Records a response. `body_follows` when the sender holds a permit and only the body is left.
    pub(super) fn record(
        &self,
        now: Instant,
        received: &ResponseRecord,
        body_follows: bool,
    ) -> HostChanges {
        self.update(|inner, wakers| {
            let HostInner { budget, queues, .. } = inner;
            queues.of(received.api).bodies += u32::from(body_follows);
            let prospects = |budget: &mut Budget| {
                let delay = budget.delay(&self.policy, now, StartOptions::pace());
                let state = &budget.state;
                (delay, state.paused_until(now), state.backoff_level())
            };
            let before = (queues.waiting() > 0).then(|| prospects(budget));
            let stood = PaceSnapshot::of(&mut budget.state, &self.policy, now);
            budget.state.record_response(&self.policy, now, received);
            if let Some(before) = before {
                let changed = prospects(budget) != before;
                for queue in queues.all_mut() {
                    if changed {
                        self.locked(now, budget, queue, wakers).review();
                    }
                    queue.wake_head(wakers);
                }
            }
            let state = &mut budget.state;
            stood.changes(state, &mut inner.told, &self.policy, now, received)
        })
    }

    /// Takes over what a journal knows; whether anything of it still matters.
    pub(super) fn restore(&self, record: &HostRecord, now: Now) -> bool {
        self.update(|inner, wakers| {
            let state = &mut inner.budget.state;
            state.recall(record, now);
            let mark = state.mark(now.monotonic);
            inner.told = LastReported::of(state);
            if !record.is_from_the_future(now.wall) {
                inner.written = mark.map(Box::new);
            }
            for queue in inner.queues.all_mut() {
                queue.recheck_deadlines(wakers);
            }
            mark.is_some()
        })
    }

    /// Whether the journal has what is to be known.
    pub(super) fn is_written(&self, now: Instant) -> bool {
        let mut inner = self.lock();
        inner.budget.state.mark(now).as_ref() == inner.written.as_deref()
    }

    /// The journal has this now.
    pub(super) fn set_written(&self, mark: Option<HostMark>) {
        self.lock().written = mark.map(Box::new);
    }
}

/// For the table.
impl Host {
    /// The host in few bytes, if it is at rest and under the common policy.
    pub(super) fn pack(
        &self,
        common: &Arc<HostPolicy>,
        base: Instant,
        now: Instant,
    ) -> Option<PackedHost> {
        let inner = self.lock();
        let packable = Arc::ptr_eq(&self.policy, common) && inner.queues.is_idle();
        packable.then(|| inner.budget.state.pack(base, now))?
    }

    /// Whether forgetting the host changes nothing. The caller makes sure that nobody else holds it.
    pub(super) fn is_forgettable(&self, now: Instant, pressure: bool) -> bool {
        let HostInner { budget, queues, .. } = &mut *self.lock();
        queues.is_idle() && budget.state.is_forgettable(&self.policy, now, pressure)
    }
}

fn api_of(ask: StartOptions) -> Option<u64> {
    ask.api.map(|api| api.number)
}
