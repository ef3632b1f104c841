//! One host: its budget and its queues behind one lock.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use etiquette_core::Now;
use etiquette_core::decide::host::{
    ApiQuota, Decision, HostMark, HostPolicy, HostRecord, HostState, PackedHost, ResponseRecord,
};

use super::budget::{Budget, Terms};
use super::queue::{ApiSlot, BodyMeter, Class, Denied, LockedQueue, Position, Queues};
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
    pub(super) written: Option<Box<HostMark>>,
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

    /// Changes the queue of an API, or the host's own, under the lock, and wakes whoever has to know once it is free.
    pub(super) fn with_queue<T>(
        &self,
        api: Option<u64>,
        change: impl FnOnce(&mut LockedQueue<'_>) -> T,
    ) -> T {
        self.update(|inner, wakers| {
            let HostInner { budget, queues, .. } = inner;
            let (queue, policy) = (queues.of(api), &*self.policy);
            change(&mut LockedQueue {
                budget,
                queue,
                policy,
                wakers,
            })
        })
    }

    /// The slot of an API; `None` when too many of this host are in use.
    pub(super) fn open_api(&self, quota: ApiQuota, now: Instant) -> Option<ApiSlot> {
        let HostInner { budget, queues, .. } = &mut *self.lock();
        queues.open_api(quota, |number| budget.state.owes_api(now, number, true))
    }

    /// The last position of a class.
    pub(super) fn position(&self, class: Class) -> Position {
        self.lock().queues.position(class)
    }

    /// Starts a request at once, or says why it may not.
    pub(super) fn start_now(&self, now: Instant) -> Result<(), Denied> {
        let HostInner { budget, queues, .. } = &mut *self.lock();
        let terms = Terms::pace(&self.policy, now);
        if queues.host.is_empty() && budget.decide(terms) == Decision::Admit {
            budget.reserve(terms.options);
            budget.start(now, terms.options);
            return Ok(());
        }
        let retry_at = budget.schedule(terms).retry_at(now);
        Err(budget.denied(&self.policy, now, retry_at))
    }

    /// A request that was started and holds a permit is over.
    pub(super) fn finish(&self, now: Instant, api: Option<u64>, in_body: bool) {
        self.with_queue(
            api,
            |LockedQueue {
                 budget,
                 queue,
                 wakers,
                 ..
             }| {
                queue.bodies = queue.bodies.saturating_sub(u32::from(in_body));
                match api {
                    Some(number) => budget.state.finish_api(number),
                    None => budget.state.finish(now),
                }
                queue.wake_head(wakers);
            },
        );
    }

    /// What robots.txt asks for.
    pub(super) fn set_crawl_delay(&self, origin: u64, crawl_delay: Option<Duration>, now: Instant) {
        self.with_queue(
            None,
            |LockedQueue {
                 budget,
                 queue,
                 wakers,
                 ..
             }| {
                let pace = Terms::pace(&self.policy, now);
                let before = budget.delay(pace);
                budget.state.crawl_delay(origin, crawl_delay, now);
                if !queue.is_empty() && budget.delay(pace) != before {
                    queue.recheck_deadlines(wakers);
                }
            },
        );
    }

    /// Records a response. `body_follows` when the sender holds a permit and only the body is left.
    pub(super) fn record(
        &self,
        now: Instant,
        response: &ResponseRecord,
        body_follows: bool,
    ) -> HostChanges {
        self.update(|inner, wakers| {
            let HostInner { budget, queues, .. } = inner;
            let policy = &*self.policy;
            queues.of(response.api).bodies += u32::from(body_follows);
            let prospects = |budget: &mut Budget| {
                let delay = budget.delay(Terms::pace(policy, now));
                let state = &budget.state;
                (delay, state.paused_until(now), state.backoff_level())
            };
            let before = (queues.waiting() > 0).then(|| prospects(budget));
            let standing = PaceSnapshot::of(&mut budget.state, policy, now);
            budget.state.record_response(policy, now, response);
            if let Some(before) = before {
                let changed = prospects(budget) != before;
                for queue in queues.all_mut() {
                    if changed {
                        LockedQueue {
                            budget,
                            queue,
                            policy,
                            wakers,
                        }
                        .review(now);
                    }
                    queue.wake_head(wakers);
                }
            }
            standing.changes(&mut budget.state, &mut inner.told, policy, now, response)
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
