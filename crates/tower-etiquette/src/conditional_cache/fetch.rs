//! One request to the origin and what its answer does to the store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::cache_policy::{
    CachePolicy, CacheStatus, Exchange, Extent, Forward, Freshened, Selecting, StoredResponse,
    Storing, Trouble, ask_conditionally, ask_for_the_rest, ask_which, asks_about,
    asks_about_others, complete, has_validator, is_anonymous, is_for_anybody, join, part,
    part_length, which,
};
use etiquette_core::store::{BodyWriter, ResponseKey, ResponseStore, StoreFuture, Variant};
use etiquette_core::{Now, Refusal};
use http::header::{
    AGE, CONTENT_LENGTH, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use http::request::Parts;
use http::{Extensions, Method, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::answer::mark;
use super::around::Around;
use super::body::{Answer, ResponseBody};
use super::flights::{Failure, Landed, Own, Ticket};
use super::layer::Shared;
use super::scope::Scope;
use super::stream::{Keep, Storing as Work, Stream};
use crate::ready::ready;
use crate::{BoxError, Facts};

/// A request to the origin.
pub(super) struct Fetch<St> {
    pub(super) shared: Arc<Shared<St>>,
    pub(super) scope: Scope<St>,
    pub(super) key: ResponseKey,
    /// The caller's request.
    pub(super) parts: Parts,
    /// What is asked about, if anything is stored.
    pub(super) stored: Option<Variant>,
    pub(super) forward: Forward,
    /// What the stored response is good for when this fails.
    pub(super) trouble: Trouble,
    /// What is left of its life.
    pub(super) ttl: i64,
    /// The stored responses that a new one replaces.
    pub(super) replaced: Vec<Selecting>,
    pub(super) hints: Hints,
}

/// What is stored beside what could answer the request, and may spare the origin octets.
#[derive(Default)]
pub(super) struct Hints {
    /// A part of what the request asks for.
    pub(super) part: Option<Variant>,
    /// What other requests for the URL were answered.
    pub(super) others: Vec<Variant>,
}

/// When an answer was asked for and came.
pub(super) fn exchange(asked: Now, received: Now, extensions: &Extensions) -> Exchange {
    Exchange {
        asked,
        received,
        queued: extensions
            .get::<Facts>()
            .map_or(Duration::ZERO, Facts::waited),
    }
}

impl<St: ResponseStore> Fetch<St> {
    /// Asks the origin, once or, when its 304 is about something else, twice.
    ///
    /// # Cancel safety
    /// Dropping it drops the request; the store is as it was, or has the whole of a change.
    pub(super) async fn land<S, ReqBody, ResBody>(
        self,
        mut inner: S,
        body: ReqBody,
        ticket: Ticket,
    ) -> Landed
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        ReqBody: Body + Default + Send + 'static,
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let mut parts = self.parts.clone();
        let asks = self
            .stored
            .as_ref()
            .is_some_and(|stored| ask_conditionally(&mut parts.headers, stored.head.headers()));
        let held = self.ask_for_the_rest(&mut parts.headers).await;
        let others = self.hints.others.iter().map(|other| other.head.headers());
        let asks_which = !asks && held.is_none() && ask_which(&mut parts.headers, others);
        let asked = self.shared.clock.now();
        let response = match call(&mut inner, Request::from_parts(parts, body)).await {
            Ok(response) => response,
            Err(error) => return self.failed(error),
        };
        let exchange = exchange(asked, self.shared.clock.now(), response.extensions());
        let status = response.status();
        if self.trouble.covers(status)
            && let Some(variant) = &self.stored
        {
            return Landed::Stored {
                variant: variant.clone(),
                status: CacheStatus::StaleOnError {
                    status: Some(status),
                    ttl: self.ttl,
                },
                facts: facts(&response),
            };
        }
        if let Some((part, octets)) = held {
            if status == StatusCode::RANGE_NOT_SATISFIABLE {
                drop(response);
                return self.again(inner, ticket).await;
            }
            if status != StatusCode::PARTIAL_CONTENT {
                return self.arrived(response, &exchange, ticket).await;
            }
            return match self.completed(&part, &octets, response, &exchange) {
                Some(whole) => self.arrived(whole, &exchange, ticket).await,
                None => self.again(inner, ticket).await,
            };
        }
        if asks_which && status == StatusCode::NOT_MODIFIED {
            let facts = facts(&response);
            let (head, _) = response.into_parts();
            let chosen = self.chosen(&head.headers, facts, &exchange, &ticket);
            return match chosen.await {
                Some(landed) => landed,
                None => self.again(inner, ticket).await,
            };
        }
        let Some(variant) = self.stored.clone().filter(|_| asks) else {
            return self.arrived(response, &exchange, ticket).await;
        };
        if status != StatusCode::NOT_MODIFIED {
            return self.arrived(response, &exchange, ticket).await;
        }
        if let Some(head) = self.news(&variant.head, response.headers(), &exchange) {
            let facts = facts(&response);
            drop(response);
            return self.validated(&variant, head, facts).await;
        }
        // Not about the stored response, but an answer to the caller's own condition.
        let is_for_the_caller = asks_about(&self.parts.headers, response.headers());
        self.forget(&variant).await;
        if is_for_the_caller {
            return self.arrived(response, &exchange, ticket).await;
        }
        drop(response);
        self.again(inner, ticket).await
    }

    /// Asks for what a stored part lacks, if it is at hand. Gives the part and its octets.
    async fn ask_for_the_rest(&self, request: &mut HeaderMap) -> Option<(Variant, Bytes)> {
        let part = self.hints.part.as_ref().filter(|_| self.stored.is_none())?;
        let mut asked = request.clone();
        if !ask_for_the_rest(&mut asked, &part.head, part.length) {
            return None;
        }
        let octets = self.scope.body(&self.key, part).await?;
        (octets.len() as u64 == part.length).then(|| {
            *request = asked;
            (part.clone(), octets)
        })
    }

    /// The whole, of a stored part and the 206 that brings the rest; `None` where the two do not fit.
    fn completed<B>(
        &self,
        stored: &Variant,
        octets: &Bytes,
        response: Response<B>,
        exchange: &Exchange,
    ) -> Option<Response<Around<B>>> {
        let new = StoredResponse::new(
            response.status(),
            response.version(),
            response.headers(),
            stored.head.selecting().clone(),
            part(response.headers(), None)?,
            exchange,
            false,
        );
        let (joined, promised) = complete(&stored.head, stored.length, &new)?;
        let place = |position| {
            usize::try_from(position)
                .ok()
                .filter(|&p| p <= octets.len())
        };
        let before = octets.slice(..place(joined.before)?);
        let after = octets.slice(place(joined.after)?..);
        let mut headers = joined.head.headers().clone();
        if let Some(age) = response.headers().get(AGE) {
            headers.insert(AGE, age.clone());
        }
        let (mut parts, body) = response.into_parts();
        (parts.status, parts.headers) = (joined.head.status(), headers);
        let body = Around::new(before, body, promised, after);
        Some(Response::from_parts(parts, body))
    }

    /// The stored variant that a 304 selects for this request; it is kept for requests like this one too.
    async fn chosen(
        &self,
        answer: &HeaderMap,
        facts: Box<Facts>,
        exchange: &Exchange,
        ticket: &Ticket,
    ) -> Option<Landed> {
        let (policy, parts) = (&self.shared.policy, &self.parts);
        let heads = self.hints.others.iter().map(|other| other.head.headers());
        let other = &self.hints.others[which(answer, heads)?];
        let body = self.scope.body(&self.key, other).await?;
        let selecting = merged_selecting(policy, &parts.headers, &other.head, answer);
        let news = other
            .head
            .freshen(answer, selecting, exchange, policy.shared, false);
        let Freshened::Updated(head) = news else {
            return None;
        };
        let (method, uri, status) = (&parts.method, &parts.uri, head.status());
        let storing = policy.storing(method, uri, &parts.headers, status, head.headers());
        if let Storing::Store(_) = storing
            && !ticket.is_outdated()
        {
            let (head, body) = (StoredResponse::clone(&head), body.clone());
            self.scope.put(&self.key, head, body, &self.replaced).await;
        }
        Some(Landed::Stored {
            variant: Variant {
                head: Arc::new(*head),
                length: body.len() as u64,
                body: Some(body),
            },
            status: CacheStatus::Validated {
                forward: self.forward,
                collapsed: false,
            },
            facts,
        })
    }

    /// Takes a 304 as news about the stored response; `None` when it is about another one.
    fn news(
        &self,
        old: &StoredResponse,
        answer: &HeaderMap,
        exchange: &Exchange,
    ) -> Option<StoredResponse> {
        let policy = &self.shared.policy;
        let request = &self.parts.headers;
        let selecting = merged_selecting(policy, request, old, answer);
        let others = asks_about_others(request, old.headers());
        match old.freshen(answer, selecting, exchange, policy.shared, others) {
            Freshened::Updated(head) => Some(*head),
            _ => None,
        }
    }

    /// The stored response is right, under its new head.
    async fn validated(
        &self,
        variant: &Variant,
        head: StoredResponse,
        facts: Box<Facts>,
    ) -> Landed {
        let old = variant.head.selecting();
        let says = head.directives();
        // The answer is right whether the store takes note of it or not.
        if says.no_store && !says.must_understand {
            self.scope.remove(&self.key, old).await;
        } else {
            self.scope.update(&self.key, old, head.clone()).await;
        }
        Landed::Stored {
            variant: Variant {
                head: Arc::new(head),
                ..variant.clone()
            },
            status: CacheStatus::Validated {
                forward: self.forward,
                collapsed: false,
            },
            facts,
        }
    }

    /// Asks once more, without any condition.
    async fn again<S, ReqBody, ResBody>(mut self, mut inner: S, ticket: Ticket) -> Landed
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        ReqBody: Body + Default + Send + 'static,
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        self.stored = None;
        let mut parts = self.parts.clone();
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE, RANGE] {
            parts.headers.remove(condition);
        }
        let asked = self.shared.clock.now();
        match call(&mut inner, Request::from_parts(parts, ReqBody::default())).await {
            Ok(response) => {
                let exchange = exchange(asked, self.shared.clock.now(), response.extensions());
                self.arrived(response, &exchange, ticket).await
            }
            Err(error) => self.failed(error),
        }
    }

    async fn forget(&self, variant: &Variant) {
        self.scope.remove(&self.key, variant.head.selecting()).await;
    }

    /// There is no answer.
    fn failed(&self, error: BoxError) -> Landed {
        // A refusal of our own layers is no silence of the origin: its caller is to hear the reason.
        if let Some(variant) = &self.stored
            && self.trouble.on_silence
            && Refusal::find(&*error).is_none()
        {
            return Landed::Stored {
                variant: variant.clone(),
                status: CacheStatus::StaleOnError {
                    status: None,
                    ttl: self.ttl,
                },
                facts: Box::default(),
            };
        }
        Landed::Failed {
            others: Failure::of(&error),
            own: Own::new(error),
        }
    }

    /// An answer that is not about the stored response.
    pub(super) async fn arrived<ResBody>(
        &self,
        response: Response<ResBody>,
        exchange: &Exchange,
        ticket: Ticket,
    ) -> Landed
    where
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let status = response.status();
        let storing = if !ticket.is_outdated() {
            self.shared.policy.storing(
                &self.parts.method,
                &self.parts.uri,
                &self.parts.headers,
                status,
                response.headers(),
            )
        } else {
            Storing::Pass
        };
        let length = declared(&response);
        let max = self.shared.max_body;
        let bare = self.shared.validators_only && !self.scope.is_personal();
        let storing = match storing {
            Storing::Store(_) if bare && !may_be_bare(&response) => Storing::Pass,
            storing => storing,
        };
        let stored = matches!(storing, Storing::Store(_));
        let selecting = match storing {
            Storing::Store(selecting) => Some(selecting),
            _ => self.joinable(&response, &ticket),
        };
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
                part(response.headers(), None).unwrap_or(Extent::Whole),
                part_length(response.headers()),
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
            let kept = if bare { head.bare() } else { head };
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
                    true => head.clone().bare(),
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

