use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use etiquette_core::Refusal;
use http::Response;
use pin_project_lite::pin_project;

use super::service::Step;
use crate::BoxError;

pin_project! {
    /// The future of [`UserAgent`](super::UserAgent): the inner one, or a refusal.
    ///
    /// **Cancel safety**: dropping it drops the inner future and leaves the request's grant as it was.
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
        Calling { #[pin] future: F, step: Option<Box<Step>> },
        Refused { refusal: Option<Box<Refusal>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(super) fn calling(future: F, step: Option<Box<Step>>) -> Self {
        Self {
            state: State::Calling { future, step },
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

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<B>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProj::Calling { future, step } => {
                let mut response = ready!(future.poll(cx)).map_err(Into::into)?;
                if let Some(step) = step.take() {
                    step.answered(&mut response);
                }
                Poll::Ready(Ok(response))
            }
            StateProj::Refused { refusal } => {
                let refusal: BoxError = refusal.take().expect("polled after completion");
                Poll::Ready(Err(refusal))
            }
        }
    }
}
