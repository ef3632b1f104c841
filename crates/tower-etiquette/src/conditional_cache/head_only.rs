//! Heads that are kept without their bodies, for callers with a database of their own.

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse, has_validator};
use etiquette_core::store::{BodyWriter, ResponseKey, ResponseStore, StoreFuture};
use http::{Response, StatusCode};

use super::scope::Scope;

/// Whether the head of a response is worth to be kept without its body: a success that a 304 can confirm.
pub(super) fn may_be_bare<B>(response: &Response<B>) -> bool {
    let status = response.status();
    status.is_success()
        && status != StatusCode::PARTIAL_CONTENT
        && has_validator(response.headers())
}

/// Takes a body of any length, keeps nothing of it, and stores the head at its end.
pub(super) struct HeadOnly<St> {
    scope: Scope<St>,
    key: ResponseKey,
}

impl<St: ResponseStore> HeadOnly<St> {
    pub(super) fn begin(scope: &Scope<St>, key: &ResponseKey) -> Box<dyn BodyWriter> {
        Box::new(Self {
            scope: scope.clone(),
            key: key.clone(),
        })
    }
}

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
            let put = self.scope.put(&self.key, head, Bytes::new(), &replaced);
            put.await;
            Ok(())
        })
    }
}
