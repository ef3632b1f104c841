//! Where a request reads and where what it brings is kept.
//!
//! What a person asked for is kept in the memory of its session only, and goes with it: no URL, body or validator of it
//! reaches the cache. A fresh copy that a crawl brought may be read. What is under way may be read along in by strangers
//! who asked for the same; it is kept for nobody but its own session.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    CachePolicy, RequestDirectives, Reuse, Selecting, StoredResponse,
};
use etiquette_core::store::{BodyReader, BodyWriter, ResponseKey, ResponseStore, Variant};
use etiquette_core::{Now, Purpose};
use http::request::Parts;

use super::memory::MemoryStore;
use crate::events;

/// A session keeps at most so many bytes.
const SESSION_BYTES: usize = 8 << 20;

/// The name of the stores in events.
pub(super) const STORE: &str = "responses";
const FORGET: &str = "forget a response";

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
            Some(Purpose::UserFetch(grant)) => Some(
                grant
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

    /// Forgets all that is stored for a URL that has changed.
    pub(super) async fn forget_all(cache: &St, key: &ResponseKey) {
        events::store_result(STORE, FORGET, cache.remove(key, None).await);
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
        let cached = events::store_result(STORE, "look up a response", self.cache.get(key).await);
        let mut cached = cached.unwrap_or_default();
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

    /// What is kept where the request's answer will be.
    pub(super) async fn kept(&self, key: &ResponseKey) -> Vec<Variant> {
        let kept = match &self.session {
            None => self.cache.get(key).await,
            Some(Some(store)) => store.get(key).await,
            Some(None) => return Vec::new(),
        };
        events::store_result(STORE, "look up a response", kept).unwrap_or_default()
    }

    /// The body of a variant that came without one.
    pub(super) async fn body(&self, key: &ResponseKey, variant: &Variant) -> Option<Bytes> {
        match &variant.body {
            Some(body) => Some(body.clone()),
            None => {
                let body = self.cache.body(key, &variant.head).await;
                events::store_result(STORE, "read a body", body).flatten()
            }
        }
    }

    /// The body of a variant that came without one, from a byte on, to be read piece by piece.
    pub(super) async fn read(
        &self,
        key: &ResponseKey,
        variant: &Variant,
        from: u64,
    ) -> Option<Box<dyn BodyReader>> {
        let reader = self.cache.read(key, &variant.head, from).await;
        events::store_result(STORE, "read a body", reader).flatten()
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

    /// Keeps what was written piece by piece.
    pub(super) async fn finish(
        writer: Box<dyn BodyWriter>,
        head: StoredResponse,
        replaced: Vec<Selecting>,
    ) {
        let kept = writer.finish(head, replaced).await;
        events::store_result(STORE, "keep a response", kept);
    }

    /// Keeps a response. A store that fails has not kept it: what is not stored is asked for again.
    pub(super) async fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) {
        let kept = match &self.session {
            None => self.cache.put(key, head, body, replaced).await,
            Some(Some(store)) => store.put(key, head, body, replaced).await,
            Some(None) => Ok(()),
        };
        events::store_result(STORE, "keep a response", kept);
    }

    /// Replaces the head of a variant. A store that fails has its old one still, which is stale, and asked about again.
    pub(super) async fn update(&self, key: &ResponseKey, old: &Selecting, head: StoredResponse) {
        let kept = match &self.session {
            None => self.cache.update(key, old, head).await,
            Some(Some(store)) => store.update(key, old, head).await,
            Some(None) => Ok(()),
        };
        events::store_result(STORE, "update a response", kept);
    }

    /// Forgets a variant. What a store could not forget is stale, and asked about again.
    pub(super) async fn remove(&self, key: &ResponseKey, which: &Selecting) {
        let gone = match &self.session {
            None => self.cache.remove(key, Some(which)).await,
            Some(Some(store)) => store.remove(key, Some(which)).await,
            Some(None) => Ok(()),
        };
        events::store_result(STORE, FORGET, gone);
    }
}
