//! [`MemoryStore`], which is used unless another store is given: in memory, bounded in bytes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{ResponseKey, ResponseStore, StoreFailed, Variant};

/// So many variants of one URL stand side by side; a further one replaces the oldest.
const MOST_VARIANTS: usize = 16;

/// What the table needs for a key beside its text.
const KEY_WEIGHT: usize = 160;

/// Responses in memory. The bytes of bodies, heads and keys count; what was not used for longest is evicted first.
///
/// Cloning gives another handle to the same responses.
#[derive(Clone)]
pub struct MemoryStore(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    entries: HashMap<ResponseKey, Entry>,
    by_use: BTreeMap<u64, ResponseKey>,
    clock: u64,
    bytes: usize,
    max_bytes: usize,
}

struct Entry {
    used: u64,
    weight: usize,
    /// The newest first.
    variants: Vec<Variant>,
}

impl MemoryStore {
    /// The limit unless another one is given: 64 MiB.
    pub const DEFAULT_MAX_BYTES: usize = 64 << 20;

    /// An empty store that holds at most `max_bytes` bytes of heads and bodies.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Table {
            max_bytes,
            ..Table::default()
        })))
    }

    /// The bytes held now: never more than the limit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.table().bytes
    }

    /// How many URLs have stored responses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table().entries.len()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut table = self.table();
        table.entries.clear();
        table.by_use.clear();
        table.bytes = 0;
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_BYTES)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.table();
        f.debug_struct("MemoryStore")
            .field("urls", &table.entries.len())
            .field("bytes", &table.bytes)
            .field("max_bytes", &table.max_bytes)
            .finish()
    }
}

impl Table {
    fn variants(&mut self, key: &ResponseKey) -> Vec<Variant> {
        let Some(entry) = self.entries.get_mut(key) else {
            return Vec::new();
        };
        // One that was used a moment ago stands near enough to the end of the queue: a hot entry is not moved each time.
        if self.clock - entry.used > self.by_use.len() as u64 / 8 {
            self.clock += 1;
            if let Some(key) = self.by_use.remove(&entry.used) {
                self.by_use.insert(self.clock, key);
            }
            entry.used = self.clock;
        }
        entry.variants.clone()
    }

    /// Changes the variants of a URL, and makes room.
    fn change(&mut self, key: &ResponseKey, change: impl FnOnce(&mut Vec<Variant>)) {
        let mut variants = match self.entries.remove(key) {
            Some(entry) => {
                self.bytes -= entry.weight;
                self.by_use.remove(&entry.used);
                entry.variants
            }
            None => Vec::new(),
        };
        change(&mut variants);
        variants.truncate(MOST_VARIANTS);
        while !variants.is_empty() && weight(key, &variants) > self.max_bytes {
            variants.pop();
        }
        if variants.is_empty() {
            return;
        }
        self.clock += 1;
        let entry = Entry {
            used: self.clock,
            weight: weight(key, &variants),
            variants,
        };
        self.bytes += entry.weight;
        self.by_use.insert(self.clock, key.clone());
        self.entries.insert(key.clone(), entry);
        while self.bytes > self.max_bytes {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                return;
            };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.bytes -= entry.weight;
            }
        }
    }
}

fn weight(key: &ResponseKey, variants: &[Variant]) -> usize {
    let parts: usize = variants
        .iter()
        .map(|v| v.head.weight() + v.body.as_ref().map_or(0, Bytes::len))
        .sum();
    KEY_WEIGHT + 2 * key.as_str().len() + parts
}

impl ResponseStore for MemoryStore {
    async fn get(&self, key: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
        Ok(self.table().variants(key))
    }

    async fn body(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
    ) -> Result<Option<Bytes>, StoreFailed> {
        let mut variants = self.table().variants(key).into_iter();
        let found = variants.find(|variant| variant.head.selecting() == head.selecting());
        Ok(found.and_then(|variant| variant.body))
    }

