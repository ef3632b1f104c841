//! A store that fails: told with what was being done, and never with whose URL it was.

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{ResponseKey, ResponseStore, StoreFailed, Variant};

/// Fails whatever is asked of it, and says the URL in its error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken;

fn failed<T>(key: &ResponseKey) -> Result<T, StoreFailed> {
    Err(StoreFailed::new("do anything", key.as_str().to_owned()))
}

impl ResponseStore for Broken {
    async fn get(&self, key: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
        failed(key)
    }

    async fn body(
        &self,
        key: &ResponseKey,
        _: &StoredResponse,
    ) -> Result<Option<Bytes>, StoreFailed> {
        failed(key)
    }

    async fn put(
        &self,
        key: &ResponseKey,
        _: StoredResponse,
        _: Bytes,
        _: &[Selecting],
    ) -> Result<(), StoreFailed> {
        failed(key)
    }

    async fn update(
        &self,
        key: &ResponseKey,
        _: &Selecting,
        _: StoredResponse,
    ) -> Result<(), StoreFailed> {
        failed(key)
    }

    async fn remove(&self, key: &ResponseKey, _: Option<&Selecting>) -> Result<(), StoreFailed> {
        failed(key)
    }
}
