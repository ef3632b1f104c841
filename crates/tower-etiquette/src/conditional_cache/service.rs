//! [`ConditionalCache`]: what the store answers at once, what it may answer later, and what only passes.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use etiquette_core::decide::cache_policy::{
    CacheStatus, Exchange, Forward, StaleAllowed, Storing, invalidates, is_for_the_origin,
};
use etiquette_core::store::{ResponseKey, ResponseStore};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body;
use tower_service::Service;

use super::answer::answer;
use super::background::Background;
use super::body::ResponseBody;
use super::consider::{Step, ask_as_owner, consider};
use super::fetch::{Fetch, Hints, exchange};
use super::flights::{Landed, Ticket};
use super::future::ResponseFuture;
use super::layer::{ConditionalCacheLayer, Shared};
use super::memory::MemoryStore;
use super::pieces::StoredBody;
use super::scope::Scope;
use super::serve::{Site, serve};
use crate::context::Context as RequestContext;
use crate::events;
use crate::ready::ready;
use crate::{BoxError, Facts};

/// The service of [`ConditionalCacheLayer`].
pub struct ConditionalCache<S, St = MemoryStore> {
    pub(super) inner: S,
    pub(super) shared: Arc<Shared<St>>,
    pub(super) background: Arc<Background>,
}

impl<S> ConditionalCache<S> {
    /// A private cache in memory around `inner`.
    #[must_use]
    pub fn new(inner: S) -> Self {
        tower_layer::Layer::layer(&ConditionalCacheLayer::new(), inner)
    }
}

impl<S, St> ConditionalCache<S, St> {
    /// The inner service.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, to change it.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Gives the inner service back.
    #[must_use]
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Clone, St> Clone for ConditionalCache<S, St> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
            background: Arc::clone(&self.background),
        }
    }
}

impl<S: fmt::Debug, St: fmt::Debug> fmt::Debug for ConditionalCache<S, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConditionalCache")
            .field("inner", &self.inner)
            .field("policy", &self.shared.policy)
            .field("store", &self.shared.store)
            .finish_non_exhaustive()
    }
}

impl<S, St, ReqBody, ResBody> Service<Request<ReqBody>> for ConditionalCache<S, St>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    St: ResponseStore,
    ReqBody: Body + Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<ResBody>;

    /// Always ready: most requests never reach the inner service. One that does waits for it then.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> ResponseFuture<ResBody> {
        let Some(key) = key_of_answerable(&request) else {
            return ResponseFuture::waiting(forward(
                Arc::clone(&self.shared),
                self.inner.clone(),
                request,
            ));
        };
        let (mut parts, body) = request.into_parts();
        let site = Site {
            scope: Scope::of(&parts, &self.shared.store),
            shared: Arc::clone(&self.shared),
            key,
        };
        // Most answers are in memory: they need neither a task switch nor a box.
        let now = self.shared.clock.now();
        let found = {
            let lookup = pin!(site.variants(&parts, &now));
            match lookup.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(found) => Some(found),
                Poll::Pending => None,
            }
        };
        if let Some(variants) = &found
            && site.callers_keep_bodies()
        {
            ask_as_owner(&mut parts, variants);
        }
        if let Some(variants) = &found
            && let Step::Answer {
                variant,
                shape,
                ttl,
            } = consider(&self.shared, &parts, variants, &now)
            && (variant.body.is_some() || !shape.needs_body())
        {
            let status = CacheStatus::Hit { ttl };
            let bytes = StoredBody::Whole(variant.body.clone().unwrap_or_default());
            let response = answer(variant, &shape, bytes, status, &now, Facts::default());
            tell(parts.uri.host(), Some(status));
            return ResponseFuture::ready(response.map(ResponseBody::answer));
        }
        let background = Arc::clone(&self.background);
        let inner = self.inner.clone();
        ResponseFuture::waiting(async move {
            let host = parts
                .uri
                .host()
                .filter(|_| events::ENABLED)
                .map(str::to_owned);
            let response = serve(site, &background, inner, parts, body, found).await?;
            let status = Facts::of(&response).and_then(Facts::cache_status);
            tell(host.as_deref(), status);
            Ok(response.map(ResponseBody::answer))
        })
    }
}

