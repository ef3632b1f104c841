//! A request that may be answered from the store: what is asked of the origin, with whom, and what comes of it.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    CacheStatus, Exchange, Extent, Forward, Freshened, RequestDirectives, Selecting, StaleAllowed,
    StoredResponse, Wanted, is_anonymous, is_for_anybody, wanted,
};
use etiquette_core::store::{ResponseKey, ResponseStore, Variant};
use etiquette_core::vocabulary::refusal::NotStored;
use etiquette_core::{Now, Origin, Refusal};
use http::header::ETAG;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::answer::{Shape, answer, mark};
use super::background::Background;
use super::body::{Answer, ResponseBody};
use super::consider::{Step, ask_as_owner, consider};
use super::fetch::{Fetch, Hints, exchange};
use super::flights::{Entered, Landed};
use super::layer::Shared;
use super::pieces::{Pieces, StoredBody};
use super::scope::Scope;
use super::stream::{Reader, Stream};
use crate::events;
use crate::flight::Flight;
use crate::ready::ready;
use crate::{BoxError, Facts};

/// A request that may be answered from the store.
pub(super) async fn serve<S, St, ReqBody, ResBody>(
    site: Site<St>,
    background: &Background,
    inner: S,
    mut parts: Parts,
    body: ReqBody,
    mut found: Option<Vec<Variant>>,
) -> Result<Response<Answer>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    St: ResponseStore,
    ReqBody: Body + Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Error: Into<BoxError>,
{
    let mut alone = false;
    let mut body = Some(body);
    let mut unusable: Vec<Selecting> = Vec::new();
    loop {
        let mut variants = match found.take() {
            Some(variants) => variants,
            None => site.variants(&parts, &site.shared.clock.now()).await,
        };
        variants.retain(|variant| !unusable.contains(variant.head.selecting()));
        if site.callers_keep_bodies() {
            ask_as_owner(&mut parts, &variants);
        }
        let now = site.shared.clock.now();
        let (stored, forward, stale_allowed, ttl) =
            match consider(&site.shared, &parts, &variants, &now) {
                Step::Refuse => return Err(site.not_stored(&parts)),
                Step::Answer {
                    variant,
                    shape,
                    ttl,
                } => {
                    let Some(bytes) = site.bytes(variant, &shape).await else {
                        unusable.push(variant.head.selecting().clone());
                        continue;
                    };
                    let status = CacheStatus::Hit { ttl };
                    return Ok(answer(
                        variant,
                        &shape,
                        bytes,
                        status,
                        &now,
                        Facts::default(),
                    ));
                }
                Step::AnswerAndAsk {
                    variant,
                    shape,
                    ttl,
                    ..
                } if background.has_room() && !site.scope.is_personal() => {
                    let Some(bytes) = site.bytes(variant, &shape).await else {
                        unusable.push(variant.head.selecting().clone());
                        continue;
                    };
                    let status = CacheStatus::Hit { ttl };
                    let response = answer(variant, &shape, bytes, status, &now, Facts::default());
                    let variant = variant.clone();
                    site.ask_meanwhile::<S, ReqBody, ResBody>(background, inner, parts, variant);
                    return Ok(response);
                }
                Step::AnswerAndAsk {
                    variant,
                    stale_allowed,
                    ttl,
                    ..
                } => (Some(variant.clone()), Forward::Stale, stale_allowed, ttl),
                Step::Ask {
                    stored,
                    forward,
                    stale_allowed,
                    ttl,
                } => (stored.cloned(), forward, stale_allowed, ttl),
            };
        if parts.method == Method::HEAD {
            let request = Request::from_parts(parts, body.take().unwrap_or_default());
            return site.head(inner, request, forward, &variants).await;
        }
        // People share what they ask for as strangers, and only what nobody's session knows: a validator stays there.
        let personal = site.scope.is_personal();
        let shares = (!personal || (stored.is_none() && is_anonymous(&parts.headers)))
            && forward != Forward::Request
            && wanted(&parts.headers) == Wanted::Whole;
        let hints = match personal {
            // A validator that another request brought would tell the site that the two belong together.
            true => Hints::default(),
            false => site.hints(&parts, &variants, forward),
        };
        let replaced = variants
            .iter()
            .filter(|variant| variant.head.selecting().matches(&parts.headers))
            .map(|variant| variant.head.selecting().clone())
            .collect();
        let mut fetch = Some(Fetch {
            shared: Arc::clone(&site.shared),
            scope: site.scope.clone(),
            key: site.key.clone(),
            parts: parts.clone(),
            stored,
            forward,
            stale_allowed,
            ttl,
            replaced,
            hints,
        });
        let mut own_body = body.take();
        let entered = {
            let mut lead = |ticket| {
                let fetch = fetch.take().expect("a flight is made once");
                let body = own_body.take().unwrap_or_default();
                Flight::new(fetch.land(inner.clone(), body, ticket))
            };
            let flights = if personal {
                &site.shared.visits
            } else {
                &site.shared.flights
            };
            if shares {
                flights.enter(&site.key, alone, lead)
            } else {
                Entered::Lead(lead(flights.ticket(&site.key)))
            }
        };
        body = own_body;
        let landed = match entered {
            Entered::Lead(flight) => {
                let landed = flight.await?;
                match site.own(landed, &parts).await? {
                    Own::Answer(response) => return Ok(*response),
                    Own::BodyLost(selecting) => unusable.push(selecting),
                }
                None
            }
            Entered::JoinBody(stream) => site.join(&stream, &parts).await,
            Entered::Join(flight) => match flight.await? {
                Landed::Streaming { stream, .. } => site.join(&stream, &parts).await,
                Landed::Stored {
                    variant, status, ..
                } => site.share(variant, status, stale_allowed, &parts).await,
                Landed::Private(_) => None,
                Landed::Failed { others, .. } => return Err(others.into_error()),
            },
        };
        if let Some(response) = landed {
            return Ok(response);
        }
        // The store may have what others brought; if not, this caller asks for itself.
        alone = true;
    }
}

