//! An answer that is not about what is stored: kept, read along in by others, or its caller's alone.

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    CacheStatus, ContentRange, Extent, ResponseTimes, Selecting, StoredResponse, is_anonymous,
    is_for_anybody,
};
use etiquette_core::store::ResponseStore;
use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use http_body::Body;

use super::answer::mark;
use super::body::{Answer, ResponseBody};
use super::fetch::Fetch;
use super::flights::{Landed, Own, Ticket};
use super::head_only::{HeadOnly, may_be_bare};
use super::keep::{Kept, Shown};
use super::stream::{Keep, Stream};
use crate::{BoxError, Facts};

impl<St: ResponseStore> Fetch<St> {
    /// An answer that is not about the stored response.
    pub(super) async fn arrived<ResBody>(
        &self,
        response: Response<ResBody>,
        exchange: &ResponseTimes,
        ticket: Ticket,
    ) -> Landed
    where
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let status = response.status();
        let storing = if !ticket.is_outdated() {
            self.shared.policy.may_store(
                &self.parts.method,
                &self.parts.uri,
                &self.parts.headers,
                status,
                response.headers(),
            )
        } else {
            None
        };
        let length = declared(&response);
        let max = self.shared.max_body;
        let bare = self.shared.validators_only && !self.scope.is_personal();
        let storing = storing.filter(|_| !bare || may_be_bare(&response));
        let stored = storing.is_some();
        let selecting = storing.or_else(|| self.joinable(&response, &ticket));
        if !stored {
            self.supersede(status).await;
        }
        let Some(selecting) = selecting else {
            return Landed::Private(Own::new(self.passed(response)));
        };
        let fits = length.is_none_or(|length| length <= max as u64);
        let writer = match fits {
            true => None,
            false if bare => Some(HeadOnly::begin(&self.scope, &self.key)),
            false => self.scope.write(&self.key, length),
        };
        if !fits && writer.is_none() {
            if stored {
                self.supersede(status).await;
            }
            return Landed::Private(Own::new(self.passed(response)));
        }
        let (extent, promised) = match status {
            StatusCode::PARTIAL_CONTENT => (
                ContentRange::of(response.headers()).map_or(Extent::Whole, |range| range.extent()),
                ContentRange::of(response.headers()).map(|range| range.length()),
            ),
            _ => (Extent::Whole, None),
        };
        let head = StoredResponse::new(
            status,
            response.version(),
            response.headers(),
            selecting,
            extent,
            exchange,
            self.shared.policy.shared,
        );
        let forwarded = CacheStatus::Forwarded {
            forward: self.forward,
            stored,
            collapsed: false,
        };
        if response.body().is_end_stream() {
            if !stored || length.is_some_and(|length| length != 0) {
                return Landed::Private(Own::new(self.passed(response)));
            }
            // Stored or not, the answer is the caller's.
            let kept = if bare { head.head_only() } else { head };
            self.scope
                .put(&self.key, kept, Bytes::new(), &self.replaced)
                .await;
            return Landed::Private(Own::new(self.finished(
                response.map(|body| Answer::Passing(Box::pin(ResponseBody::passing(body)))),
                forwarded,
            )));
        }
        let (parts, body) = response.into_parts();
        let ticket = Arc::new(ticket);
        let keep: Box<dyn Keep> = if stored {
            Box::new(Kept {
                scope: self.scope.clone(),
                key: self.key.clone(),
                head: match bare {
                    true => head.clone().head_only(),
                    false => head.clone(),
                },
                replaced: self.replaced.clone(),
                ticket: Arc::clone(&ticket),
                max: self.shared.max_body,
            })
        } else {
            Box::new(Shown {
                _ticket: Arc::clone(&ticket),
            })
        };
        let (stream, reader) = Stream::new(
            Arc::new(head),
            length,
            promised,
            Box::pin(ResponseBody::passing(body)),
            max,
            keep,
            writer,
        );
        ticket.streams(&stream);
        let own = Response::from_parts(parts, Answer::Shared(reader));
        Landed::Streaming {
            stream,
            own: Own::new(self.finished(own, forwarded)),
        }
    }

    /// Whether other people may read along in an answer that is not worth storing.
    fn joinable<B>(&self, response: &Response<B>, ticket: &Ticket) -> Option<Selecting> {
        let status = response.status();
        let fits = self.scope.is_personal()
            && self.parts.method == Method::GET
            && !ticket.is_outdated()
            // Whoever is to come back later is told so by the host's pause, with the time.
            && !matches!(
                status,
                StatusCode::NOT_MODIFIED
                    | StatusCode::PARTIAL_CONTENT
                    | StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::SERVICE_UNAVAILABLE
            )
            && is_anonymous(&self.parts.headers)
            && is_for_anybody(response.headers());
        let policy = &self.shared.policy;
        fits.then(|| policy.selecting(&self.parts.headers, response.headers()))
            .flatten()
    }

    /// The origin has told something new that is not stored: what is stored is not right any more.
    async fn supersede(&self, status: StatusCode) {
        let new = status.is_success()
            || (status.is_redirection() && status != StatusCode::NOT_MODIFIED)
            || matches!(status.as_u16(), 404 | 410);
        if let (true, Some(variant)) = (new, &self.stored) {
            self.forget(variant).await;
        }
    }

    fn passed<ResBody>(&self, response: Response<ResBody>) -> Response<Answer>
    where
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let status = CacheStatus::Forwarded {
            forward: self.forward,
            stored: false,
            collapsed: false,
        };
        self.finished(
            response.map(|body| Answer::Passing(Box::pin(ResponseBody::passing(body)))),
            status,
        )
    }

    fn finished(&self, mut response: Response<Answer>, status: CacheStatus) -> Response<Answer> {
        mark(&mut response, status);
        Facts::edit(response.extensions_mut(), |facts| {
            facts.cache_status = Some(status);
        });
        response
    }
}

/// The length that the response promises for its body.
fn declared<B: Body>(response: &Response<B>) -> Option<u64> {
    let stated = response
        .headers()
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    stated.or_else(|| response.body().size_hint().exact())
}
