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
/// Dropping it ends its request to the inner service, unless another caller waits for the same answer: it then goes on
/// with that one. Nothing is stored that has not come to its end.
pub struct ResponseFuture<B> {
    state: State<B>,
}

type Waiting<B> = Pin<Box<dyn Future<Output = Result<Response<ResponseBody<B>>, BoxError>> + Send>>;

enum State<B> {
    Ready(Option<Box<Response<ResponseBody<B>>>>),
    Waiting(Waiting<B>),
}

impl<B> ResponseFuture<B> {
    pub(super) fn ready(response: Response<ResponseBody<B>>) -> Self {
        Self {
            state: State::Ready(Some(Box::new(response))),
        }
    }

    pub(super) fn waiting(
        work: impl Future<Output = Result<Response<ResponseBody<B>>, BoxError>> + Send + 'static,
    ) -> Self {
        Self {
            state: State::Waiting(Box::pin(work)),
        }
    }
}

// The body inside is handed on by value, never pinned here.
impl<B> Unpin for ResponseFuture<B> {}

impl<B> Future for ResponseFuture<B> {
    type Output = Result<Response<ResponseBody<B>>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.state {
            State::Ready(response) => {
                let response = response.take().expect("polled after its end");
                Poll::Ready(Ok(*response))
            }
            State::Waiting(work) => work.as_mut().poll(cx),
        }
    }
}

impl<B> fmt::Debug for ResponseFuture<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
