use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use etiquette_core::vocabulary::identity::{NameRefusal, NameRefused, Verdict};
use etiquette_core::vocabulary::refusal::NoOrigin;
use etiquette_core::{Clock, Identity, InvalidOrigin, Origin, PurposeKind, Refusal};
use http::{Request, Response, header};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::check::RobotsCheck;
use super::layer::RobotsConfig;
use super::request::RobotsRequest;
use super::{ResponseFuture, RobotsLayer};
use crate::BoxError;
use crate::context::{Context, purpose};
use crate::facts::Facts;
use crate::macros::{inner_accessors, service_constructors};
use crate::ready::{ready, send};
use crate::start_check::{StartCheck, StartDecision};

/// A service that fetches robots.txt before any page and obeys it. See the [module](super).
#[derive(Clone, Debug)]
pub struct Robots<S> {
    inner: S,
    config: Arc<RobotsConfig>,
}

inner_accessors!(Robots);

impl<S> Layer<S> for RobotsLayer {
    type Service = Robots<S>;

    fn layer(&self, inner: S) -> Self::Service {
        let config = Arc::new(self.config.clone());
        Robots { inner, config }
    }
}

service_constructors!(Robots, RobotsLayer);

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

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let mut inner = self.inner.clone();
        let config = Arc::clone(&self.config);
        ResponseFuture::new(async move {
            let purpose = purpose(&request);
            let identity = identify(&mut request, &config, purpose)?;
            let origin = origin_of(&request, &config)?;
            if needs_no_check(&mut request, purpose) {
                return send(&mut inner, request).await;
            }
            let clock = Arc::clone(&config.clock);
            let visit = Context::of(request.extensions_mut()).visit.clone();
            let checked = RobotsRequest::new(config, origin, identity, purpose, visit);
            let target = request.uri().path_and_query();
            let target = target.map_or("/", |target| target.as_str());
            let check = Arc::new(RobotsCheck::new(checked, target, inner.clone()));
            let mut inner = ready_when_allowed(&*check, &*clock, inner).await?;
            let start_check = Arc::clone(&check) as Arc<dyn StartCheck>;
            Context::of(request.extensions_mut()).start_check = Some(start_check);
            let mut response = inner.call(request).await.map_err(Into::into)?;
            if let Some(facts) = check.facts() {
                Facts::edit(response.extensions_mut(), |all| all.robots = Some(facts));
            }
            Ok(response)
        })
    }
}

/// A layer of the same kind further out has checked it already, or fetches robots.txt itself (RFC 9309, 2.2.2: the file
/// is always allowed). An API used under a key has limits of its own.
fn needs_no_check<B>(request: &mut Request<B>, purpose: PurposeKind) -> bool {
    Context::of(request.extensions_mut()).fetches_robots_txt
        || purpose == PurposeKind::Api
        || request.uri().path() == "/robots.txt"
}

/// A clone of `inner` that is ready, as soon as the rules allow the request.
async fn ready_when_allowed<S, R>(
    check: &dyn StartCheck,
    clock: &dyn Clock,
    inner: S,
) -> Result<S, BoxError>
where
    S: Service<R> + Clone,
    S::Error: Into<BoxError>,
{
    let mut ready_inner = None;
    loop {
        match check.check(clock.now()) {
            StartDecision::Refuse(refusal) => return Err(refusal),
            StartDecision::Refresh => {
                // Nothing of the inner service is held while robots.txt is fetched through a clone of it.
                drop(ready_inner.take());
                check.refresh().await;
            }
            StartDecision::Start { .. } => match ready_inner.take() {
                // The rules were asked after it became ready: nothing lies between this decision and the call.
                Some(inner) => return Ok(inner),
                None => {
                    let mut fresh = inner.clone();
                    ready(&mut fresh).await.map_err(Into::into)?;
                    ready_inner = Some(fresh);
                }
            },
        }
    }
}

/// The identity of the request: the one that the user agent layer put there, or the layer's own if the request really
/// carries its name.
fn identify<B>(
    request: &mut Request<B>,
    config: &RobotsConfig,
    purpose: PurposeKind,
) -> Result<Identity, Refusal> {
    if let Some(identity) = &Context::of(request.extensions_mut()).identity {
        return Ok(identity.clone());
    }
    let origin = Origin::of(request.uri()).ok();
    let Some(identity) = config.identity.clone() else {
        return Err(NameRefused::new(origin, NameRefusal::NoIdentity, None).into());
    };
    let sent = request.headers().get(header::USER_AGENT);
    let verdict = identity.judge_for(purpose, sent.map_or(b"", |name| name.as_bytes()));
    if verdict != Verdict::Ok {
        let help = Arc::clone(identity.help());
        return Err(NameRefused::new(origin, NameRefusal::Judged(verdict), Some(help)).into());
    }
    Context::of(request.extensions_mut()).identity = Some(identity.clone());
    Ok(identity)
}

/// The origin whose rules hold: the one that is really asked, so a Host field must not name another.
fn origin_of<B>(request: &Request<B>, config: &RobotsConfig) -> Result<Origin, Refusal> {
    let origin = match (Origin::of(request.uri()), &config.origin) {
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
