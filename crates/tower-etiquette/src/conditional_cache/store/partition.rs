//! The part of the stores that one request reads and writes.
//!
//! What a person asked for is stored in the memory of its session only, and goes with it: no URL, body or validator of it
//! reaches the cache. A fresh response that a crawl brought may be read.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    CachePolicy, RequestDirectives, Reuse, Selecting, StoredResponse,
};
use etiquette_core::store::{
    BodyReader, BodyWriter, ResponseKey, ResponseStore, StoreFailed, Variant,
};
use etiquette_core::{Now, Purpose};
use http::request::Parts;

use super::memory::MemoryStore;
use crate::events;

/// A session stores at most so many bytes.
const SESSION_BYTES: usize = 8 << 20;

/// The name of the stores in events.
pub(crate) const STORE: &str = "responses";

/// The store of one session.
struct SessionStore(MemoryStore);

/// The stored responses for one URL, as one request may see and change them.
///
/// A store that fails has nothing: what is not stored is requested again, and what could not be changed is stale, and
/// validated again.
pub(crate) struct Partition<St> {
    pub(crate) key: ResponseKey,
    cache: Arc<St>,
    /// Of a person's request: the session's store.
    session: Option<MemoryStore>,
}

impl<St: ResponseStore> Partition<St> {
    pub(crate) fn of(parts: &Parts, cache: &Arc<St>, key: ResponseKey) -> Self {
        let session = match parts.extensions.get::<Purpose>() {
            Some(Purpose::UserFetch(grant)) => {
                let store = grant.slot(|| SessionStore(MemoryStore::new(SESSION_BYTES)));
                // A session that is over stores nothing.
                Some(store.map_or_else(|| MemoryStore::new(0), |store| store.0.clone()))
            }
            _ => None,
        };
        Self {
            key,
            cache: Arc::clone(cache),
            session,
        }
    }

    /// Whether a person asked.
    pub(crate) fn is_personal(&self) -> bool {
        self.session.is_some()
    }

    /// What may satisfy the request: what is stored here, and in a session the fresh responses of the cache too.
    pub(crate) async fn lookup(
        &self,
        policy: &CachePolicy,
        request: &RequestDirectives,
        now: &Now,
    ) -> Vec<Variant> {
        let mut variants = self.stored().await;
        if self.is_personal() {
            let mut cached = self.cached().await;
            cached.retain(|variant| {
                let reuse = policy.reuse(request, &variant.head, now);
                matches!(reuse, Reuse::Fresh { .. })
            });
            variants.append(&mut cached);
        }
        variants
    }

    /// What is stored where the response will be.
    pub(crate) async fn stored(&self) -> Vec<Variant> {
        match &self.session {
            None => self.cached().await,
            Some(session) => session.get(&self.key).await.unwrap_or_default(),
        }
    }

    async fn cached(&self) -> Vec<Variant> {
        checked("look up a response", self.cache.get(&self.key).await).unwrap_or_default()
    }

    /// The body of a variant, which may have come without it.
    pub(crate) async fn body(&self, variant: &Variant) -> Option<Bytes> {
        if variant.body.is_some() {
            return variant.body.clone();
        }
        let body = self.cache.body(&self.key, &variant.head).await;
        checked("read a body", body).flatten()
    }

    /// The body of a variant that came without it, from a byte on, to be read in chunks.
    pub(crate) async fn read(&self, variant: &Variant, from: u64) -> Option<Box<dyn BodyReader>> {
        let reader = self.cache.read(&self.key, &variant.head, from).await;
        checked("read a body", reader).flatten()
    }

    /// Begins to store a body that is too large to be held. A session stores none.
    pub(crate) fn write(&self, length: Option<u64>) -> Option<Box<dyn BodyWriter>> {
        match self.session {
            None => self.cache.write(&self.key, length),
            Some(_) => None,
        }
    }

    /// Stores a response.
    pub(crate) async fn put(&self, head: StoredResponse, body: Bytes, replaced: &[Selecting]) {
        let put = match &self.session {
            None => self.cache.put(&self.key, head, body, replaced).await,
            Some(session) => session.put(&self.key, head, body, replaced).await,
        };
        checked("keep a response", put);
    }

    /// Replaces the head of a variant.
    pub(crate) async fn update(&self, old: &Selecting, head: StoredResponse) {
        let updated = match &self.session {
            None => self.cache.update(&self.key, old, head).await,
            Some(session) => session.update(&self.key, old, head).await,
        };
        checked("update a response", updated);
    }

    /// Removes a variant.
    pub(crate) async fn remove(&self, which: &Selecting) {
        let removed = match &self.session {
            None => self.cache.remove(&self.key, Some(which)).await,
            Some(session) => session.remove(&self.key, Some(which)).await,
        };
        checked("forget a response", removed);
    }
}

/// What a store returned; tells of a failure.
fn checked<T>(doing: &'static str, outcome: Result<T, StoreFailed>) -> Option<T> {
    events::store_result(STORE, doing, outcome)
}

/// Removes all that is stored for a URL that has changed.
pub(crate) async fn remove_all(store: &impl ResponseStore, key: &ResponseKey) {
    checked("forget a response", store.remove(key, None).await);
}