/// How the body of `head` is stored. The ticket goes with it; the caller has the body whether it is stored or not.
struct Kept<St> {
    scope: Scope<St>,
    key: ResponseKey,
    head: StoredResponse,
    replaced: Vec<Selecting>,
    ticket: Arc<Ticket>,
    /// What is put together is no longer than this.
    max: usize,
}

impl<St: ResponseStore> Kept<St> {
    /// A part together with what is stored of the same version by now, if the two touch.
    async fn joined(&self, body: &Bytes) -> Option<(StoredResponse, Bytes)> {
        let stored = self.scope.kept(&self.key).await;
        let held = stored.iter().find(|variant| {
            let selecting = variant.head.selecting();
            selecting == self.head.selecting() || self.replaced.contains(selecting)
        })?;
        let joined = join(&held.head, held.length, &self.head, body.len() as u64)?;
        let length = joined.before + body.len() as u64 + (held.length - joined.after);
        if length > self.max as u64 {
            return None;
        }
        let octets = self.scope.body(&self.key, held).await?;
        let place = |position| {
            usize::try_from(position)
                .ok()
                .filter(|&p| p <= octets.len())
        };
        let (before, after) = (place(joined.before)?, place(joined.after)?);
        if octets.len() as u64 != held.length {
            return None;
        }
        let all = [&octets[..before], body, &octets[after..]].concat();
        Some((joined.head, all.into()))
    }
}

