use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use etiquette_core::{Clock, Refusal};
use http::Response;
use pin_project_lite::pin_project;

use super::ProblemBody;
use super::problem::problem_response;
use crate::{BoxError, TokioClock};

pin_project! {
    /// The future of [`Refuse`](super::Refuse).
    ///
    /// # Cancel safety
    /// Dropping it drops the inner future.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn new(inner: F) -> Self {
        Self { inner }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<ProblemBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().inner.poll(cx)) {
            Ok(response) => Ok(response.map(ProblemBody::inner)),
            Err(error) => {
                let error = error.into();
                match Refusal::find(&*error) {
                    Some(refusal) => Ok(problem_response(refusal, TokioClock.now().wall)),
                    None => Err(error),
                }
            }
        })
    }
}