/// What one gets whose own request has landed.
enum Own {
    Answer(Box<Response<Answer>>),
    /// The stored response is right, but the store does not have its body any more.
    BodyLost(Selecting),
}

/// A URL and the stores that a request for it reads and writes.
pub(super) struct Site<St> {
    pub(super) shared: Arc<Shared<St>>,
    pub(super) scope: Scope<St>,
    pub(super) key: ResponseKey,
}

impl<St: ResponseStore> Site<St> {
    /// Whether only validators are stored: what a person asked for has no other place than its session.
    pub(super) fn callers_keep_bodies(&self) -> bool {
        self.shared.validators_only && !self.scope.is_personal()
    }

    pub(super) async fn variants(&self, parts: &Parts, now: &Now) -> Vec<Variant> {
        let wishes = RequestDirectives::of(&parts.headers);
        let policy = &self.shared.policy;
        self.scope.variants(&self.key, policy, &wishes, now).await
    }

    /// What of the stored variants may spare the origin bytes where none of them answers the request.
    fn hints(&self, parts: &Parts, variants: &[Variant], forward: Forward) -> Hints {
        let held = |variant: &&Variant| variant.length <= self.shared.max_body as u64;
        let part = variants.iter().filter(held).find(|variant| {
            matches!(variant.head.extent(), Extent::Part { .. })
                && variant.head.selecting().matches(&parts.headers)
        });
        let others = variants.iter().filter(held).filter(|variant| {
            // What one user was given is not told to the site beside another one's name.
            forward == Forward::VaryMiss
                && variant.head.extent() == Extent::Whole
                && variant.head.status().is_success()
                && !variant.head.selecting().holds_credentials()
        });
        Hints {
            part: part.cloned(),
            others: others.cloned().collect(),
        }
    }