impl<St: ResponseStore> Keep for Kept<St> {
    fn whole(self: Box<Self>, body: Bytes) -> Work<()> {
        Box::pin(async move {
            let joined = match self.head.extent() {
                Extent::Part { .. } => self.joined(&body).await,
                _ => None,
            };
            if !self.ticket.is_outdated() {
                let (head, body) = match self.head.extent() {
                    Extent::Bare => (self.head, Bytes::new()),
                    _ => joined.unwrap_or((self.head, body)),
                };
                self.scope.put(&self.key, head, body, &self.replaced).await;
            }
        })
    }

    fn begin(&self) -> Option<Box<dyn BodyWriter>> {
        match self.head.extent() {
            Extent::Bare => Some(HeadOnly::begin(&self.scope, &self.key)),
            _ => self.scope.write(&self.key, None),
        }
    }

    fn finish(self: Box<Self>, writer: Box<dyn BodyWriter>) -> Work<()> {
        Box::pin(async move {
            if !self.ticket.is_outdated() {
                Scope::<St>::finish(writer, self.head, self.replaced).await;
            }
        })
    }
}

/// A body that is read along in while it comes, and stored nowhere. The ticket goes with it.
struct Shown {
    _ticket: Arc<Ticket>,
}

impl Keep for Shown {
    fn whole(self: Box<Self>, _: Bytes) -> Work<()> {
        Box::pin(std::future::ready(()))
    }

