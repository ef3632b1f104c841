//! Heads that are stored without their bodies, for callers with a database of their own.

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{BodyWriter, ResponseStore, StoreFuture};

use super::partition::Partition;

/// Takes a body of any length, stores nothing of it, and the head at its end.
pub(crate) struct HeadOnly<St>(pub(crate) Partition<St>);

impl<St: ResponseStore> BodyWriter for HeadOnly<St> {
    fn write(self: Box<Self>, _: Bytes) -> StoreFuture<'static, Box<dyn BodyWriter>> {
        Box::pin(std::future::ready(Ok(self as Box<dyn BodyWriter>)))
    }

    fn finish(
        self: Box<Self>,
        head: StoredResponse,
        replaced: Vec<Selecting>,
    ) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            self.0.put(head, Bytes::new(), &replaced).await;
            Ok(())
        })
    }
}
