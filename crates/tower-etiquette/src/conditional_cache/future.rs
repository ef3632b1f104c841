//! [`ResponseFuture`]: ready, or some steps away.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

use super::body::ResponseBody;
use crate::BoxError;

/// The future of [`ConditionalCache`](super::ConditionalCache).
///
/// # Cancel safety
/// Dropping it ends its request to the inner service, unless another caller waits for the same response: it then goes on
/// with that one. Nothing is stored that has not come to its end.
pub struct ResponseFuture(State);

type Output = Result<Response<ResponseBody>, BoxError>;

enum State {
    Ready(Option<Box<Response<ResponseBody>>>),
    Waiting(Pin<Box<dyn Future<Output = Output> + Send>>),
}

impl ResponseFuture {
    pub(super) fn ready(response: Response<ResponseBody>) -> Self {
        Self(State::Ready(Some(Box::new(response))))
    }

    pub(super) fn waiting(work: impl Future<Output = Output> + Send + 'static) -> Self {
        Self(State::Waiting(Box::pin(work)))
    }
}

impl Future for ResponseFuture {
    type Output = Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Output> {
        match &mut self.0 {
            State::Ready(response) => {
                let response = response.take().expect("polled after its end");
                Poll::Ready(Ok(*response))
            }
            State::Waiting(work) => work.as_mut().poll(cx),
        }
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
