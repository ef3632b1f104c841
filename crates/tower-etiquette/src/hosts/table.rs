//! The hosts that are remembered, and which of them may be forgotten.
//!
//! A host is found by a 64-bit hash with a secret key: a collision lets two groups share a budget, which is slower and
//! safe. Forgotten are only hosts that are owed nothing; a full table refuses new ones.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::host::Host;

const SHARDS: usize = 64;
/// A shard with fewer hosts is not swept for size alone.
const SMALL: usize = 64;

#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    len: AtomicUsize,
    most: usize,
    /// When a full table was last searched in vain.
    searched: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Shard {
    hosts: HashMap<u64, Arc<Host>, BuildHasherDefault<Hashed>>,
    sweep_at: usize,
}

/// The keys are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are u64");
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

impl Table {
    pub(super) fn new(most: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            len: AtomicUsize::new(0),
            most,
            searched: Mutex::new(None),
        }
    }

    /// The host, if it is remembered.
    pub(super) fn get(&self, key: u64) -> Option<Arc<Host>> {
        self.shard(key).hosts.get(&key).cloned()
    }

    /// The host, made by `make` if it is new; `None` when the table is full and nobody may be forgotten.
    pub(super) fn get_or_insert(
        &self,
        key: u64,
        now: Instant,
        make: impl FnOnce() -> Host,
    ) -> Option<Arc<Host>> {
        {
            let mut shard = self.shard(key);
            if let Some(host) = shard.hosts.get(&key) {
                return Some(Arc::clone(host));
            }
            if shard.hosts.len() >= shard.sweep_at.max(SMALL) {
                self.sweep(&mut shard, now, false);
            }
        }
        if self.len.load(Ordering::Acquire) >= self.most && !self.make_room(now) {
            return None;
        }
        match self.shard(key).hosts.entry(key) {
            Entry::Occupied(known) => Some(Arc::clone(known.get())),
            Entry::Vacant(vacant) => {
                self.len.fetch_add(1, Ordering::AcqRel);
                Some(Arc::clone(vacant.insert(Arc::new(make()))))
            }
        }
    }

    /// How many hosts are remembered, after forgetting those who are owed nothing.
    pub(super) fn settle(&self, now: Instant) -> usize {
        for shard in &self.shards {
            self.sweep(&mut lock(shard), now, false);
        }
        self.len.load(Ordering::Acquire)
    }

    /// Visits every host, one shard locked at a time.
    pub(super) fn each(&self, mut visit: impl FnMut(&Host)) {
        for shard in &self.shards {
            for host in lock(shard).hosts.values() {
                visit(host);
            }
        }
    }

    /// Forgets what may be forgotten in a full table. A search in vain is not repeated for a time that grows with the
    /// table, so that a stream of new hosts costs little.
    fn make_room(&self, now: Instant) -> bool {
        {
            let mut searched = lock(&self.searched);
            let pause = Duration::from_micros(self.most as u64);
            if searched.is_some_and(|last| now.saturating_duration_since(last) < pause) {
                return false;
            }
            *searched = Some(now);
        }
        for shard in &self.shards {
            self.sweep(&mut lock(shard), now, true);
        }
        let room = self.len.load(Ordering::Acquire) < self.most;
        if room {
            *lock(&self.searched) = None;
        }
        room
    }

    fn sweep(&self, shard: &mut Shard, now: Instant, pressure: bool) {
        let before = shard.hosts.len();
        // Whoever takes a host does so under the shard's lock: one that nobody else holds now stays unheld.
        shard
            .hosts
            .retain(|_, host| Arc::strong_count(host) > 1 || !host.is_forgettable(now, pressure));
        let left = shard.hosts.len();
        self.len.fetch_sub(before - left, Ordering::AcqRel);
        shard.sweep_at = left.saturating_mul(2);
        if shard.hosts.capacity() > 4 * left.max(SMALL) {
            shard.hosts.shrink_to(left.max(SMALL));
        }
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, Shard> {
        // The map uses the low and the highest bits.
        lock(&self.shards[(key >> 32) as usize % SHARDS])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
