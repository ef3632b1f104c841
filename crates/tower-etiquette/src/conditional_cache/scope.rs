//! Where a request reads and where what it brings is kept.
//!
//! What a person asked for is kept in the memory of its session only, and goes with it: no URL, body or validator of it
//! reaches the cache. A fresh copy that a crawl brought may be read.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::cache_policy::{
    CachePolicy, RequestDirectives, Reuse, Selecting, StoredResponse,
};
use etiquette_core::store::{
    BodyReader, BodyWriter, ResponseKey, ResponseStore, StoreFailed, Variant,
};
use etiquette_core::{Now, Purpose};
use http::request::Parts;

use super::memory::MemoryStore;

/// A session keeps at most so many octets.
const SESSION_BYTES: usize = 8 << 20;

/// The store of one session.
struct SessionStore(MemoryStore);

/// The stores of one request.
pub(super) struct Scope<St> {
    cache: Arc<St>,
    /// Of a person's request: the session's store, while the session lasts.
    session: Option<Option<MemoryStore>>,
}

impl<St> Clone for Scope<St> {
    fn clone(&self) -> Self {
        Self {
            cache: Arc::clone(&self.cache),
            session: self.session.clone(),
        }
    }
}

impl<St: ResponseStore> Scope<St> {
    pub(super) fn of(parts: &Parts, cache: &Arc<St>) -> Self {
        let session = match parts.extensions.get::<Purpose>() {
            Some(Purpose::UserFetch(permit)) => Some(
                permit
                    .slot(|| SessionStore(MemoryStore::new(SESSION_BYTES)))
                    .map(|store| store.0.clone()),
            ),
            _ => None,
        };
        Self {
            cache: Arc::clone(cache),
            session,
        }
    }

    /// Whether a person asked.
    pub(super) fn is_personal(&self) -> bool {
        self.session.is_some()
    }

    /// What may answer the request. A store that fails has nothing.
    pub(super) async fn variants(
        &self,
        key: &ResponseKey,
        policy: &CachePolicy,
        wishes: &RequestDirectives,
        now: &Now,
    ) -> Vec<Variant> {
        let mut cached = self.cache.get(key).await.unwrap_or_default();
        let Some(session) = &self.session else {
            return cached;
        };
        cached.retain(|variant| {
            matches!(
                policy.reuse(wishes, &variant.head, now),
                Reuse::Fresh { .. }
            )
        });
        let mut all = match session {
            Some(store) => store.get(key).await.unwrap_or_default(),
            None => Vec::new(),
        };
        all.append(&mut cached);
        all
    }

    /// The body of a variant that came without one.
    pub(super) async fn body(&self, key: &ResponseKey, variant: &Variant) -> Option<Bytes> {
        match &variant.body {
            Some(body) => Some(body.clone()),
            None => self.cache.body(key, &variant.head).await.ok().flatten(),
        }
    }

    /// The body of a variant that came without one, from an octet on, to be read piece by piece.
    pub(super) async fn read(
        &self,
        key: &ResponseKey,
        variant: &Variant,
        from: u64,
    ) -> Option<Box<dyn BodyReader>> {
        let reader = self.cache.read(key, &variant.head, from).await;
        reader.ok().flatten()
    }

    /// Begins to store a body that is too large to be held. A session keeps none.
    pub(super) fn write(
        &self,
        key: &ResponseKey,
        length: Option<u64>,
    ) -> Option<Box<dyn BodyWriter>> {
        match self.session {
            None => self.cache.write(key, length),
            Some(_) => None,
        }
    }

    pub(super) async fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) -> Result<(), StoreFailed> {
        match &self.session {
            None => self.cache.put(key, head, body, replaced).await,
            Some(Some(store)) => store.put(key, head, body, replaced).await,
            Some(None) => Ok(()),
        }
    }

    pub(super) async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        match &self.session {
            None => self.cache.update(key, old, head).await,
            Some(Some(store)) => store.update(key, old, head).await,
            Some(None) => Ok(()),
        }
    }

    pub(super) async fn remove(
        &self,
        key: &ResponseKey,
        which: &Selecting,
    ) -> Result<(), StoreFailed> {
        match &self.session {
            None => self.cache.remove(key, Some(which)).await,
            Some(Some(store)) => store.remove(key, Some(which)).await,
            Some(None) => Ok(()),
        }
    }
}
