//! Requests under way, so that concurrent ones for a URL become one.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use etiquette_core::Refusal;
use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::store::{ResponseKey, Variant};
use http::Response;

use super::body::Answer;
use super::stream::Stream;
use crate::flight::{Flight, WeakFlight};
use crate::{BoxError, Facts};

/// What became of a request to the origin.
#[derive(Clone)]
pub(super) enum Landed {
    /// The store has the answer now.
    Stored {
        variant: Variant,
        status: CacheStatus,
        facts: Box<Facts>,
    },
    /// It is being read and stored; the one who asked has `own`, others may join.
    Streaming {
        stream: Arc<Stream>,
        own: Own<Response<Answer>>,
    },
    /// It is for the one who asked only.
    Private(Own<Response<Answer>>),
    /// There is none.
    Failed { own: Own<BoxError>, others: Failure },
}

/// What only one caller can have.
pub(super) struct Own<T>(Arc<Mutex<Option<T>>>);

impl<T> Own<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(Some(value))))
    }

    pub(super) fn take(&self) -> Option<T> {
        lock(&self.0).take()
    }
}

impl<T> Clone for Own<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// An error, for those who did not cause it.
#[derive(Clone)]
pub(super) enum Failure {
    Refused(Box<Refusal>),
    Error(Arc<str>),
}

impl Failure {
    pub(super) fn of(error: &BoxError) -> Self {
        match Refusal::find(&**error) {
            Some(refusal) => Self::Refused(Box::new(refusal.clone())),
            None => Self::Error(error.to_string().into()),
        }
    }

    pub(super) fn into_error(self) -> BoxError {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Error(text) => Box::new(SharedFailure(text)),
        }
    }
}

/// The request that several callers waited for failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SharedFailure(Arc<str>);

impl fmt::Display for SharedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the shared request failed: {}", self.0)
    }
}

impl std::error::Error for SharedFailure {}

/// The table of what is under way.
#[derive(Default)]
pub(super) struct Flights {
    table: Mutex<Table>,
    next: AtomicU64,
}

#[derive(Default)]
struct Table {
    /// What others can join.
    slots: HashMap<ResponseKey, Slot>,
    /// For each URL that is being asked for, by one who can be joined or not: whether it has changed since.
    changed: HashMap<ResponseKey, Changed>,
}

/// Shared by all who ask for a URL at the same time.
#[derive(Default)]
struct Changed {
    tickets: usize,
    flag: Arc<AtomicBool>,
}

struct Slot {
    id: u64,
    under_way: UnderWay,
}

enum UnderWay {
    Head(WeakFlight<Landed>),
    Body(Weak<Stream>),
}

/// A place in the table, given up when it is dropped.
pub(super) struct Ticket {
    flights: Arc<Flights>,
    key: ResponseKey,
    id: u64,
    outdated: Arc<AtomicBool>,
}

/// What [`Flights::enter`] found.
pub(super) enum Entered {
    /// Somebody asks already.
    Join(Flight<Landed>),
    /// The body is on its way already.
    JoinBody(Arc<Stream>),
    /// This caller asks, for all.
    Lead(Flight<Landed>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Flights {
    /// Joins what is under way for `key`, or begins what `make` makes. With `alone`, nothing is joined.
    pub(super) fn enter(
        self: &Arc<Self>,
        key: &ResponseKey,
        alone: bool,
        make: impl FnOnce(Ticket) -> Flight<Landed>,
    ) -> Entered {
        let table = &mut *lock(&self.table);
        let known = table.slots.get(key).filter(|_| !alone);
        match known.map(|slot| &slot.under_way) {
            Some(UnderWay::Head(beacon)) => {
                if let Some(flight) = beacon.join() {
                    return Entered::Join(flight);
                }
            }
            Some(UnderWay::Body(stream)) => {
                if let Some(stream) = stream.upgrade() {
                    return Entered::JoinBody(stream);
                }
            }
            None => {}
        }
        let ticket = self.issue(table, key);
        let id = ticket.id;
        let flight = make(ticket);
        // The slot of one who went alone would hide the one that others can join.
        if !alone || !table.slots.contains_key(key) {
            let under_way = UnderWay::Head(flight.downgrade());
            table.slots.insert(key.clone(), Slot { id, under_way });
        }
        Entered::Lead(flight)
    }

    /// A ticket that nobody can join.
    pub(super) fn ticket(self: &Arc<Self>, key: &ResponseKey) -> Ticket {
        self.issue(&mut lock(&self.table), key)
    }

    fn issue(self: &Arc<Self>, table: &mut Table, key: &ResponseKey) -> Ticket {
        let changed = table.changed.entry(key.clone()).or_default();
        changed.tickets += 1;
        Ticket {
            flights: Arc::clone(self),
            key: key.clone(),
            id: self.next.fetch_add(1, Ordering::Relaxed),
            outdated: Arc::clone(&changed.flag),
        }
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        let table = lock(&self.table);
        table.slots.is_empty() && table.changed.is_empty()
    }

    /// Whether somebody asks for `key` already.
    pub(super) fn is_under_way(&self, key: &ResponseKey) -> bool {
        match lock(&self.table).slots.get(key).map(|slot| &slot.under_way) {
            Some(UnderWay::Head(beacon)) => beacon.join().is_some(),
            Some(UnderWay::Body(stream)) => stream.strong_count() > 0,
            None => false,
        }
    }

    /// What is under way for `key` is not stored and not joined any more: the URL has changed meanwhile.
    pub(super) fn outdate(&self, key: &ResponseKey) {
        // Dropped after the lock: it may hold the last handle to what else it guards.
        let (_slot, changed) = {
            let mut table = lock(&self.table);
            (table.slots.remove(key), table.changed.remove(key))
        };
        if let Some(changed) = changed {
            changed.flag.store(true, Ordering::Release);
        }
    }
}

impl Ticket {
    /// Whether the URL has changed since the request was begun.
    pub(super) fn is_outdated(&self) -> bool {
        self.outdated.load(Ordering::Acquire)
    }

    /// The head has come: others join the body from now on.
    pub(super) fn streams(&self, stream: &Arc<Stream>) {
        if let Some(slot) = lock(&self.flights.table).slots.get_mut(&self.key)
            && slot.id == self.id
        {
            slot.under_way = UnderWay::Body(Arc::downgrade(stream));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // The slot is dropped after the lock: it may hold the last handle to what else it guards.
        let _slot = {
            let table = &mut *lock(&self.flights.table);
            if let Some(changed) = table.changed.get_mut(&self.key)
                && Arc::ptr_eq(&changed.flag, &self.outdated)
            {
                changed.tickets -= 1;
                if changed.tickets == 0 {
                    table.changed.remove(&self.key);
                }
            }
            match table.slots.get(&self.key) {
                Some(slot) if slot.id == self.id => table.slots.remove(&self.key),
                _ => None,
            }
        };
    }
}
