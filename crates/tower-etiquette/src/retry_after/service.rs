use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context as TaskContext, Poll};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::layer::RetryAfterConfig;
use super::replay::{EmptyBodies, ReplayBody};
use super::retry_loop::{OuterBudget, RetryLoop};
use super::{ResponseFuture, RetryAfterLayer};
use crate::context::{Context, Handshake};
use crate::macros::{inner_accessors, service_constructors};
use crate::{BoxError, Hosts};

/// A service that obeys Retry-After; see the [module](crate::retry_after).
#[derive(Clone, Debug)]
pub struct RetryAfter<S, C = EmptyBodies> {
    inner: S,
    config: Arc<RetryAfterConfig>,
    bodies: C,
    /// Shared by all clones: they have the same layers below.
    handshake: Arc<Handshake>,
}

inner_accessors!(RetryAfter<S, C>);

impl<S, C: Clone> Layer<S> for RetryAfterLayer<C> {
    type Service = RetryAfter<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        let handshake = Handshake {
            hosts: self.config.hosts.id(),
            budget_below: AtomicBool::new(false),
        };
        RetryAfter {
            inner,
            config: Arc::new(self.config.clone()),
            bodies: self.bodies.clone(),
            handshake: Arc::new(handshake),
        }
    }
}

service_constructors!(RetryAfter, RetryAfterLayer, hosts: Hosts);

impl<S, C, ReqBody, ResBody> Service<Request<ReqBody>> for RetryAfter<S, C>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    C: ReplayBody<ReqBody> + Clone + Send + 'static,
    ReqBody: Send + 'static,
    ResBody: Send + 'static,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<ResBody>;

    /// Always ready: the inner service is asked when the host's pause is over, so that one paused host does not occupy
    /// what other hosts need.
    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let context = Context::of(request.extensions_mut());
        let outer_budget = if context.held_by.contains(self.config.hosts.id()) {
            OuterBudget::SameHosts
        } else if !context.held_by.is_empty() {
            OuterBudget::OtherHosts
        } else {
            context.handshake = Some(Arc::clone(&self.handshake));
            OuterBudget::None
        };
        let (config, handshake) = (Arc::clone(&self.config), Arc::clone(&self.handshake));
        let (inner, bodies) = (self.inner.clone(), self.bodies.clone());
        ResponseFuture::new(async move {
            let retry_loop = RetryLoop::new(config, handshake, outer_budget, &mut request)?;
            retry_loop.run(inner, bodies, request).await
        })
    }
}
