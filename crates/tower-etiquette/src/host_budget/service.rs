use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context as Task, Poll};

use etiquette_core::{Origin, PurposeKind};
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use tower_service::Service;

use super::{HostBudgetLayer, LeaseLost, ResponseBody, ResponseFuture};
use crate::context::{AtAddress, Context, api, purpose};
use crate::facts::Facts;
use crate::hosts::{AcquireOptions, AddressBudget, Hosts, admit, origin_of};
use crate::macros::inner_accessors;
use crate::ready::ready;
use crate::{BoxError, Refusal};

/// A service whose requests keep a budget for each host; see the [module](crate::host_budget).
#[derive(Clone, Debug)]
pub struct HostBudget<S> {
    inner: S,
    hosts: Hosts,
    never_wait: bool,
    origin: Option<Origin>,
    address_budget: Option<AddressBudget>,
}

inner_accessors!(HostBudget);

impl<S> HostBudget<S> {
    /// Wraps `inner` in a budget for each of `hosts`.
    #[must_use]
    pub fn new(inner: S, hosts: Hosts) -> Self {
        Self::with_settings(inner, hosts, false, None, None)
    }

    /// The layer that makes such services.
    #[must_use]
    pub fn layer(hosts: Hosts) -> HostBudgetLayer {
        HostBudgetLayer::new(hosts)
    }

    pub(super) fn with_settings(
        inner: S,
        hosts: Hosts,
        never_wait: bool,
        origin: Option<Origin>,
        address_budget: Option<AddressBudget>,
    ) -> Self {
        Self {
            inner,
            hosts,
            never_wait,
            origin,
            address_budget,
        }
    }
}

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
    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let context = request.extensions().get::<Context>();
        if let Some(handshake) = context.and_then(|context| context.handshake.as_ref())
            && handshake.hosts == self.hosts.id()
        {
            handshake.budget_below.store(true, Ordering::Release);
        }
        ResponseFuture::new(run(
            self.inner.clone(),
            self.hosts.clone(),
            self.never_wait,
            self.origin.clone(),
            self.address_budget.clone(),
            request,
        ))
    }
}

async fn run<S, ReqBody, ResBody>(
    inner: S,
    hosts: Hosts,
    never_wait: bool,
    origin: Option<Origin>,
    address_budget: Option<AddressBudget>,
    mut request: Request<ReqBody>,
) -> Result<Response<ResponseBody<ResBody>>, BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    S::Error: Into<BoxError>,
    ResBody: Body,
{
    let context = request.extensions().get::<Context>();
    if context.is_some_and(|context| context.held_by.contains(hosts.id())) {
        // A budget on the same hosts holds a permit for this request already. Asking for a address_budget one could wait for
        // the first for ever.
        let mut service = inner;
        ready(&mut service).await.map_err(Into::into)?;
        let response = service.call(request).await.map_err(Into::into)?;
        return Ok(response.map(|body| ResponseBody::new(body, None)));
    }

    let origin = origin_of(request.uri(), origin)?;
    let purpose = purpose(&request);
    let options = AcquireOptions {
        purpose,
        api: api(&request).filter(|_| purpose == PurposeKind::Api),
        pauses_only: false,
        paced_elsewhere: false,
        never_wait,
        not_before: None,
    };
    let extensions = request.extensions();
    let (mut service, mut permit) = admit(
        &hosts,
        &origin,
        extensions,
        options,
        address_budget.as_ref(),
        inner,
    )
    .await?;
    if let Some(address) = permit.address() {
        request.extensions_mut().insert(AtAddress(address));
    }
    let context = Context::of(request.extensions_mut());
    context.held_by.insert(hosts.id());
    context.delay = context.delay.max(permit.pace().delay);
    let asks_for_head = request.method() == Method::HEAD;

    let mut call = pin!(service.call(request));
    let outcome = poll_fn(|task| {
        if permit.poll_lost(task).is_ready() {
            return Poll::Ready(Err(LeaseLost::new().into()));
        }
        call.as_mut().poll(task).map_err(Into::into)
    });
    let mut response = match outcome.await {
        Ok(response) => response,
        Err(error) => {
            // A refusal further in says nothing about the host.
            if Refusal::find(&*error).is_none() && !error.is::<LeaseLost>() {
                permit.failed();
                permit.kept().await;
            }
            return Err(error);
        }
    };
    let answer = permit.read(response.status(), response.headers());
    permit.answered(answer);
    permit.kept().await;
    permit.report().await;
    Facts::edit(response.extensions_mut(), |facts| {
        facts.waited += permit.waited();
        facts.attempts = facts.attempts.max(1);
        facts.pace = Some(permit.pace());
        facts.recorded_by.insert(hosts.id());
        if answer.asks_to_come_back_later() {
            facts.retry_at = permit.retry_at();
        }
    });
    let ended = asks_for_head || has_no_body(&response);
    let permit = (!ended).then_some(permit);
    Ok(response.map(|body| ResponseBody::new(body, permit)))
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
