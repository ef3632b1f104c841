//! One request checked against the rules of its origin: when it comes, and again when it starts.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use etiquette_core::decide::address::AddressRefused;
use etiquette_core::decide::robots_txt::{FetchFailure, RobotsOutcome, RobotsStatus};
use etiquette_core::vocabulary::refusal::{Disallowed, RobotsUnreachable};
use etiquette_core::{Now, PurposeKind, Refusal, RobotsScope};
use etiquette_robots::Robots;
use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::fetch::RobotsFetch;
use super::request::RobotsRequest;
use super::target::Target;
use crate::facts::RobotsFacts;
use crate::flight::{Flight, Panicked};
use crate::lock::lock;
use crate::macros::opaque_debug;
use crate::start_check::{StartCheck, StartDecision};
use crate::{BoxError, events};

/// How many fetches that end in failure one request waits for.
const MAX_FAILED_FETCHES: u32 = 3;

/// The check of one request.
pub(super) struct RobotsCheck<S, ReqBody> {
    state: Arc<State>,
    /// A clone of the inner service for fetches. Locked only to be cloned.
    inner: Mutex<S>,
    body: PhantomData<fn(ReqBody)>,
}

/// What does not depend on the inner service.
struct State {
    request: Arc<RobotsRequest>,
    target: Target,
    progress: Mutex<Progress>,
}

/// How far the check has come.
#[derive(Default)]
struct Progress {
    failed_fetches: u32,
    refused: Option<Box<Refusal>>,
    facts: Option<RobotsFacts>,
}

impl<S, ReqBody> RobotsCheck<S, ReqBody> {
    /// The check of a request for `path_and_query`, which fetches robots.txt through `inner`.
    pub(super) fn new(request: RobotsRequest, path_and_query: &str, inner: S) -> Self {
        let state = State {
            target: Target::new(&request.key.origin, path_and_query),
            request: Arc::new(request),
            progress: Mutex::default(),
        };
        Self {
            state: Arc::new(state),
            inner: Mutex::new(inner),
            body: PhantomData,
        }
    }

    /// What was found when the request was last admitted.
    pub(super) fn facts(&self) -> Option<RobotsFacts> {
        self.state.progress().facts.take()
    }
}

impl State {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        lock(&self.progress)
    }

    /// What the record says at `now`.
    fn decide(&self, now: Now) -> StartDecision {
        let request = &self.request;
        let (delay, epoch) = (request.delay(), request.epoch());
        let record = &request.slot.lock().record;
        let mut progress = self.progress();
        match record.status(now.monotonic, delay, epoch) {
            RobotsStatus::Obey(RobotsOutcome::Unavailable) => {
                progress.facts = Some(RobotsFacts::unavailable());
                StartDecision::Start { crawl_delay: None }
            }
            RobotsStatus::Obey(RobotsOutcome::Rules(robots)) => {
                self.apply_rules(robots, &mut progress)
            }
            RobotsStatus::Obey(RobotsOutcome::Closed(status)) => {
                self.unreachable(FetchFailure::Status(*status), None)
            }
            RobotsStatus::Closed { failure, retry_at } => {
                if let Some(refusal) = progress.refused.take() {
                    return StartDecision::Refuse(refusal);
                }
                // The pause that came with the 429 holds the next fetch back: this request may wait for it.
                let pause_holds = request.config.hosts.is_some()
                    && *failure == FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS);
                if pause_holds && progress.failed_fetches < MAX_FAILED_FETCHES {
                    return StartDecision::Refresh;
                }
                self.unreachable(failure.clone(), Some(now.wall_at(retry_at)))
            }
            _ => match progress.refused.take() {
                Some(refusal) => StartDecision::Refuse(refusal),
                None => StartDecision::Refresh,
            },
        }
    }

    fn apply_rules(&self, robots: &Robots, progress: &mut Progress) -> StartDecision {
        let request = &self.request;
        let tokens = &request.key.tokens;
        let crawl = robots.group(&tokens.crawl);
        let user = tokens
            .user
            .as_ref()
            .filter(|_| request.purpose == PurposeKind::UserFetch);
        let user = user.map(|token| match request.config.scope {
            RobotsScope::StarAndNamed => Some(robots.group(token)),
            _ => robots.named_group(token),
        });
        let (verdict, delay) = match user {
            None => (Some(self.target.check(&crawl)), None),
            Some(None) => (None, None),
            Some(Some(group)) => (Some(self.target.check(&group)), group.crawl_delay()),
        };
        if let Some(verdict) = verdict.as_ref().filter(|verdict| !verdict.allowed()) {
            let origin = request.key.origin.clone();
            let refusal = Disallowed::new(origin, verdict.clone(), request.contact());
            return StartDecision::Refuse(Box::new(refusal.into()));
        }
        // Whoever fetches for a person goes no faster than the crawl: the host is the same.
        let crawl_delay = crawl.crawl_delay().max(delay);
        progress.facts = Some(RobotsFacts::of_rules(robots.clone(), verdict, crawl_delay));
        StartDecision::Start { crawl_delay }
    }

    fn unreachable(&self, failure: FetchFailure, retry_at: Option<SystemTime>) -> StartDecision {
        let origin = self.request.key.origin.clone();
        let contact = self.request.contact();
        let refusal = match failure {
            FetchFailure::NotPublic(address) => {
                AddressRefused::new(Some(origin), address, contact).into()
            }
            failure => RobotsUnreachable::new(origin, failure, retry_at, contact).into(),
        };
        StartDecision::Refuse(Box::new(refusal))
    }

    /// A pause that this request would not wait for is a reason not to fetch robots.txt for it.
    fn check_pause(&self) -> Result<(), Refusal> {
        let request = &self.request;
        match &request.config.hosts {
            Some(hosts) => {
                let now = request.config.clock.now();
                hosts.check_pause(&request.key.origin, request.purpose, now)
            }
            None => Ok(()),
        }
    }

    /// Takes note of how a fetch ended.
    fn fetched(&self, result: Result<Result<(), Refusal>, Panicked>) {
        let failing = self.request.slot.lock().record.is_failing();
        let mut progress = self.progress();
        match result {
            Ok(Ok(())) => progress.failed_fetches += u32::from(failing),
            Ok(Err(refusal)) => progress.refused = Some(Box::new(refusal)),
            Err(Panicked) => {
                let origin = self.request.key.origin.clone();
                let contact = self.request.contact();
                let leaf = RobotsUnreachable::new(origin, FetchFailure::NoResponse, None, contact);
                progress.refused = Some(Box::new(leaf.into()));
            }
        }
    }
}

impl<S, ReqBody, ResBody> StartCheck for RobotsCheck<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ReqBody: Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Data: Send,
{
    fn check(&self, now: Now) -> StartDecision {
        let decision = self.state.decide(now);
        if let StartDecision::Refuse(refusal) = &decision {
            events::robots_refused(refusal);
        }
        decision
    }

    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let state = Arc::clone(&self.state);
        let inner = lock(&self.inner).clone();
        Box::pin(async move {
            if let Err(refusal) = state.check_pause() {
                state.progress().refused = Some(Box::new(refusal));
                return;
            }
            let flight = state
                .request
                .slot
                .join_or_start(|| Flight::new(RobotsFetch::new(&state.request).run(inner)));
            let result = flight.await;
            state.fetched(result);
        })
    }
}

opaque_debug!(RobotsCheck<S, ReqBody>);
