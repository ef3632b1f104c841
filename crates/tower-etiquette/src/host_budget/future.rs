use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as Task, Poll};

use http::Response;

use super::ResponseBody;
use crate::BoxError;

/// The answer to come of a [`HostBudget`](super::HostBudget).
///
/// # Cancel safety
/// Dropped while it waits, it leaves the line and the next one takes its turn at the same instant. Dropped while the
/// inner service gets ready, it gives the permit back unused. Dropped while the request is under way, it drops the inner
/// call and gives the permit back; the delay counts from its start and from the drop. Dropped while an answer waits for the
/// journal, the answer is recorded and written all the same.
pub struct ResponseFuture<B>(Boxed<B>);

type Boxed<B> = Pin<Box<dyn Future<Output = Result<Response<ResponseBody<B>>, BoxError>> + Send>>;

impl<B> ResponseFuture<B> {
    pub(super) fn new(
        future: impl Future<Output = Result<Response<ResponseBody<B>>, BoxError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(future))
    }
}

impl<B> Future for ResponseFuture<B> {
    type Output = Result<Response<ResponseBody<B>>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(task)
    }
}

impl<B> fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
