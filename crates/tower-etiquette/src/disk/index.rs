//! Which URLs are stored, how much they occupy, and which was unused for longest.

use std::collections::{BTreeMap, HashMap};

use etiquette_core::store::ResponseKey;

/// In memory, rebuilt from the database when the folder is opened.
#[derive(Default)]
pub(super) struct Index {
    entries: HashMap<ResponseKey, Entry>,
    by_use: BTreeMap<u64, ResponseKey>,
    clock: u64,
    bytes: u64,
}

struct Entry {
    used: u64,
    bytes: u64,
}

impl Index {
    /// The bytes of all bodies and heads.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether something is stored for the URL, which counts as its use.
    pub(super) fn touch(&mut self, key: &ResponseKey) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        self.clock += 1;
        if let Some(key) = self.by_use.remove(&entry.used) {
            self.by_use.insert(self.clock, key);
        }
        entry.used = self.clock;
        true
    }

    /// Notes what a URL occupies now; nothing means that it is gone.
    pub(super) fn set(&mut self, key: &ResponseKey, bytes: u64) {
        if let Some(old) = self.entries.remove(key) {
            self.by_use.remove(&old.used);
            self.bytes -= old.bytes;
        }
        if bytes == 0 {
            return;
        }
        self.clock += 1;
        self.by_use.insert(self.clock, key.clone());
        let used = self.clock;
        self.entries.insert(key.clone(), Entry { used, bytes });
        self.bytes += bytes;
    }

    /// The URLs to evict so that `room` bytes are free below `limit`, the unused first, `key` itself never.
    pub(super) fn to_evict(&self, key: &ResponseKey, room: u64, limit: u64) -> Vec<ResponseKey> {
        let mut left = self.bytes;
        let mut evicted = Vec::new();
        for oldest in self.by_use.values() {
            if left.saturating_add(room) <= limit {
                break;
            }
            if oldest != key
                && let Some(entry) = self.entries.get(oldest)
            {
                left -= entry.bytes;
                evicted.push(oldest.clone());
            }
        }
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unused_go_first() {
        let key = |name: &str| ResponseKey::from_stored(name);
        let mut index = Index::default();
        for name in ["a", "b", "c"] {
            index.set(&key(name), 10);
        }
        assert!(index.touch(&key("a")));
        assert!(!index.touch(&key("d")));
        assert_eq!(index.to_evict(&key("d"), 10, 30), [key("b")]);
        assert_eq!(index.to_evict(&key("b"), 10, 30), [key("c")]);
        index.set(&key("b"), 0);
        assert_eq!((index.bytes(), index.len()), (20, 2));
        assert!(index.to_evict(&key("d"), 10, 30).is_empty());
    }
}
