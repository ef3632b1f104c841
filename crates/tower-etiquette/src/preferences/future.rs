use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;

use super::service::Asked;
use crate::BoxError;

pin_project! {
    /// The future of [`PreferencesService`](super::PreferencesService).
    ///
    /// **Cancel safety**: dropping it drops the inner future, and nothing else.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        asked: Option<Asked>,
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn new(inner: F, asked: Asked) -> Self {
        Self {
            inner,
            asked: Some(asked),
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<B>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.inner.poll(cx)).map_err(Into::into)?;
        let asked = this.asked.take().expect("polled after completion");
        Poll::Ready(asked.answered(response))
    }
}
