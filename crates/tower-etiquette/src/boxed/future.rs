use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

use super::Body;
use crate::BoxError;
use crate::macros::opaque_debug;

/// The boxed future of a response: that of a [`BoxedService`](super::BoxedService), and of the layers that wait.
///
/// # Cancel safety
/// Dropping it drops the future inside. What that means is said where the future comes from.
pub struct BoxedFuture<B = Body>(Inner<B>);

type Inner<B> = Pin<Box<dyn Future<Output = Result<Response<B>, BoxError>> + Send>>;

impl<B> BoxedFuture<B> {
    pub(crate) fn new(
        future: impl Future<Output = Result<Response<B>, BoxError>> + Send + 'static,
    ) -> Self {
        Self(Box::pin(future))
    }
}

impl<B> Future for BoxedFuture<B> {
    type Output = Result<Response<B>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

opaque_debug!(BoxedFuture<B>);
