//! The hosts that are remembered, and which of them may be forgotten.
//!
//! A host is found by a 64-bit hash with a secret key: a collision lets two groups share a budget, which is slower and
//! safe. Forgotten are only hosts that are owed nothing; a full table refuses new ones.
//!
//! Hosts at rest are packed: a million of them that are still within their delay take some 75 bytes each at most. They
//! lose their name, and get it back from the next request.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{HostPolicy, HostState, PackedHost};

use super::entry::Host;

const SHARDS: usize = 64;
/// A shard with fewer hosts is not swept for size alone. Few, because hosts that come to rest are packed while the
/// processor still has them at hand, and the slot that they left.
const SMALL: usize = 8;

#[derive(Debug)]
pub(super) struct Table {
    shards: Box<[Mutex<Shard>]>,
    len: AtomicUsize,
    max_hosts: usize,
    keys: RandomState,
    /// Packed times count from here.
    base: Instant,
    pub(super) policies: Policies,
    /// When a full table was last searched in vain.
    searched: Mutex<Option<Instant>>,
}

/// Which policy a host is under, by its name.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) common: Arc<HostPolicy>,
    pub(super) own: HashMap<String, Arc<HostPolicy>>,
}

impl Policies {
    pub(super) fn of(&self, name: &str) -> &Arc<HostPolicy> {
        self.own.get(name).unwrap_or(&self.common)
    }
}

#[derive(Debug, Default)]
struct Shard {
    hosts: HashMap<u64, Arc<Host>, BuildHasherDefault<Hashed>>,
    packed: HashMap<u64, PackedHost, BuildHasherDefault<Hashed>>,
    sweep_at: usize,
    sweep_packed_at: usize,
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
    pub(super) fn new(
        max_hosts: usize,
        policies: Policies,
        keys: RandomState,
        base: Instant,
    ) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            len: AtomicUsize::new(0),
            max_hosts,
            keys,
            base,
            policies,
            searched: Mutex::new(None),
        }
    }

    /// A number that stands for `value` in this process.
    pub(super) fn key_of(&self, value: impl Hash) -> u64 {
        self.keys.hash_one(value)
    }

    /// The host, if it is remembered.
    pub(super) fn get(&self, name: &str, now: Instant) -> Option<Arc<Host>> {
        let key = self.key_of(name);
        self.find(&mut self.shard(key), key, name, now)
    }

    /// The host, made if it is new; `None` when the table is full and nobody may be forgotten.
    pub(super) fn get_or_insert(&self, name: &str, now: Instant) -> Option<Arc<Host>> {
        let key = self.key_of(name);
        {
            let mut shard = self.shard(key);
            if let Some(host) = self.find(&mut shard, key, name, now) {
                return Some(host);
            }
            self.sweep_if_large(&mut shard, now);
        }
        if self.len.load(Ordering::Acquire) >= self.max_hosts && !self.make_room(now) {
            return None;
        }
        Some(self.insert_at(key, name, now))
    }

    /// The host, made if it is new, however full the table is.
    pub(super) fn insert(&self, name: &str, now: Instant) -> Arc<Host> {
        self.insert_at(self.key_of(name), name, now)
    }

    fn insert_at(&self, key: u64, name: &str, now: Instant) -> Arc<Host> {
        let mut shard = self.shard(key);
        if let Some(host) = self.find(&mut shard, key, name, now) {
            return host;
        }
        self.len.fetch_add(1, Ordering::AcqRel);
        self.unpack(&mut shard, key, name, HostState::new())
    }

    fn find(&self, shard: &mut Shard, key: u64, name: &str, now: Instant) -> Option<Arc<Host>> {
        if let Some(host) = shard.hosts.get(&key) {
            return Some(Arc::clone(host));
        }
        let packed = shard.packed.remove(&key)?;
        self.sweep_if_large(shard, now);
        let state = HostState::unpack(packed, self.base);
        Some(self.unpack(shard, key, name, state))
    }

    fn unpack(&self, shard: &mut Shard, key: u64, name: &str, state: HostState) -> Arc<Host> {
        let policy = Arc::clone(self.policies.of(name));
        let host = Arc::new(Host::new(key, name, policy, state));
        shard.hosts.insert(key, Arc::clone(&host));
        host
    }

    /// How many hosts are remembered, after forgetting those who are owed nothing.
    pub(super) fn forget_idle(&self, now: Instant) -> usize {
        for shard in &self.shards {
            let mut shard = lock(shard);
            shard.sweep_packed_at = 0;
            self.sweep(&mut shard, now, false);
            let before = shard.packed.len();
            self.forget_packed(&mut shard, now, false);
            let forgotten = before - shard.packed.len();
            self.len.fetch_sub(forgotten, Ordering::AcqRel);
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
            let pause = Duration::from_micros(self.max_hosts as u64);
            if searched.is_some_and(|last| now.saturating_duration_since(last) < pause) {
                return false;
            }
            *searched = Some(now);
        }
        for shard in &self.shards {
            self.sweep(&mut lock(shard), now, true);
        }
        let room = self.len.load(Ordering::Acquire) < self.max_hosts;
        if room {
            *lock(&self.searched) = None;
        }
        room
    }

    fn sweep_if_large(&self, shard: &mut Shard, now: Instant) {
        if shard.hosts.len() >= shard.sweep_at.max(SMALL) {
            self.sweep(shard, now, false);
        }
    }

    /// Forgets hosts that are owed nothing and packs those at rest.
    fn sweep(&self, shard: &mut Shard, now: Instant, pressure: bool) {
        let before = shard.hosts.len() + shard.packed.len();
        let packed = &mut shard.packed;
        // Whoever takes a host does so under the shard's lock: one that nobody else holds now stays unheld.
        shard.hosts.retain(|key, host| {
            if Arc::strong_count(host) > 1 {
                return true;
            }
            if host.is_forgettable(now, pressure) {
                return false;
            }
            match host.pack(&self.policies.common, self.base, now) {
                Some(rest) => {
                    packed.insert(*key, rest);
                    false
                }
                None => true,
            }
        });
        shard.sweep_at = shard.hosts.len().saturating_mul(2);
        if pressure || shard.packed.len() >= shard.sweep_packed_at.max(SMALL) {
            self.forget_packed(shard, now, pressure);
        }
        let left = shard.hosts.len() + shard.packed.len();
        self.len.fetch_sub(before - left, Ordering::AcqRel);
        if shard.hosts.capacity() > 4 * shard.hosts.len().max(SMALL) {
            let room = shard.hosts.len().max(SMALL);
            shard.hosts.shrink_to(room);
        }
    }

    fn forget_packed(&self, shard: &mut Shard, now: Instant, pressure: bool) {
        shard.packed.retain(|_, packed| {
            !HostState::unpack(*packed, self.base).is_forgettable(
                &self.policies.common,
                now,
                pressure,
            )
        });
        let left = shard.packed.len();
        shard.sweep_packed_at = left.saturating_mul(2);
        if shard.packed.capacity() > 4 * left.max(SMALL) {
            shard.packed.shrink_to(left.max(SMALL));
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