    fn begin(&self) -> Option<Box<dyn BodyWriter>> {
        None
    }

    fn finish(self: Box<Self>, _: Box<dyn BodyWriter>) -> Work<()> {
        Box::pin(std::future::ready(()))
    }
}

/// Whether the head of a response is worth to be kept without its body: a success that a 304 can confirm.
fn may_be_bare<B>(response: &Response<B>) -> bool {
    let status = response.status();
    status.is_success()
        && status != StatusCode::PARTIAL_CONTENT
        && has_validator(response.headers())
}

/// Takes a body of any length, keeps nothing of it, and stores the head at its end.
struct HeadOnly<St> {
    scope: Scope<St>,
    key: ResponseKey,
}

impl<St: ResponseStore> HeadOnly<St> {
    fn begin(scope: &Scope<St>, key: &ResponseKey) -> Box<dyn BodyWriter> {
        Box::new(Self {
            scope: scope.clone(),
            key: key.clone(),
        })
    }
}

impl<St: ResponseStore> BodyWriter for HeadOnly<St> {
    fn write(self: Box<Self>, _: Bytes) -> StoreFuture<'static, Box<dyn BodyWriter>> {
        Box::pin(std::future::ready(Ok(self as Box<dyn BodyWriter>)))
    }

    fn finish(
        self: Box<Self>,
        head: StoredResponse,
        replaced: Vec<Selecting>,
    ) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            let put = self.scope.put(&self.key, head, Bytes::new(), &replaced);
            put.await;
            Ok(())
        })
    }
}

/// One request, on the instance that was made ready for it.
async fn call<S, ReqBody, ResBody>(
    inner: &mut S,
    request: Request<ReqBody>,
) -> Result<Response<ResBody>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    ready(inner).await.map_err(Into::into)?;
    inner.call(request).await.map_err(Into::into)
}

fn facts<B>(response: &Response<B>) -> Box<Facts> {
    Box::new(Facts::of(response).cloned().unwrap_or_default())
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

/// The selecting fields of a response after a 304, which may bring another Vary.
fn merged_selecting(
    policy: &CachePolicy,
    request: &HeaderMap,
    old: &StoredResponse,
    answer: &HeaderMap,
) -> Selecting {
    let vary = if answer.contains_key(http::header::VARY) {
        answer
    } else {
        old.headers()
    };
    policy
        .selecting(request, vary)
        .unwrap_or_else(|| old.selecting().clone())
}
