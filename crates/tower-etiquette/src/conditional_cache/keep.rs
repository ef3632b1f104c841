//! What becomes of a body that has come to its end: kept, or only shown to those who read along.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Extent, Selecting, StoredResponse};
use etiquette_core::store::{BodyWriter, ResponseKey, ResponseStore};

use super::flights::Ticket;
use super::head_only::HeadOnly;
use super::scope::Scope;
use super::stream::{Keep, Storing};

/// How the body of `head` is stored. The ticket goes with it; the caller has the body whether it is stored or not.
pub(super) struct Kept<St> {
    pub(super) scope: Scope<St>,
    pub(super) key: ResponseKey,
    pub(super) head: StoredResponse,
    pub(super) replaced: Vec<Selecting>,
    pub(super) ticket: Arc<Ticket>,
    /// What is put together is no longer than this.
    pub(super) max: usize,
}

impl<St: ResponseStore> Keep for Kept<St> {
    fn whole(self: Box<Self>, body: Bytes) -> Storing<()> {
        Box::pin(async move {
            let joined = match self.head.extent() {
                Extent::Part { .. } => self.joined(&body).await,
                _ => None,
            };
            if !self.ticket.is_outdated() {
                let (head, body) = match self.head.extent() {
                    Extent::HeadOnly => (self.head, Bytes::new()),
                    _ => joined.unwrap_or((self.head, body)),
                };
                self.scope.put(&self.key, head, body, &self.replaced).await;
            }
        })
    }

    fn begin(&self) -> Option<Box<dyn BodyWriter>> {
        match self.head.extent() {
            Extent::HeadOnly => Some(HeadOnly::begin(&self.scope, &self.key)),
            _ => self.scope.write(&self.key, None),
        }
    }

    fn finish(self: Box<Self>, writer: Box<dyn BodyWriter>) -> Storing<()> {
        Box::pin(async move {
            if !self.ticket.is_outdated() {
                Scope::<St>::finish(writer, self.head, self.replaced).await;
            }
        })
    }
}

/// A body that is read along in while it comes, and stored nowhere. The ticket goes with it.
pub(super) struct Shown {
    pub(super) _ticket: Arc<Ticket>,
}

impl Keep for Shown {
    fn whole(self: Box<Self>, _: Bytes) -> Storing<()> {
        Box::pin(std::future::ready(()))
    }

    fn begin(&self) -> Option<Box<dyn BodyWriter>> {
        None
    }

    fn finish(self: Box<Self>, _: Box<dyn BodyWriter>) -> Storing<()> {
        Box::pin(std::future::ready(()))
    }
}