    async fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) -> Result<(), StoreFailed> {
        self.table().change(key, |variants| {
            variants.retain(|old| {
                old.head.selecting() != head.selecting() && !replaced.contains(old.head.selecting())
            });
            variants.insert(0, Variant::new(head, body));
        });
        Ok(())
    }

    async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        self.table().change(key, |variants| {
            let Some(position) = variants.iter().position(|v| v.head.selecting() == old) else {
                return;
            };
            let mut variant = variants.remove(position);
            variants.retain(|other| other.head.selecting() != head.selecting());
            variant.head = Arc::new(head);
            variants.insert(0, variant);
        });
        Ok(())
    }

    async fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> Result<(), StoreFailed> {
        self.table().change(key, |variants| match which {
            Some(which) => variants.retain(|old| old.head.selecting() != which),
            None => variants.clear(),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etiquette_core::Clock as _;
    use etiquette_core::decide::cache_policy::{Extent, ResponseTimes};
    use http::{HeaderMap, StatusCode, Version};

    use super::*;
    use crate::TokioClock;

    fn head(variant: &str) -> StoredResponse {
        let now = TokioClock.now();
        let exchange = ResponseTimes {
            request_time: now,
            response_time: now,
            queued: Duration::ZERO,
        };
        let selecting = Selecting::from_fields([("foo".into(), Some(variant.as_bytes().into()))]);
        StoredResponse::new(
            StatusCode::OK,
            Version::HTTP_11,
            &HeaderMap::new(),
            selecting,
            Extent::Whole,
            &exchange,
            false,
        )
    }

    fn key(path: &str) -> ResponseKey {
        ResponseKey::from_stored(path)
    }

    #[tokio::test]
    async fn never_above_the_limit_and_the_unused_are_evicted_first() {
        let store = MemoryStore::new(10_000);
        for path in ["a", "b", "c"] {
            let body = Bytes::from(vec![0; 2_000]);
            store.put(&key(path), head("1"), body, &[]).await.unwrap();
        }
        assert_eq!(store.len(), 3);
        store.get(&key("a")).await.unwrap();
        let body = Bytes::from(vec![0; 2_500]);
        store.put(&key("d"), head("1"), body, &[]).await.unwrap();
        assert!(store.bytes() <= 10_000);
        assert_eq!(store.get(&key("b")).await.unwrap().len(), 0);
        assert_eq!(store.get(&key("a")).await.unwrap().len(), 1);
        // Larger than all: not kept, and the old one is gone all the same.
        let body = Bytes::from(vec![0; 20_000]);
        store.put(&key("a"), head("1"), body, &[]).await.unwrap();
        assert_eq!(store.get(&key("a")).await.unwrap().len(), 0);
        for path in ["a", "b", "c", "d"] {
            store.remove(&key(path), None).await.unwrap();
        }
        assert_eq!((store.bytes(), store.len()), (0, 0));
    }

    #[tokio::test]
    async fn variants_are_bounded_and_replaced() {
        let store = MemoryStore::default();
        for i in 0..20 {
            let body = Bytes::from(i.to_string());
            store
                .put(&key("a"), head(&i.to_string()), body, &[])
                .await
                .unwrap();
        }
        let found = store.get(&key("a")).await.unwrap();
        assert_eq!(found.len(), MOST_VARIANTS);
        assert_eq!(found[0].body.as_deref(), Some(&b"19"[..]));
        let replaced = [head("18").selecting().clone()];
        store
            .put(&key("a"), head("19"), Bytes::from_static(b"new"), &replaced)
            .await
            .unwrap();
        let found = store.get(&key("a")).await.unwrap();
        assert_eq!(found.len(), MOST_VARIANTS - 1);
        assert_eq!(found[0].body.as_deref(), Some(&b"new"[..]));
        store
            .update(&key("a"), head("5").selecting(), head("50"))
            .await
            .unwrap();
        assert_eq!(
            store.get(&key("a")).await.unwrap()[0].body.as_deref(),
            Some(&b"5"[..])
        );
        store
            .update(&key("b"), head("5").selecting(), head("50"))
            .await
            .unwrap();
        assert_eq!(store.len(), 1);
    }
}
