use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use etiquette_core::Refusal;
use pin_project_lite::pin_project;

use crate::BoxError;

pin_project! {
    /// The future of [`Sign`](super::Sign): the inner one, or a refusal.
    ///
    /// **Cancel safety**: dropping it drops the inner future, and nothing else.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = StateProj]
    enum State<F> {
        Calling { #[pin] future: F },
        Refused { refusal: Option<Box<Refusal>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn calling(future: F) -> Self {
        Self {
            state: State::Calling { future },
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

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Output = Result<R, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Calling { future } => future.poll(cx).map_err(Into::into),
            StateProj::Refused { refusal } => {
                let refusal: BoxError = refusal.take().expect("polled after completion");
                Poll::Ready(Err(refusal))
            }
        }
    }
}
