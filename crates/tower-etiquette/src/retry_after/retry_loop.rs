//! One request with its attempts.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{HostResponse, ResponseRecord, Signal};
use etiquette_core::{Origin, PurposeKind};
use http::{Extensions, Method, Request, Response};
use tower_service::Service;

use super::layer::RetryAfterConfig;
use super::replay::ReplayBody;
use crate::context::{Context, Handshake, purpose};
use crate::facts::Facts;
use crate::hosts::{AcquireOptions, Permit, admit, origin_of};
use crate::ready::ready;
use crate::{BoxError, Refusal, events};

/// Which budget further out holds a permit for the request while it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OuterBudget {
    None,
    /// It holds, records and paces on the same hosts: nothing is left to do.
    SameHosts,
    OtherHosts,
}

/// One request with its attempts.
#[derive(Debug)]
pub(super) struct RetryLoop {
    config: Arc<RetryAfterConfig>,
    handshake: Arc<Handshake>,
    outer_budget: OuterBudget,
    origin: Origin,
    purpose: PurposeKind,
    robots_txt: bool,
    idempotent: bool,
    /// How long the attempts so far have waited for their starts.
    waited: Duration,
    /// The next attempt starts no sooner.
    not_before: Option<Instant>,
}

impl RetryLoop {
    pub(super) fn new<B>(
        config: Arc<RetryAfterConfig>,
        handshake: Arc<Handshake>,
        outer_budget: OuterBudget,
        request: &mut Request<B>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            origin: origin_of(request.uri(), config.origin.clone())?,
            purpose: purpose(request),
            robots_txt: Context::of(request.extensions_mut()).fetches_robots_txt,
            idempotent: is_idempotent(request.method()),
            config,
            handshake,
            outer_budget,
            waited: Duration::ZERO,
            not_before: None,
        })
    }

    /// Sends the request until its response is one to hand on.
    pub(super) async fn run<S, C, ReqBody, ResBody>(
        mut self,
        inner: S,
        bodies: C,
        mut request: Request<ReqBody>,
    ) -> Result<Response<ResBody>, BoxError>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
        S::Error: Into<BoxError>,
        C: ReplayBody<ReqBody>,
    {
        let mut attempt = 1;
        loop {
            let copy = self.copy_for_retry(&request, &bodies, attempt);
            let (mut service, permit) = self.admit(request.extensions(), inner.clone()).await?;
            let hosts = self.config.hosts.clone();
            if permit.is_some() {
                let context = Context::of(request.extensions_mut());
                context.counted_by.insert(hosts.id());
            }
            let started = hosts.clock().monotonic();
            match service.call(request).await.map_err(Into::into) {
                Ok(mut response) => {
                    let answer = hosts.read(&self.origin, response.status(), response.headers());
                    let known = self.read_facts(Facts::of(&response), permit.as_ref());
                    if !known && self.outer_budget != OuterBudget::SameHosts {
                        // What was taken for a budget below did not see this request: look for it anew.
                        self.handshake.budget_below.store(false, Ordering::Release);
                        self.record(permit, started, answer).await;
                    }
                    let Some(copy) = copy.filter(|_| self.may_retry_after(answer.signal)) else {
                        self.add_facts(&mut response, answer, attempt, known);
                        return Ok(response);
                    };
                    // The old body goes before the wait, and with it the permit that it holds.
                    drop(response);
                    self.begin_retry(answer.signal, attempt);
                    request = copy;
                }
                Err(error) => {
                    if Refusal::find(&*error).is_some() {
                        return Err(error);
                    }
                    if self.records_failures() {
                        self.record(permit, started, HostResponse::failure()).await;
                    }
                    let Some(copy) = copy.filter(|_| self.may_retry_after(Signal::Failed)) else {
                        return Err(error);
                    };
                    self.begin_retry(Signal::Failed, attempt);
                    request = copy;
                }
            }
            attempt += 1;
        }
    }

    /// A copy of the request for the attempt after this one, where there may be one.
    fn copy_for_retry<B>(
        &self,
        request: &Request<B>,
        bodies: &impl ReplayBody<B>,
        attempt: u32,
    ) -> Option<Request<B>> {
        let may_repeat = self.outer_budget == OuterBudget::None
            && !self.robots_txt
            && attempt < self.config.attempts.get();
        may_repeat.then(|| copy_of(request, bodies))?
    }

    /// RFC 9110, 9.2.2: what is not idempotent is sent again only where the site says that it did nothing.
    fn may_retry_after(&self, signal: Signal) -> bool {
        match signal {
            Signal::Throttled => true,
            Signal::Unavailable => self.idempotent,
            Signal::Failed => self.idempotent && self.config.retry_failures,
            _ => false,
        }
    }

    fn begin_retry(&mut self, cause: Signal, attempt: u32) {
        let hosts = &self.config.hosts;
        events::retried(hosts.event_scope(), self.origin.host(), cause, attempt + 1);
        self.not_before =
            (cause == Signal::Failed).then(|| hosts.clock().now().after(hosts.delay(&self.origin)));
    }

    /// Adds up how long the attempt waited. Returns whether a layer further in has recorded its response.
    fn read_facts(&mut self, facts: Option<&Facts>, permit: Option<&Permit>) -> bool {
        self.waited += facts.map(Facts::waited).unwrap_or_default();
        self.waited += permit.map(Permit::waited).unwrap_or_default();
        facts.is_some_and(|facts| facts.recorded_by.contains(self.config.hosts.id()))
    }

    fn add_facts<B>(
        &self,
        response: &mut Response<B>,
        answer: HostResponse,
        attempts: u32,
        known: bool,
    ) {
        let hosts = &self.config.hosts;
        Facts::edit(response.extensions_mut(), |facts| {
            facts.waited = self.waited;
            facts.attempts = attempts;
            if !known {
                facts.recorded_by.insert(hosts.id());
            }
            if answer.asks_to_come_back_later() {
                let now = hosts.clock().now();
                let paused = hosts.paused_until(&self.origin, now.monotonic);
                facts.retry_at = paused.map(|until| now.wall_at(until)).max(facts.retry_at);
            }
        });
    }

    /// Whether no budget on the same hosts sees what this layer sees.
    fn records_failures(&self) -> bool {
        let budget_below = self.handshake.budget_below.load(Ordering::Acquire);
        self.outer_budget != OuterBudget::SameHosts && !budget_below
    }

    /// Waits for the end of a pause, unless a budget on the same hosts does.
    async fn admit<S, R>(
        &self,
        extensions: &Extensions,
        inner: S,
    ) -> Result<(S, Option<Permit>), BoxError>
    where
        S: Service<R> + Clone,
        S::Error: Into<BoxError>,
    {
        if !self.records_failures() && self.not_before.is_none() {
            let mut service = inner;
            ready(&mut service).await.map_err(Into::into)?;
            return Ok((service, None));
        }
        let manner = AcquireOptions {
            purpose: self.purpose,
            api: None,
            pauses_only: true,
            paced_elsewhere: self.outer_budget == OuterBudget::OtherHosts,
            never_wait: self.config.never_wait,
            not_before: self.not_before,
        };
        let hosts = &self.config.hosts;
        let (service, permit) = admit(hosts, &self.origin, extensions, manner, None, inner).await?;
        Ok((service, Some(permit)))
    }

    /// Records what a response says of the host under the request's permit, or without one.
    async fn record(&self, permit: Option<Permit>, started: Instant, answer: HostResponse) {
        let hosts = &self.config.hosts;
        // A budget above has recorded the same pause by the time the next request comes here. Ending it no later, this
        // layer does not hold what the budget has let go, whose delay would then shrink.
        let jitter = match self.outer_budget {
            OuterBudget::OtherHosts => 0.0,
            OuterBudget::None | OuterBudget::SameHosts => hosts.jitter(),
        };
        match permit {
            Some(mut permit) => {
                permit.answered_with(answer, jitter);
                permit.kept().await;
            }
            None => {
                let page = !self.robots_txt;
                let received = ResponseRecord::new(started, answer, page, jitter);
                if let Some(keeping) = hosts.record(&self.origin, &received.untimed()) {
                    keeping.done().await;
                }
            }
        }
    }
}

/// The request once more, if its body can be had twice.
fn copy_of<B>(request: &Request<B>, bodies: &impl ReplayBody<B>) -> Option<Request<B>> {
    let mut copy = Request::new(bodies.replay(request.body())?);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

/// RFC 9110, 9.2.2.
fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    )
}
