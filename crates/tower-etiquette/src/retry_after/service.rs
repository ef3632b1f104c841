use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{HostResponse, ResponseRecord, Signal};
use etiquette_core::{Origin, PurposeKind};
use http::{Extensions, Method, Request, Response};
use tower_service::Service;

use super::replay::{EmptyBodies, ReplayBody};
use super::{ResponseFuture, RetryAfterLayer};
use crate::events::{self, Event};
use crate::ext::{Context, Facts, Handshake, purpose};
use crate::hosts::{Hosts, Manner, Permit, admit, origin_of};
use crate::ready::ready;
use crate::{BoxError, Refusal};

/// A service that obeys Retry-After; see the [module](crate::retry_after).
#[derive(Clone, Debug)]
pub struct RetryAfter<S, C = EmptyBodies> {
    inner: S,
    settings: Settings,
    bodies: C,
    /// Shared by all clones: they have the same layers below.
    handshake: Arc<Handshake>,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) hosts: Hosts,
    pub(super) attempts: NonZeroU32,
    pub(super) retry_failures: bool,
    pub(super) never_wait: bool,
    pub(super) origin: Option<Origin>,
}

impl Settings {
    pub(super) fn new(hosts: Hosts) -> Self {
        Self {
            hosts,
            attempts: NonZeroU32::new(3).expect("three is not zero"),
            retry_failures: false,
            never_wait: false,
            origin: None,
        }
    }
}

impl<S, C> RetryAfter<S, C> {
    pub(super) fn with_settings(inner: S, settings: Settings, bodies: C) -> Self {
        let handshake = Handshake {
            hosts: settings.hosts.id(),
            budget_below: AtomicBool::new(false),
        };
        Self {
            inner,
            settings,
            bodies,
            handshake: Arc::new(handshake),
        }
    }

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

impl<S> RetryAfter<S> {
    /// Wraps `inner` so that `hosts` pause as they ask for it.
    #[must_use]
    pub fn new(inner: S, hosts: Hosts) -> Self {
        Self::with_settings(inner, Settings::new(hosts), EmptyBodies)
    }

    /// The layer that makes such services.
    #[must_use]
    pub fn layer(hosts: Hosts) -> RetryAfterLayer {
        RetryAfterLayer::new(hosts)
    }
}

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
    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let purpose = purpose(&request);
        let context = Context::of(request.extensions_mut());
        let above = if context.held_by.contains(self.settings.hosts.id()) {
            Above::SameBudget
        } else if !context.held_by.is_empty() {
            Above::OtherBudget
        } else {
            context.handshake = Some(Arc::clone(&self.handshake));
            Above::Nothing
        };
        let course = Course {
            settings: self.settings.clone(),
            above,
            purpose,
            robots_txt: context.reads_robots_txt,
            handshake: Arc::clone(&self.handshake),
        };
        ResponseFuture::new(course.run(self.inner.clone(), self.bodies.clone(), request))
    }
}

/// Which budget holds a permit for the request while it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    Nothing,
    /// It holds, records and paces on the same hosts: nothing is left to do.
    SameBudget,
    OtherBudget,
}

/// One request with its attempts.
#[derive(Debug)]
struct Course {
    settings: Settings,
    above: Above,
    purpose: PurposeKind,
    robots_txt: bool,
    handshake: Arc<Handshake>,
}

