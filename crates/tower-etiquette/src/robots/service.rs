use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use etiquette_core::vocabulary::identity::Identity;
use etiquette_core::vocabulary::identity::{NameRefusal, NameRefused, Verdict as NameVerdict};
use etiquette_core::vocabulary::refusal::NoOrigin;
use etiquette_core::{InvalidOrigin, Origin, PurposeKind, Refusal};
use http::{Request, Response, header};
use http_body::Body;
use tower_service::Service;

use super::gate::{Asking, Gate, Target};
use super::layer::{RobotsLayer, Shared};
use super::table::{Key, Tokens};
use crate::BoxError;
use crate::ext::{AtStart, Context, Facts, Rules, purpose};
use crate::macros::inner_accessors;
use crate::ready::ready;

/// A service that reads robots.txt before any page and obeys it. See the [module](super).
#[derive(Clone)]
pub struct Robots<S> {
    inner: S,
    shared: Arc<Shared>,
}

inner_accessors!(Robots);

impl<S> Robots<S> {
    pub(super) fn new(inner: S, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }

    /// The layer with its defaults.
    #[must_use]
    pub fn layer() -> RobotsLayer {
        RobotsLayer::new()
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Robots<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ReqBody: Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Data: Send,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<ResBody>;

    /// Always ready: the inner service is made ready when the request may start, so that nothing of it is held
    /// meanwhile.
    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        ResponseFuture {
            inner: Box::pin(call(self.inner.clone(), Arc::clone(&self.shared), request)),
        }
    }
}

async fn call<S, ReqBody, ResBody>(
    inner: S,
    shared: Arc<Shared>,
    mut request: Request<ReqBody>,
) -> Result<Response<ResBody>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ReqBody: Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Data: Send,
{
    let purpose = purpose(&request);
    let identity = named(&mut request, &shared, purpose)?;
    let origin = origin(&request, &shared)?;
    let context = Context::of(request.extensions_mut());
    let visit = context
        .visit
        .clone()
        .filter(|_| purpose == PurposeKind::UserFetch);
    // A layer of the same kind further out has asked already, or reads robots.txt itself (RFC 9309, 2.2.2: the file is
    // always allowed). An API used under a key has limits of its own.
    if context.reads_robots_txt
        || purpose == PurposeKind::Api
        || request.uri().path() == "/robots.txt"
    {
        let mut inner = inner;
        ready(&mut inner).await.map_err(Into::into)?;
        return inner.call(request).await.map_err(Into::into);
    }

    let tokens = Tokens {
        crawl: identity.token().clone(),
        user: identity.user_token().cloned(),
    };
    let key = Key { origin, tokens };
    let asking = Asking {
        slot: shared.table.slot(&key),
        shared: Arc::clone(&shared),
        target: Target::new(
            &key.origin,
            request
                .uri()
                .path_and_query()
                .map_or("/", |target| target.as_str()),
        ),
        key,
        identity,
        purpose,
        visit,
        progress: Default::default(),
    };
    let gate = Arc::new(Gate::new(asking, inner.clone()));
    let clock = &shared.settings.clock;
    let mut ready_inner = None;
    let mut inner = loop {
        match gate.at_start(clock.now()) {
            AtStart::Refuse(refusal) => return Err(refusal),
            AtStart::Renew => {
                // Nothing of the inner service is held while robots.txt is read through a clone of it.
                drop(ready_inner.take());
                gate.renew().await;
            }
            AtStart::Go { .. } => match ready_inner.take() {
                // The rules were asked after it became ready: nothing lies between this answer and the call.
                Some(inner) => break inner,
                None => {
                    let mut fresh = inner.clone();
                    ready(&mut fresh).await.map_err(Into::into)?;
                    ready_inner = Some(fresh);
                }
            },
        }
    };
    let rules = Arc::clone(&gate) as Arc<dyn Rules>;
    Context::of(request.extensions_mut()).rules = Some(rules);
    let mut response = inner.call(request).await.map_err(Into::into)?;
    if let Some(facts) = gate.facts() {
        Facts::edit(response.extensions_mut(), |all| all.robots = Some(facts));
    }
    Ok(response)
}

/// The identity of the request: the one that the user agent layer put there, or the layer's own if the request really
/// carries its name.
fn named<B>(
    request: &mut Request<B>,
    shared: &Shared,
    purpose: PurposeKind,
) -> Result<Identity, Refusal> {
    if let Some(identity) = &Context::of(request.extensions_mut()).identity {
        return Ok(identity.clone());
    }
    let origin = Origin::of(request.uri()).ok();
    let Some(identity) = shared.settings.identity.clone() else {
        return Err(NameRefused::new(origin, NameRefusal::NoIdentity, None).into());
    };
    let sent = request.headers().get(header::USER_AGENT);
    let verdict = identity.judge_for(purpose, sent.map_or(b"", |name| name.as_bytes()));
    if verdict != NameVerdict::Ok {
        let help = Arc::clone(identity.help());
        return Err(NameRefused::new(origin, NameRefusal::Judged(verdict), Some(help)).into());
    }
    Context::of(request.extensions_mut()).identity = Some(identity.clone());
    Ok(identity)
}

/// The origin whose rules hold: the one that is really asked, so a Host field must not name another.
fn origin<B>(request: &Request<B>, shared: &Shared) -> Result<Origin, Refusal> {
    let origin = match (Origin::of(request.uri()), &shared.settings.origin) {
        (Ok(origin), _) => origin,
        (Err(InvalidOrigin::Relative), Some(base)) => base.clone(),
        (Err(cause), _) => return Err(NoOrigin::new(cause).into()),
    };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    if hosts.any(|value| !origin.is_host(value.as_bytes())) {
        return Err(NoOrigin::new(InvalidOrigin::OtherHost).into());
    }
    Ok(origin)
}

/// The future of a [`Robots`] service.
///
/// # Cancel safety
/// Dropping it before the request has started sends nothing for it; a reading of robots.txt goes on if others wait for
/// it. Dropping it afterwards drops the inner service's future.
pub struct ResponseFuture<ResBody> {
    inner: Pin<Box<dyn Future<Output = Result<Response<ResBody>, BoxError>> + Send>>,
}

impl<ResBody> Future for ResponseFuture<ResBody> {
    type Output = Result<Response<ResBody>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

impl<ResBody> fmt::Debug for ResponseFuture<ResBody> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("robots::ResponseFuture")
            .finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Robots<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Robots")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
