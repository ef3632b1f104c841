//! Responses in the folder.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{ResponseKey, ResponseStore, StoreFailed, Variant};

use super::record::Record;
use super::store::DiskStore;

impl ResponseStore for DiskStore {
    async fn get(&self, key: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
        if !self.inner.index().touch(key) {
            return Ok(Vec::new());
        }
        let key = key.clone();
        self.work("look up a response", move |inner| {
            let records = inner.records(&key)?;
            let variant = |record: Record| Variant {
                head: Arc::new(record.head),
                body: None,
                length: record.body.length,
            };
            Ok(records.into_iter().map(variant).collect())
        })
        .await
    }

    async fn body(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
    ) -> Result<Option<Bytes>, StoreFailed> {
        let key = key.clone();
        let (selecting, initial_age) = (head.selecting().clone(), head.initial_age());
        self.work("read a body", move |inner| {
            // A body that was replaced meanwhile does not belong to this head.
            let records = inner.records(&key)?;
            let found = records.iter().find(|record| {
                *record.head.selecting() == selecting && record.head.initial_age() == initial_age
            });
            let Some(record) = found else {
                return Ok(None);
            };
            let id = record.body;
            match inner.files.read(&id) {
                Ok(body) => Ok(Some(body)),
                Err(error) => {
                    inner.change(&key, |records| records.retain(|record| record.body != id))?;
                    Err(error.into())
                }
            }
        })
        .await
    }

    async fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) -> Result<(), StoreFailed> {
        let (key, replaced) = (key.clone(), replaced.to_vec());
        self.work("keep a response", move |inner| {
            inner.put(&key, head, &body, &replaced)
        })
        .await
    }

    async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        let (key, old) = (key.clone(), old.clone());
        self.work("update a response", move |inner| {
            let secret = head.selecting().holds_credentials();
            inner.change(&key, |records| {
                let Some(at) = records.iter().position(|r| *r.head.selecting() == old) else {
                    return;
                };
                let mut record = records.remove(at);
                records.retain(|other| other.head.selecting() != head.selecting());
                record.bytes = head.encode().len();
                record.head = head;
                if !secret {
                    records.insert(0, record);
                }
            })
        })
        .await
    }

    async fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> Result<(), StoreFailed> {
        if !self.inner.index().touch(key) {
            return Ok(());
        }
        let (key, which) = (key.clone(), which.cloned());
        self.work("forget a response", move |inner| {
            inner.change(&key, |records| match &which {
                Some(which) => records.retain(|record| record.head.selecting() != which),
                None => records.clear(),
            })
        })
        .await
    }
}