    /// The answer of one whose own request has landed.
    async fn own(&self, landed: Landed, parts: &Parts) -> Result<Own, BoxError> {
        let answer = match landed {
            Landed::Stored {
                variant,
                status,
                facts,
            } => {
                let now = self.shared.clock.now();
                let shape = Shape::of(
                    &variant.head,
                    variant.length,
                    &parts.method,
                    &parts.headers,
                    &now,
                )
                .unwrap_or(match variant.head.extent() {
                    // Asked for in the caller's name.
                    Extent::Bare => Shape::NotModified,
                    _ => Shape::Whole,
                });
                let Some(bytes) = self.bytes(&variant, &shape).await else {
                    return Ok(Own::BodyLost(variant.head.selecting().clone()));
                };
                answer(&variant, &shape, bytes, status, &now, *facts)
            }
            Landed::Streaming { own, .. } | Landed::Private(own) => own
                .take()
                .ok_or_else(|| BoxError::from("the answer was taken"))?,
            Landed::Failed { own, others } => {
                return Err(own.take().unwrap_or_else(|| others.into_error()));
            }
        };
        Ok(Own::Answer(Box::new(answer)))
    }

    /// What the store has since another caller asked, if it may answer this request too.
    async fn share(
        &self,
        variant: Variant,
        status: CacheStatus,
        stale_allowed: StaleAllowed,
        parts: &Parts,
    ) -> Option<Response<Answer>> {
        let now = self.shared.clock.now();
        let wishes = RequestDirectives::of(&parts.headers);
        let (fits, status) = match status {
            CacheStatus::StaleOnError { status: None, .. } => (stale_allowed.on_silence, status),
            CacheStatus::StaleOnError {
                status: Some(code), ..
            } => (stale_allowed.covers(code), status),
            CacheStatus::Validated { forward, .. } => {
                let policy = &self.shared.policy;
                let status = CacheStatus::Validated {
                    forward,
                    collapsed: true,
                };
                (policy.shareable(&wishes, &variant.head, &now), status)
            }
            _ => (false, status),
        };
        if !fits || !variant.head.selecting().matches(&parts.headers) {
            return None;
        }
        let (method, headers) = (&parts.method, &parts.headers);
        let shape = Shape::of(&variant.head, variant.length, method, headers, &now)?;
        let bytes = self.bytes(&variant, &shape).await?;
        let facts = Facts::default();
        Some(answer(&variant, &shape, bytes, status, &now, facts))
    }

    /// Joins a body that another caller has asked for, if it may answer this request too.
    async fn join(&self, stream: &Arc<Stream>, parts: &Parts) -> Option<Response<Answer>> {
        let head = stream.head();
        let now = self.shared.clock.now();
        let wishes = RequestDirectives::of(&parts.headers);
        let personal = self.scope.is_personal();
        let fits = head.extent() == Extent::Whole
            && (!personal || is_for_anybody(head.headers()))
            && head.selecting().matches(&parts.headers)
            && self.shared.policy.shareable(&wishes, head, &now);
        if !fits {
            return None;
        }
        let reader: Reader = stream.join().await?;
        let now = self.shared.clock.now();
        let status = CacheStatus::Forwarded {
            forward: Forward::UriMiss,
            stored: !personal,
            collapsed: true,
        };
        let variant = Variant {
            head: Arc::clone(head),
            body: None,
            length: 0,
        };
        let shape = match Shape::of(head, 0, &parts.method, &parts.headers, &now) {
            Some(Shape::NotModified) => Shape::NotModified,
            _ => Shape::Whole,
        };
        let mut response = answer(
            &variant,
            &shape,
            StoredBody::Whole(Bytes::new()),
            status,
            &now,
            Facts::default(),
        );
        if let Shape::Whole = shape {
            *response.body_mut() = Answer::Shared(reader);
        }
        Some(response)
    }

    /// The stored body, as far as the shape needs it; `None` when the store does not have it any more.
    async fn bytes(&self, variant: &Variant, shape: &Shape) -> Option<StoredBody> {
        let held = variant.body.is_some() || variant.length <= self.shared.max_body as u64;
        let (from, length) = match shape.within(variant) {
            None => return Some(StoredBody::Whole(Bytes::new())),
            Some(_) if held => {
                let body = self.scope.body(&self.key, variant).await?;
                return Some(StoredBody::Whole(body));
            }
            Some(place) => place,
        };
        let reader = self.scope.read(&self.key, variant, from).await?;
        Some(StoredBody::Pieces(Pieces::open(reader, length).await?))
    }

