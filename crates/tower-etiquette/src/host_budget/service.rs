use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll};

use etiquette_core::PurposeKind;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::layer::HostBudgetConfig;
use super::{HostBudgetLayer, LeaseLost, ResponseBody, ResponseFuture};
use crate::context::{AtAddress, Context, api, purpose};
use crate::facts::Facts;
use crate::hosts::{AcquireOptions, Hosts, Permit, admit, origin_of};
use crate::macros::{inner_accessors, service_constructors};
use crate::ready::ready;
use crate::{BoxError, Refusal};

/// A service whose requests keep a budget for each host; see the [module](crate::host_budget).
#[derive(Clone, Debug)]
pub struct HostBudget<S> {
    inner: S,
    config: Arc<HostBudgetConfig>,
}

inner_accessors!(HostBudget);

impl<S> Layer<S> for HostBudgetLayer {
    type Service = HostBudget<S>;

    fn layer(&self, inner: S) -> Self::Service {
        let config = Arc::new(self.config.clone());
        HostBudget { inner, config }
    }
}

service_constructors!(HostBudget, HostBudgetLayer, hosts: Hosts);

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for HostBudget<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ReqBody: Send + 'static,
    ResBody: Body + Send + 'static,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<ResBody>;

    /// Always ready: the inner service is asked when the host's turn has come, so that one paused host does not occupy
    /// what other hosts need.
    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (inner, config) = (self.inner.clone(), Arc::clone(&self.config));
        let hosts = config.hosts.id();
        let mut held = false;
        if let Some(context) = request.extensions().get::<Context>() {
            held = context.held_by.contains(hosts);
            let handshake = context.handshake.as_deref();
            if let Some(handshake) = handshake.filter(|handshake| handshake.hosts == hosts) {
                handshake.budget_below.store(true, Ordering::Release);
            }
        }
        // A budget on the same hosts holds a permit for this request already. Asking for a second one could wait for the
        // first for ever.
        if held {
            ResponseFuture::new(call_without_permit(inner, request))
        } else {
            ResponseFuture::new(call_with_permit(inner, config, request))
        }
    }
}

async fn call_without_permit<S, ReqBody, ResBody>(
    mut inner: S,
    request: Request<ReqBody>,
) -> Result<Response<ResponseBody<ResBody>>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    ready(&mut inner).await.map_err(Into::into)?;
    let response = inner.call(request).await.map_err(Into::into)?;
    Ok(response.map(|body| ResponseBody::new(body, None)))
}

async fn call_with_permit<S, ReqBody, ResBody>(
    inner: S,
    config: Arc<HostBudgetConfig>,
    mut request: Request<ReqBody>,
) -> Result<Response<ResponseBody<ResBody>>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError>,
    ResBody: Body,
{
    let origin = origin_of(request.uri(), config.origin.clone())?;
    let options = options_of(&request, config.never_wait);
    let (hosts, address) = (&config.hosts, config.address_budget.as_ref());
    let extensions = request.extensions();
    let admitted = admit(hosts, &origin, extensions, options, address, inner);
    let (mut service, mut permit) = admitted.await?;
    add_context(&mut request, hosts, &permit);
    let asks_for_head = request.method() == Method::HEAD;
    let call = service.call(request);
    match until_lost(call, &mut permit).await {
        Ok(mut response) => {
            record(&mut response, hosts, &mut permit).await;
            let ended = asks_for_head || has_no_body(&response);
            let permit = (!ended).then_some(permit);
            Ok(response.map(|body| ResponseBody::new(body, permit)))
        }
        Err(error) => {
            // A refusal further in says nothing about the host.
            if Refusal::find(&*error).is_none() && !error.is::<LeaseLost>() {
                permit.failed();
                permit.kept().await;
            }
            Err(error)
        }
    }
}

/// How the request may wait.
fn options_of<B>(request: &Request<B>, never_wait: bool) -> AcquireOptions {
    let purpose = purpose(request);
    AcquireOptions {
        purpose,
        api: api(request).filter(|_| purpose == PurposeKind::Api),
        pauses_only: false,
        paced_elsewhere: false,
        never_wait,
        not_before: None,
    }
}

/// Tells layers further in which budget the request is in.
fn add_context<B>(request: &mut Request<B>, hosts: &Hosts, permit: &Permit) {
    let extensions = request.extensions_mut();
    if let Some(address) = permit.address() {
        extensions.insert(AtAddress(address));
    }
    let context = Context::of(extensions);
    context.held_by.insert(hosts.id());
    context.delay = context.delay.max(permit.pace().delay);
}

/// Polls the call of the inner service until it is over or the permit is lost.
async fn until_lost<T, E: Into<BoxError>>(
    call: impl Future<Output = Result<T, E>>,
    permit: &mut Permit,
) -> Result<T, BoxError> {
    let mut call = pin!(call);
    poll_fn(|cx| {
        if permit.poll_lost(cx).is_ready() {
            return Poll::Ready(Err(LeaseLost::new().into()));
        }
        call.as_mut().poll(cx).map_err(Into::into)
    })
    .await
}

/// Records the head of a response, and adds what was learnt to its facts.
async fn record<B>(response: &mut Response<B>, hosts: &Hosts, permit: &mut Permit) {
    let head = permit.read(response.status(), response.headers());
    permit.answered(head);
    permit.kept().await;
    permit.report().await;
    Facts::edit(response.extensions_mut(), |facts| {
        facts.waited += permit.waited();
        facts.attempts = facts.attempts.max(1);
        facts.pace = Some(permit.pace());
        facts.recorded_by.insert(hosts.id());
        if head.asks_to_come_back_later() {
            facts.retry_at = permit.retry_at();
        }
    });
}

/// Responses that end with their head (RFC 9112, 6.3), and those that are no HTTP exchange any more.
fn has_no_body<B: Body>(response: &Response<B>) -> bool {
    matches!(
        response.status(),
        StatusCode::SWITCHING_PROTOCOLS | StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
    ) || response.body().is_end_stream()
        || response
            .headers()
            .get(header::CONTENT_LENGTH)
            .is_some_and(|length| length == "0")
}
