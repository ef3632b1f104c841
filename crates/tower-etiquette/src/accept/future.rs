use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use etiquette_core::decide::accept::{self, Acceptability, SNIFF_LIMIT, TypeRefusal, TypeRefused};
use etiquette_core::{Identity, Refusal};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode, response};
use http_body::Body;
use pin_project_lite::pin_project;

use super::ResponseBody;
use super::body::Peeked;
use super::service::Asked;
use crate::BoxError;

pin_project! {
    /// The future of [`AcceptService`](super::AcceptService).
    ///
    /// **Cancel safety**: dropping it drops the inner future or, while the first bytes are awaited, the response.
    pub struct ResponseFuture<F, B: Body> {
        #[pin]
        state: State<F, B>,
        asked: Asked,
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
    pub(super) fn calling(future: F, asked: Asked) -> Self {
        Self {
            state: State::Calling { future },
            asked,
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
                    match this.asked.judge(&head) {
                        Judged::HandOn => {
                            let body = ResponseBody::untouched(body);
                            return Poll::Ready(Ok(Response::from_parts(head, body)));
                        }
                        Judged::Refuse(why) => {
                            return Poll::Ready(Err(this.asked.refuse(&head, why)));
                        }
                        Judged::Sniff => this.state.set(State::Sniffing {
                            head: Some(head),
                            peeked: Some(Peeked::new(body)),
                        }),
                    }
                }
                StateProj::Sniffing { head, peeked } => {
                    let waiting = peeked.as_mut().expect("polled after completion");
                    ready!(waiting.poll_peek(cx, SNIFF_LIMIT));
                    let fits = waiting.failed()
                        || accept::sniff(&this.asked.accept, &waiting.first(SNIFF_LIMIT));
                    let (Some(head), Some(peeked)) = (head.take(), peeked.take()) else {
                        unreachable!("head and body are taken together");
                    };
                    return Poll::Ready(if fits {
                        let body = ResponseBody::peeked(peeked);
                        Ok(Response::from_parts(head, body))
                    } else {
                        Err(this.asked.refuse(&head, TypeRefusal::UnwantedType))
                    });
                }
            }
        }
    }
}

/// What is done with an answer.
enum Judged {
    HandOn,
    Sniff,
    Refuse(TypeRefusal),
}

impl Asked {
    fn judge(&self, head: &response::Parts) -> Judged {
        if head.status == StatusCode::NOT_ACCEPTABLE {
            return Judged::Refuse(TypeRefusal::NotAcceptable);
        }
        let has_content = head.status.is_success() && head.status != StatusCode::NO_CONTENT;
        let content_type = content_type(&head.headers);
        if !self.judges || !has_content || is_multipart(head.status, content_type) {
            return Judged::HandOn;
        }
        match accept::judge(&self.accept, content_type) {
            Acceptability::Refuse => Judged::Refuse(TypeRefusal::UnwantedType),
            // The middle of a file does not show what it is, nor do compressed bytes.
            Acceptability::Sniff
                if head.status != StatusCode::PARTIAL_CONTENT && !is_coded(&head.headers) =>
            {
                Judged::Sniff
            }
            _ => Judged::HandOn,
        }
    }

    fn refuse(&self, head: &response::Parts, why: TypeRefusal) -> BoxError {
        Box::new(Refusal::Type(TypeRefused::new(
            self.origin(),
            why,
            self.accept.clone(),
            content_type(&head.headers).cloned(),
            self.identity.as_ref().map(Identity::help).cloned(),
        )))
    }
}

/// The Content-Type, unless there are several: then none of them can be believed.
fn content_type(headers: &HeaderMap) -> Option<&HeaderValue> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    lines.next().filter(|_| lines.next().is_none())
}

fn is_multipart(status: StatusCode, content_type: Option<&HeaderValue>) -> bool {
    status == StatusCode::PARTIAL_CONTENT
        && content_type.is_some_and(|value| {
            value
                .as_bytes()
                .to_ascii_lowercase()
                .starts_with(b"multipart/byteranges")
        })
}

fn is_coded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|coding| {
        !coding
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(b"identity")
    })
}

impl<F, B: Body> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}
