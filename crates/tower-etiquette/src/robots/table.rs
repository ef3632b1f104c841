//! What is known of each origin's robots.txt, bounded in number.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use etiquette_core::decide::robots_txt::RobotsRecord;
use etiquette_core::{Origin, Refusal};
use etiquette_robots::ProductToken;

use crate::flight::{Flight, WeakFlight};
use crate::lock::lock;

/// What a fetch leaves for those who waited for it. `Err`: nothing was fetched because the host does not admit the
/// request; the record has not changed.
pub(super) type FetchResult = Result<(), Refusal>;

/// A copy is kept for an origin and the tokens that it was fetched for: a site may tell two clients different things.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) origin: Origin,
    pub(super) tokens: Tokens,
}

/// The tokens of one identity.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Tokens {
    pub(super) crawl: ProductToken,
    pub(super) user: Option<ProductToken>,
}

/// One origin's record and the fetch that is under way, if one is.
#[derive(Default)]
pub(super) struct Slot {
    state: Mutex<State>,
    used: AtomicBool,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) record: RobotsRecord,
    fetch: Option<WeakFlight<FetchResult>>,
}

impl Slot {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Joins the fetch that is under way, or starts one.
    pub(super) fn join_or_start(
        &self,
        start: impl FnOnce() -> Flight<FetchResult>,
    ) -> Flight<FetchResult> {
        let mut state = self.lock();
        if let Some(flight) = state.fetch.as_ref().and_then(WeakFlight::join) {
            return flight;
        }
        let flight = start();
        state.fetch = Some(flight.downgrade());
        flight
    }
}

impl State {
    /// The fetch has ended: who comes from now on starts a new one.
    pub(super) fn fetch_ended(&mut self) {
        self.fetch = None;
    }
}

/// The slots of all origins. When it is full, the least recently used one is forgotten (second chance, O(1) amortised).
pub(super) struct Table {
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    slots: HashMap<Key, Arc<Slot>>,
    order: VecDeque<Key>,
}

impl Table {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            inner: Mutex::default(),
        }
    }

    /// The slot of `key`, made if there is none.
    pub(super) fn slot(&self, key: &Key) -> Arc<Slot> {
        let mut inner = lock(&self.inner);
        if let Some(slot) = inner.slots.get(key) {
            slot.used.store(true, Ordering::Relaxed);
            return Arc::clone(slot);
        }
        while inner.slots.len() >= self.max && inner.evict() {}
        let slot: Arc<Slot> = Arc::default();
        inner.slots.insert(key.clone(), Arc::clone(&slot));
        inner.order.push_back(key.clone());
        slot
    }
}

impl Inner {
    /// Forgets one slot that no request holds. False when all are held: their number is then bounded by the requests
    /// under way.
    fn evict(&mut self) -> bool {
        // Twice round: the first turn takes the second chance away.
        for _ in 0..2 * self.order.len() {
            let Some(key) = self.order.pop_front() else {
                return false;
            };
            let Some(slot) = self.slots.get(&key) else {
                continue;
            };
            if Arc::strong_count(slot) == 1 && !slot.used.swap(false, Ordering::Relaxed) {
                self.slots.remove(&key);
                return true;
            }
            self.order.push_back(key);
        }
        false
    }
}
