use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use etiquette_core::decide::accept::{self, SNIFF_LIMIT, TypeRefusal};
use http::{Response, response};
use http_body::Body;
use pin_project_lite::pin_project;

use super::ResponseBody;
use super::body::Peeked;
use super::type_check::{TypeCheck, TypeDecision};
use crate::BoxError;

pin_project! {
    /// The future of [`AcceptService`](super::AcceptService).
    ///
    /// # Cancel safety
    /// Dropping it drops the inner future or, while the first bytes are awaited, the response.
    pub struct ResponseFuture<F, B: Body> {
        #[pin]
        state: State<F, B>,
        check: TypeCheck,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, B: Body> {
        Calling { #[pin] future: F },
        Sniffing { head: Option<response::Parts>, peeked: Option<Peeked<B>> },
    }
}

impl<F, B: Body> ResponseFuture<F, B> {
    pub(super) fn calling(future: F, check: TypeCheck) -> Self {
        Self {
            state: State::Calling { future },
            check,
        }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body,
{
    type Output = Result<Response<ResponseBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Calling { future } => {
                    let (head, body) = ready!(future.poll(cx)).map_err(Into::into)?.into_parts();
                    match this.check.decide(&head) {
                        TypeDecision::PassOn => {
                            let body = ResponseBody::untouched(body);
                            return Poll::Ready(Ok(Response::from_parts(head, body)));
                        }
                        TypeDecision::Refuse(why) => {
                            return Poll::Ready(Err(this.check.refuse(&head, why)));
                        }
                        TypeDecision::Sniff => this.state.set(State::Sniffing {
                            head: Some(head),
                            peeked: Some(Peeked::new(body)),
                        }),
                    }
                }
                StateProj::Sniffing { head, peeked } => {
                    let waiting = peeked.as_mut().expect("polled after completion");
                    ready!(waiting.poll_peek(cx, SNIFF_LIMIT));
                    let fits = waiting.failed()
                        || accept::sniff(&this.check.accept, &waiting.first(SNIFF_LIMIT));
                    let (Some(head), Some(peeked)) = (head.take(), peeked.take()) else {
                        unreachable!("head and body are taken together");
                    };
                    return Poll::Ready(if fits {
                        let body = ResponseBody::peeked(peeked);
                        Ok(Response::from_parts(head, body))
                    } else {
                        Err(this.check.refuse(&head, TypeRefusal::UnwantedType))
                    });
                }
            }
        }
    }
}

impl<F, B: Body> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("check", &self.check)
            .finish_non_exhaustive()
    }
}
