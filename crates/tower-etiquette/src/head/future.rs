use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use etiquette_core::Refusal;
use http::Response;
use pin_project_lite::pin_project;

use super::OnHead;
use crate::BoxError;
use crate::macros::opaque_debug;

pin_project! {
    /// The future of [`HeadService`](super::HeadService): the inner one, or a refusal.
    ///
    /// # Cancel safety
    /// Dropping it drops the inner future, and what is kept of the request.
    pub struct ResponseFuture<F, C: OnHead> {
        #[pin]
        state: State<F, C::Pending>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, P> {
        Calling { #[pin] inner: F, pending: Option<P> },
        Refused { refusal: Option<Box<Refusal>> },
    }
}

impl<F, C: OnHead> ResponseFuture<F, C> {
    pub(super) fn calling(inner: F, pending: C::Pending) -> Self {
        Self {
            state: State::Calling {
                inner,
                pending: Some(pending),
            },
        }
    }

    pub(super) fn refused(refusal: Refusal) -> Self {
        Self {
            state: State::Refused {
                refusal: Some(Box::new(refusal)),
            },
        }
    }
}

impl<F, C, B, E> Future for ResponseFuture<F, C>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    C: OnHead,
{
    type Output = Result<Response<B>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Calling { inner, pending } => {
                let response = ready!(inner.poll(cx)).map_err(Into::into)?;
                let pending = pending.take().expect("polled after completion");
                let (mut head, body) = response.into_parts();
                C::on_response(pending, &mut head)?;
                Poll::Ready(Ok(Response::from_parts(head, body)))
            }
            StateProj::Refused { refusal } => {
                let refusal: BoxError = refusal.take().expect("polled after completion");
                Poll::Ready(Err(refusal))
            }
        }
    }
}

opaque_debug!(ResponseFuture<F, C: OnHead>);