fn tell(host: Option<&str>, status: Option<CacheStatus>) {
    if let Some(status) = status {
        events::cached(host.unwrap_or_default(), Some(status));
    }
}

/// The key under which a request may be answered from the store; `None` when it only passes.
fn key_of_answerable<B: Body>(request: &Request<B>) -> Option<ResponseKey> {
    let reads_robots = request
        .extensions()
        .get::<RequestContext>()
        .is_some_and(|context| context.fetches_robots_txt);
    let method = request.method();
    let fits = (*method == Method::GET || *method == Method::HEAD)
        && !reads_robots
        && request.body().size_hint().exact() == Some(0)
        && !is_for_the_origin(request.headers());
    fits.then(|| ResponseKey::of(request.uri())).flatten()
}

/// Passes a request on, forgets what its answer invalidates, and stores the answer to a POST that is what a GET of the same
/// URL would give (RFC 9110, 9.3.3).
async fn forward<S, St, ReqBody, ResBody>(
    shared: Arc<Shared<St>>,
    mut inner: S,
    request: Request<ReqBody>,
) -> Result<Response<ResponseBody<ResBody>>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    St: ResponseStore,
    ResBody: Body + Send + 'static,
    ResBody::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let posted = Posted::of(&shared, &parts);
    let request = Request::from_parts(parts, body);
    ready(&mut inner).await.map_err(Into::into)?;
    let asked = shared.clock.now();
    let response = inner.call(request).await.map_err(Into::into)?;
    let exchange = exchange(asked, shared.clock.now(), response.extensions());
    let posted = posted.filter(|posted| posted.brings(&shared, &response));
    for uri in invalidates(&method, &uri, response.status(), response.headers()) {
        if let Some(key) = ResponseKey::of(&uri) {
            shared.flights.outdate(&key);
            shared.visits.outdate(&key);
            Scope::forget_all(&*shared.store, &key).await;
        }
    }
    match posted {
        Some(posted) => posted.store(shared, response, &exchange).await,
        None => Ok(response.map(ResponseBody::passing)),
    }
}

/// A POST whose answer may be stored.
struct Posted<St> {
    scope: Scope<St>,
    key: ResponseKey,
    parts: Parts,
    before: Ticket,
}

impl<St: ResponseStore> Posted<St> {
    fn of(shared: &Arc<Shared<St>>, parts: &Parts) -> Option<Self> {
        if parts.method != Method::POST {
            return None;
        }
        let key = ResponseKey::of(&parts.uri)?;
        let scope = Scope::of(parts, &shared.store);
        (!scope.is_personal()).then(|| Self {
            scope,
            before: shared.flights.ticket(&key),
            key,
            parts: parts.clone(),
        })
    }

    /// Whether the answer is stored: the URL has not been changed by another request meanwhile.
    fn brings<B>(&self, shared: &Shared<St>, response: &Response<B>) -> bool {
        let parts = &self.parts;
        let storing = shared.policy.storing(
            &parts.method,
            &parts.uri,
            &parts.headers,
            response.status(),
            response.headers(),
        );
        matches!(storing, Storing::Store(_)) && !self.before.is_outdated()
    }

    async fn store<ResBody>(
        self,
        shared: Arc<Shared<St>>,
        response: Response<ResBody>,
        exchange: &Exchange,
    ) -> Result<Response<ResponseBody<ResBody>>, BoxError>
    where
        ResBody: Body + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let ticket = shared.flights.ticket(&self.key);
        let fetch = Fetch {
            shared,
            scope: self.scope,
            key: self.key,
            parts: self.parts,
            stored: None,
            forward: Forward::Method,
            stale_allowed: StaleAllowed::default(),
            ttl: 0,
            replaced: Vec::new(),
            hints: Hints::default(),
        };
        let own = match fetch.arrived(response, exchange, ticket).await {
            Landed::Streaming { own, .. } | Landed::Private(own) => own.take(),
            _ => None,
        };
        let answer = own.ok_or_else(|| BoxError::from("the answer was taken"))?;
        Ok(answer.map(ResponseBody::answer))
    }
}
