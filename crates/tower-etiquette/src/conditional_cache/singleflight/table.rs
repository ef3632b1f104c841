//! The requests under way, and what becomes of them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::store::{ResponseKey, Variant};
use http::Response;

use super::super::body::{ResponseBody, Tee};
use super::super::delivery::{Delivery, SharedError};
use crate::Facts;
use crate::flight::{Flight, WeakFlight};

/// The requests under way of a cache.
#[derive(Clone, Default)]
pub(crate) struct Singleflight {
    crawls: FlightTable,
    /// Those for people, who share with each other and with no crawl.
    personal: FlightTable,
}

impl Singleflight {
    /// The table that a request belongs to.
    pub(crate) fn table(&self, personal: bool) -> &FlightTable {
        if personal {
            &self.personal
        } else {
            &self.crawls
        }
    }

    /// The URL has changed (RFC 9111, 4.4): what is under way for it is not stored and not joined any more.
    pub(crate) fn invalidate(&self, key: &ResponseKey) {
        self.crawls.invalidate(key);
        self.personal.invalidate(key);
    }
}

/// What becomes of a request to the origin.
#[derive(Clone)]
pub(crate) enum FetchOutcome {
    /// The stored response satisfies the request.
    Stored {
        variant: Variant,
        status: CacheStatus,
        facts: Box<Facts>,
    },
    /// The origin's response, for the caller that made the request.
    Received {
        response: Delivery<Response<ResponseBody>>,
        /// Its body, where others may read it too.
        tee: Option<Arc<Tee>>,
    },
    /// There is no response.
    Failed(SharedError),
}

/// Requests under way by their URL.
#[derive(Clone, Default)]
pub(crate) struct FlightTable(Arc<Mutex<HashMap<ResponseKey, UnderWay>>>);

/// All requests for a URL that are under way, and the one of them that others can join.
#[derive(Default)]
struct UnderWay {
    guards: usize,
    next_id: u64,
    invalidated: Arc<AtomicBool>,
    joinable: Option<(u64, Joinable)>,
}

enum Joinable {
    Head(WeakFlight<FetchOutcome>),
    Body(Weak<Tee>),
}

/// How a request goes with others for its URL.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collapsing {
    /// It joins one that is under way, or leads.
    Join,
    /// It is a request of its own, which others may join.
    Lead,
    /// It is a request of its own, which nobody joins.
    Never,
}

/// What [`FlightTable::enter`] found.
pub(crate) enum Entry {
    /// This caller's request is for all.
    Leader(Flight<FetchOutcome>),
    /// Another caller's request is under way.
    Follower(Flight<FetchOutcome>),
    /// The body of its response is.
    Reader(Arc<Tee>),
}

/// Says that a request is under way, until it is dropped.
pub(crate) struct FlightGuard {
    table: FlightTable,
    key: ResponseKey,
    id: u64,
    invalidated: Arc<AtomicBool>,
}

impl FlightTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<ResponseKey, UnderWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins what is under way for `key`, or begins what `make` makes.
    pub(crate) fn enter(
        &self,
        key: &ResponseKey,
        collapsing: Collapsing,
        make: impl FnOnce(FlightGuard) -> Flight<FetchOutcome>,
    ) -> Entry {
        let mut table = self.lock();
        let under_way = table.entry(key.clone()).or_default();
        if collapsing == Collapsing::Join
            && let Some((_, joinable)) = &under_way.joinable
            && let Some(entry) = joinable.join()
        {
            return entry;
        }
        let guard = self.register(key, under_way);
        let id = guard.id;
        let flight = make(guard);
        // One that leads alone would hide the one that others can join.
        let free = collapsing == Collapsing::Join || under_way.joinable.is_none();
        if free && collapsing != Collapsing::Never {
            under_way.joinable = Some((id, Joinable::Head(flight.downgrade())));
        }
        Entry::Leader(flight)
    }

    /// Registers a request that nobody joins.
    pub(crate) fn guard(&self, key: &ResponseKey) -> FlightGuard {
        self.register(key, self.lock().entry(key.clone()).or_default())
    }

    fn register(&self, key: &ResponseKey, under_way: &mut UnderWay) -> FlightGuard {
        under_way.guards += 1;
        under_way.next_id += 1;
        FlightGuard {
            table: self.clone(),
            key: key.clone(),
            id: under_way.next_id,
            invalidated: Arc::clone(&under_way.invalidated),
        }
    }

    fn invalidate(&self, key: &ResponseKey) {
        // Dropped after the lock: it may hold the last handle to what else it guards.
        let under_way = self.lock().remove(key);
        if let Some(under_way) = under_way {
            under_way.invalidated.store(true, Ordering::Release);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().is_empty()
    }
}

impl Joinable {
    fn join(&self) -> Option<Entry> {
        match self {
            Self::Head(flight) => flight.join().map(Entry::Follower),
            Self::Body(tee) => tee.upgrade().map(Entry::Reader),
        }
    }
}

impl FlightGuard {
    /// Whether the URL has changed since the request was begun.
    pub(crate) fn is_invalidated(&self) -> bool {
        self.invalidated.load(Ordering::Acquire)
    }

    /// The head has come: others join the body from now on.
    pub(crate) fn share_body(&self, tee: &Arc<Tee>) {
        if let Some(under_way) = self.table.lock().get_mut(&self.key)
            && let Some((id, joinable)) = &mut under_way.joinable
            && *id == self.id
            && Arc::ptr_eq(&under_way.invalidated, &self.invalidated)
        {
            *joinable = Joinable::Body(Arc::downgrade(tee));
        }
    }
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        // Dropped after the lock: they may hold the last handle to what else they guard.
        let mut table = self.table.lock();
        let mut joinable = None;
        let mut ended = None;
        if let Some(under_way) = table.get_mut(&self.key)
            && Arc::ptr_eq(&under_way.invalidated, &self.invalidated)
        {
            under_way.guards -= 1;
            joinable = under_way.joinable.take_if(|(id, _)| *id == self.id);
            if under_way.guards == 0 {
                ended = table.remove(&self.key);
            }
        }
        drop(table);
        drop((joinable, ended));
    }
}
