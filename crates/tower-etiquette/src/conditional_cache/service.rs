//! [`ConditionalCache`]: a request's way, from the lookup to the response.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use etiquette_core::decide::cache_policy::is_for_the_origin;
use etiquette_core::store::{ResponseKey, ResponseStore, Variant};
use etiquette_core::vocabulary::refusal::NotStored;
use etiquette_core::{Origin, Refusal};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::body::ResponseBody;
use super::config::CacheConfig;
use super::context::CacheContext;
use super::future::ResponseFuture;
use super::layer::ConditionalCacheLayer;
use super::lookup::Plan;
use super::origin::{
    Fetch, InnerService, Upstream, forward, forward_head, revalidate_in_background,
};
use super::store::MemoryStore;
use crate::context::Context as RequestContext;
use crate::events;
use crate::macros::{inner_accessors, service_constructors};
use crate::{BoxError, Facts};

/// The service of [`ConditionalCacheLayer`].
#[derive(Debug)]
pub struct ConditionalCache<S, St = MemoryStore> {
    pub(super) inner: S,
    pub(super) config: Arc<CacheConfig<St>>,
}

inner_accessors!(ConditionalCache<S, St>);

impl<S, St> Layer<S> for ConditionalCacheLayer<St> {
    type Service = ConditionalCache<S, St>;

    fn layer(&self, inner: S) -> Self::Service {
        let config = Arc::clone(&self.config);
        ConditionalCache { inner, config }
    }
}

service_constructors!(ConditionalCache, ConditionalCacheLayer);

impl<S: Clone, St> Clone for ConditionalCache<S, St> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
        }
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
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = ResponseFuture;

    /// Always ready: most requests never reach the inner service. One that does waits for it then.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> ResponseFuture {
        let cache = &self.config.cache;
        let key = key_of(&request);
        let (mut parts, body) = request.into_parts();
        let upstream = || InnerService {
            service: self.inner.clone(),
            body: Some(body),
            clock: Arc::clone(&cache.settings.clock),
        };
        let Some(key) = key else {
            return ResponseFuture::waiting(forward(Arc::clone(cache), upstream(), parts));
        };
        let context = CacheContext::new(cache, &parts, key);
        let variants = match look_in_memory(&context, &mut parts) {
            Ok(response) => {
                tell(parts.uri.host(), &response);
                return ResponseFuture::ready(response);
            }
            Err(variants) => variants,
        };
        let (config, upstream) = (Arc::clone(&self.config), upstream());
        ResponseFuture::waiting(async move {
            let host = events::ENABLED
                .then(|| parts.uri.host().map(str::to_owned))
                .flatten();
            let response = serve(&config, Arc::new(context), upstream, parts, variants).await?;
            tell(host.as_deref(), &response);
            Ok(response)
        })
    }
}

/// The key under which a request may be served from the store; `None` when it is only forwarded.
fn key_of<B: Body>(request: &Request<B>) -> Option<ResponseKey> {
    let context = request.extensions().get::<RequestContext>();
    let method = request.method();
    let fits = (*method == Method::GET || *method == Method::HEAD)
        && !context.is_some_and(|context| context.fetches_robots_txt)
        && request.body().size_hint().exact() == Some(0)
        && !is_for_the_origin(request.headers());
    fits.then(|| ResponseKey::of(request.uri())).flatten()
}

/// The response to a request that a store in memory satisfies, as most do: they need neither a task switch nor a box.
/// Otherwise what is stored, if the store said so at once.
fn look_in_memory<St: ResponseStore>(
    context: &CacheContext<St>,
    parts: &mut Parts,
) -> Result<Response<ResponseBody>, Option<Vec<Variant>>> {
    let now = context.now();
    let variants = {
        let lookup = pin!(context.lookup(parts, &now));
        match lookup.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(variants) => variants,
            Poll::Pending => return Err(None),
        }
    };
    if let Plan::Reuse(selected) = context.select(parts, &variants, &now)
        && selected.revalidate.is_none()
        && let Some(body) = selected.body_in_memory()
    {
        return Ok(selected.respond(body, &now));
    }
    Err(Some(variants))
}

/// Satisfies a request from the store or from the origin (RFC 9111, 4).
async fn serve<St: ResponseStore>(
    config: &CacheConfig<St>,
    context: Arc<CacheContext<St>>,
    mut upstream: impl Upstream,
    mut parts: Parts,
    mut found: Option<Vec<Variant>>,
) -> Result<Response<ResponseBody>, BoxError> {
    let background = &config.background;
    // Stored responses whose bodies the store does not have any more.
    let mut lost = Vec::new();
    let mut alone = false;
    loop {
        let mut variants = match found.take() {
            Some(variants) => variants,
            None => context.lookup(&parts, &context.now()).await,
        };
        variants.retain(|variant| !lost.contains(variant.head.selecting()));
        let now = context.now();
        let forwarding = match context.select(&mut parts, &variants, &now) {
            Plan::GatewayTimeout => return Err(not_stored(&parts)),
            Plan::Forward(forwarding) => forwarding,
            Plan::Reuse(selected)
                if selected.revalidate.is_some()
                    && (context.partition.is_personal() || !background.has_room()) =>
            {
                selected.validate()
            }
            Plan::Reuse(selected) => {
                let Some(response) = context.reuse(&selected, &now).await else {
                    lost.push(selected.variant.head.selecting().clone());
                    continue;
                };
                if selected.revalidate.is_some() {
                    let variant = selected.variant.clone();
                    revalidate_in_background(&context, background, upstream, parts, variant);
                }
                return Ok(response);
            }
        };
        if parts.method == Method::HEAD {
            return forward_head(&context, upstream, parts, forwarding.reason, &variants).await;
        }
        let fetch = Fetch::new(Arc::clone(&context), parts.clone(), forwarding, &variants);
        let response = context.collapse(fetch, &mut upstream, &parts, alone, &mut lost);
        if let Some(response) = response.await? {
            return Ok(response);
        }
        // The store may have what others brought; if not, this caller makes a request of its own.
        alone = true;
    }
}

fn not_stored(parts: &Parts) -> BoxError {
    events::cached(parts.uri.host().unwrap_or_default(), None);
    match Origin::of(&parts.uri) {
        Ok(origin) => Box::new(Refusal::from(NotStored::new(origin))),
        Err(_) => BoxError::from("nothing is stored for a request that has no origin"),
    }
}

fn tell(host: Option<&str>, response: &Response<ResponseBody>) {
    if events::ENABLED {
        let status = Facts::of(response).and_then(Facts::cache_status);
        events::cached(host.unwrap_or_default(), status);
    }
}