    /// Asks the origin without letting the caller wait for it.
    fn ask_meanwhile<S, ReqBody, ResBody>(
        self,
        background: &Background,
        inner: S,
        mut parts: Parts,
        variant: Variant,
    ) where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        ReqBody: Body + Default + Send + 'static,
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        if self.shared.flights.is_under_way(&self.key) {
            return;
        }
        let replaced = vec![variant.head.selecting().clone()];
        parts.method = Method::GET;
        let mut fetch = Some(Fetch {
            shared: Arc::clone(&self.shared),
            scope: self.scope.clone(),
            key: self.key.clone(),
            parts,
            stored: Some(variant),
            forward: Forward::Stale,
            stale_allowed: StaleAllowed::default(),
            ttl: 0,
            replaced,
            hints: Hints::default(),
        });
        let entered = self.shared.flights.enter(&self.key, false, |ticket| {
            let fetch = fetch.take().expect("a flight is made once");
            Flight::new(fetch.land(inner, ReqBody::default(), ticket))
        });
        if let Entered::Lead(flight) = entered {
            background.start(async move {
                if let Ok(Landed::Streaming { own, stream }) = flight.await {
                    drop(stream);
                    let answer = own.take().map(Response::into_body);
                    if let Some(Answer::Shared(mut reader)) = answer {
                        let mut next = async || poll_fn(|cx| reader.poll_frame(cx)).await;
                        while let Some(Ok(_)) = next().await {}
                    }
                }
            });
        }
    }

    /// Forwards a HEAD and takes its answer as news about the stored response to GET (RFC 9111, 4.3.5).
    async fn head<S, ReqBody, ResBody>(
        &self,
        mut inner: S,
        request: Request<ReqBody>,
        forward: Forward,
        variants: &[Variant],
    ) -> Result<Response<Answer>, BoxError>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let asked_with: HeaderMap = request.headers().clone();
        ready(&mut inner).await.map_err(Into::into)?;
        let asked = self.shared.clock.now();
        let mut response = inner.call(request).await.map_err(Into::into)?;
        let exchange = exchange(asked, self.shared.clock.now(), response.extensions());
        let matching = variants
            .iter()
            .find(|variant| variant.head.selecting().matches(&asked_with));
        if let Some(variant) = matching {
            let news = self.news_of_head(&asked_with, &response, &variant.head, &exchange);
            let old = variant.head.selecting();
            match news {
                Some(Freshened::Updated(head)) => self.scope.update(&self.key, old, *head).await,
                Some(_) => self.scope.remove(&self.key, old).await,
                None => {}
            }
        }
        let status = CacheStatus::Forwarded {
            forward,
            stored: false,
            collapsed: false,
        };
        mark(&mut response, status);
        Facts::edit(response.extensions_mut(), |facts| {
            facts.cache_status = Some(status);
        });
        Ok(response.map(|body| Answer::Passing(Box::pin(ResponseBody::passing(body)))))
    }

    /// What the answer to a HEAD says about the stored response to a GET, if anything.
    fn news_of_head<B>(
        &self,
        request: &HeaderMap,
        answer: &Response<B>,
        old: &StoredResponse,
        exchange: &Exchange,
    ) -> Option<Freshened> {
        let policy = &self.shared.policy;
        let status = answer.status();
        let part_of_it = matches!(old.extent(), Extent::Part { .. })
            && status == StatusCode::OK
            && answer.headers().contains_key(ETAG)
            && answer.headers().get(ETAG) == old.headers().get(ETAG);
        if part_of_it {
            // Its length is that of the whole: no news about a part.
            return None;
        }
        if status == old.status() {
            let selecting = policy.selecting(request, answer.headers());
            return Some(selecting.map_or(Freshened::Outdated, |selecting| {
                old.freshen_by_head(answer.headers(), selecting, exchange, policy.shared)
            }));
        }
        let new = status.is_success() || matches!(status.as_u16(), 404 | 410);
        new.then_some(Freshened::Outdated)
    }

    fn not_stored(&self, parts: &Parts) -> BoxError {
        events::cached(parts.uri.host().unwrap_or_default(), None);
        match Origin::of(&parts.uri) {
            Ok(origin) => Box::new(Refusal::from(NotStored::new(origin))),
            Err(_) => BoxError::from("nothing is stored for a request that has no origin"),
        }
    }
}