impl Course {
    async fn run<S, C, ReqBody, ResBody>(
        self,
        inner: S,
        bodies: C,
        mut request: Request<ReqBody>,
    ) -> Result<Response<ResBody>, BoxError>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
        S::Error: Into<BoxError>,
        C: ReplayBody<ReqBody>,
    {
        let hosts = &self.settings.hosts;
        let origin = origin_of(request.uri(), self.settings.origin.clone())?;
        let idempotent = is_idempotent(request.method());
        let mut waited = Duration::ZERO;
        let mut not_before = None;
        for attempt in 1.. {
            let spare = if self.may_repeat_after(attempt) {
                copy(&request, &bodies)
            } else {
                None
            };
            let (mut service, mut permit) = self
                .admit(&origin, request.extensions(), not_before, inner.clone())
                .await?;
            if permit.is_some() {
                let context = Context::of(request.extensions_mut());
                context.counted_by.insert(hosts.id());
            }
            let started = hosts.clock().monotonic();
            let mut response = match service.call(request).await.map_err(Into::into) {
                Ok(response) => response,
                Err(error) => {
                    if Refusal::find(&*error).is_some() {
                        return Err(error);
                    }
                    if self.records_failures() {
                        self.record(&origin, permit, started, HostResponse::failure())
                            .await;
                    }
                    match spare {
                        Some(spare) if self.settings.retry_failures && idempotent => {
                            self.tell_retry(&origin, Signal::Failed, attempt);
                            request = spare;
                            not_before = Some(hosts.clock().now().after(hosts.delay(&origin)));
                            continue;
                        }
                        _ => return Err(error),
                    }
                }
            };
            let answer = hosts.read(&origin, response.status(), response.headers());
            let facts = Facts::of(&response);
            let known = facts.is_some_and(|facts| facts.recorded_by.contains(hosts.id()));
            waited += facts.map(Facts::waited).unwrap_or_default();
            waited += permit.as_ref().map(Permit::waited).unwrap_or_default();
            if !known && self.above != Above::SameBudget {
                // What was taken for a budget below did not see this request: look for it anew.
                self.handshake.budget_below.store(false, Ordering::Release);
                self.record(&origin, permit.take(), started, answer).await;
            }
            drop(permit);
            let repeat = match answer.signal {
                Signal::Throttled => true,
                Signal::Unavailable => idempotent,
                Signal::Failed => idempotent && self.settings.retry_failures,
                _ => false,
            };
            if let (Some(spare), true) = (spare, repeat) {
                // The old body goes before the wait, and with it the permit that it holds.
                drop(response);
                self.tell_retry(&origin, answer.signal, attempt);
                request = spare;
                not_before = (answer.signal == Signal::Failed)
                    .then(|| hosts.clock().now().after(hosts.delay(&origin)));
                continue;
            }
            Facts::edit(response.extensions_mut(), |facts| {
                facts.waited = waited;
                facts.attempts = attempt;
                if !known {
                    facts.recorded_by.insert(hosts.id());
                }
                if answer.asks_to_come_back_later() {
                    let now = hosts.clock().now();
                    let paused = hosts.paused_until(&origin, now.monotonic);
                    facts.retry_at = paused.map(|until| now.wall_at(until)).max(facts.retry_at);
                }
            });
            return Ok(response);
        }
        unreachable!("the last attempt has no spare request")
    }

    fn tell_retry(&self, origin: &Origin, signal: Signal, attempt: u32) {
        let voice = self.settings.hosts.voice();
        events::tell(|| Event::Retried {
            voice,
            host: origin.host(),
            cause: events::cause_of(signal),
            attempt: attempt + 1,
        });
    }

    fn may_repeat_after(&self, attempt: u32) -> bool {
        self.above == Above::Nothing && !self.robots_txt && attempt < self.settings.attempts.get()
    }

    /// Whether a budget on the same hosts sees what this layer sees.
    fn records_failures(&self) -> bool {
        self.above != Above::SameBudget && !self.handshake.budget_below.load(Ordering::Acquire)
    }

    /// Waits for the end of a pause, unless a budget on the same hosts does.
    async fn admit<S, R>(
        &self,
        origin: &Origin,
        extensions: &Extensions,
        not_before: Option<Instant>,
        inner: S,
    ) -> Result<(S, Option<Permit>), BoxError>
    where
        S: Service<R> + Clone,
        S::Error: Into<BoxError>,
    {
        if !self.records_failures() && not_before.is_none() {
            let mut service = inner;
            ready(&mut service).await.map_err(Into::into)?;
            return Ok((service, None));
        }
        let manner = Manner {
            purpose: self.purpose,
            api: None,
            pauses_only: true,
            paced_elsewhere: self.above == Above::OtherBudget,
            never_wait: self.settings.never_wait,
            not_before,
        };
        let hosts = &self.settings.hosts;
        let (service, permit) = admit(hosts, origin, extensions, manner, None, inner).await?;
        Ok((service, Some(permit)))
    }

    async fn record(
        &self,
        origin: &Origin,
        permit: Option<Permit>,
        started: Instant,
        answer: HostResponse,
    ) {
        let hosts = &self.settings.hosts;
        // A budget above has recorded the same pause by the time the next request comes here. Ending it no later, this
        // layer does not hold what the budget has let go, whose delay would then shrink.
        let jitter = match self.above {
            Above::OtherBudget => 0.0,
            Above::Nothing | Above::SameBudget => hosts.jitter(),
        };
        match permit {
            Some(mut permit) => {
                permit.answered_with(answer, jitter);
                permit.kept().await;
            }
            None => {
                let page = !self.robots_txt;
                let received = ResponseRecord::new(started, answer, page, jitter);
                if let Some(keeping) = hosts.record(origin, &received.untimed()) {
                    keeping.done().await;
                }
            }
        }
    }
}

/// The request once more, if its body can be had twice.
fn copy<B>(request: &Request<B>, bodies: &impl ReplayBody<B>) -> Option<Request<B>> {
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
