//! One request before the rules: asked when it comes, and again when it starts.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use etiquette_core::decide::address::AddressRefused;
use etiquette_core::decide::robots_txt::{FetchFailure, RobotsOutcome, RobotsStatus};
use etiquette_core::vocabulary::identity::Identity;
use etiquette_core::vocabulary::refusal::{Disallowed, RobotsUnreachable};
use etiquette_core::{Now, Origin, PurposeKind, Refusal, RobotsScope};
use etiquette_robots::{Group, Robots, Verdict, resolve};
use http::{Request, Response, StatusCode};
use http_body::Body;
use tower_service::Service;

use super::facts::RobotsFacts;
use super::layer::Shared;
use super::reading::Reading;
use super::table::{Key, Slot};
use crate::BoxError;
use crate::events;
use crate::ext::{AtStart, Rules, Visit};
use crate::flight::Flight;

/// How many readings that end in failure one request waits for.
const PATIENCE: u32 = 3;

/// One request before the rules of its origin.
pub(super) struct Gate<S, ReqBody> {
    asking: Arc<Asking>,
    /// A clone of the inner service for readings. Locked only to be cloned.
    inner: Mutex<S>,
    body: PhantomData<fn(ReqBody)>,
}

/// What does not depend on the inner service.
pub(super) struct Asking {
    pub(super) shared: Arc<Shared>,
    pub(super) slot: Arc<Slot>,
    pub(super) key: Key,
    pub(super) identity: Identity,
    pub(super) purpose: PurposeKind,
    /// Of a page that a person asked for: reading robots.txt is a part of the same visit and takes no delay of its own.
    pub(super) visit: Option<Visit>,
    pub(super) target: Target,
    pub(super) progress: Mutex<Progress>,
}

/// How far the asking has come.
#[derive(Default)]
pub(super) struct Progress {
    failed_readings: u32,
    refused: Option<Box<Refusal>>,
    facts: Option<RobotsFacts>,
}

impl<S, ReqBody> Gate<S, ReqBody> {
    pub(super) fn new(asking: Asking, inner: S) -> Self {
        Self {
            asking: Arc::new(asking),
            inner: Mutex::new(inner),
            body: PhantomData,
        }
    }

    /// What was found when the request was last admitted.
    pub(super) fn facts(&self) -> Option<RobotsFacts> {
        self.asking.progress().facts.take()
    }
}

impl Asking {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch(&self) -> u64 {
        self.shared
            .settings
            .hosts
            .as_ref()
            .map_or(0, |hosts| hosts.epoch(&self.key.origin))
    }

    fn ask(&self, now: Now) -> AtStart {
        let settings = &self.shared.settings;
        let delay = settings
            .hosts
            .as_ref()
            .map(|hosts| hosts.delay(&self.key.origin))
            .unwrap_or_default();
        let epoch = self.epoch();
        let state = self.slot.lock();
        let mut progress = self.progress();
        match state.record.status(now.monotonic, delay, epoch) {
            RobotsStatus::Obey(RobotsOutcome::Unavailable) => {
                progress.facts = Some(RobotsFacts::unavailable());
                AtStart::Go { crawl_delay: None }
            }
            RobotsStatus::Obey(RobotsOutcome::Rules(robots)) => self.judge(robots, &mut progress),
            RobotsStatus::Obey(RobotsOutcome::Closed(status)) => {
                self.unreachable(FetchFailure::Status(*status), None)
            }
            RobotsStatus::Closed { failure, retry_at } => {
                if let Some(refusal) = progress.refused.take() {
                    return AtStart::Refuse(refusal);
                }
                // The pause that came with the 429 holds the next reading back: this request may wait for it.
                let pause_holds = settings.hosts.is_some()
                    && *failure == FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS);
                if pause_holds && progress.failed_readings < PATIENCE {
                    return AtStart::Renew;
                }
                self.unreachable(failure.clone(), Some(now.wall_at(retry_at)))
            }
            _ => match progress.refused.take() {
                Some(refusal) => AtStart::Refuse(refusal),
                None => AtStart::Renew,
            },
        }
    }

    fn judge(&self, robots: &Robots, progress: &mut Progress) -> AtStart {
        let tokens = &self.key.tokens;
        let crawl = robots.group(&tokens.crawl);
        let user = tokens
            .user
            .as_ref()
            .filter(|_| self.purpose == PurposeKind::UserFetch);
        let user = user.map(|token| match self.shared.settings.scope {
            RobotsScope::StarAndNamed => Some(robots.group(token)),
            _ => robots.named_group(token),
        });
        let (verdict, delay) = match user {
            None => (Some(self.target.check(&crawl)), None),
            Some(None) => (None, None),
            Some(Some(group)) => (Some(self.target.check(&group)), group.crawl_delay()),
        };
        // Whoever fetches for a person goes no faster than the crawl: the host is the same.
        let crawl_delay = crawl.crawl_delay().max(delay);
        match verdict {
            Some(verdict) if !verdict.allowed() => {
                AtStart::Refuse(Box::new(self.disallowed(verdict)))
            }
            verdict => {
                progress.facts = Some(RobotsFacts::read(robots.clone(), verdict, crawl_delay));
                AtStart::Go { crawl_delay }
            }
        }
    }

    fn contact(&self) -> Option<Arc<str>> {
        Some(Arc::clone(self.identity.help()))
    }

    fn disallowed(&self, verdict: Verdict) -> Refusal {
        Disallowed::new(self.key.origin.clone(), verdict, self.contact()).into()
    }

    fn unreachable(
        &self,
        failure: FetchFailure,
        retry_at: Option<std::time::SystemTime>,
    ) -> AtStart {
        let origin = self.key.origin.clone();
        let refusal = match failure {
            FetchFailure::NotPublic(address) => {
                AddressRefused::new(Some(origin), address, self.contact()).into()
            }
            failure => RobotsUnreachable::new(origin, failure, retry_at, self.contact()).into(),
        };
        AtStart::Refuse(Box::new(refusal))
    }

    /// A pause that this request would not wait for is a reason not to read robots.txt for it.
    fn outlook(&self) -> Result<(), Refusal> {
        let settings = &self.shared.settings;
        match &settings.hosts {
            Some(hosts) => hosts.outlook(&self.key.origin, self.purpose, settings.clock.now()),
            None => Ok(()),
        }
    }
}

impl<S, ReqBody, ResBody> Rules for Gate<S, ReqBody>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    ReqBody: Default + Send + 'static,
    ResBody: Body + Send + 'static,
    ResBody::Data: Send,
{
    fn at_start(&self, now: Now) -> AtStart {
        let answer = self.asking.ask(now);
        if let AtStart::Refuse(refusal) = &answer {
            events::robots_refused(refusal);
        }
        answer
    }

    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let asking = Arc::clone(&self.asking);
        let inner = self
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Box::pin(async move {
            if let Err(refusal) = asking.outlook() {
                asking.progress().refused = Some(Box::new(refusal));
                return;
            }
            let flight = asking.slot.join_or_start(|| {
                let reading = Reading {
                    shared: Arc::clone(&asking.shared),
                    slot: Arc::clone(&asking.slot),
                    key: asking.key.clone(),
                    identity: asking.identity.clone(),
                    purpose: asking.purpose,
                    visit: asking.visit.clone(),
                    epoch: asking.epoch(),
                };
                Flight::new(reading.run(inner))
            });
            let outcome = flight.await;
            let failing = asking.slot.lock().record.is_failing();
            let mut progress = asking.progress();
            match outcome {
                Ok(Ok(())) if failing => progress.failed_readings += 1,
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => progress.refused = Some(Box::new(refusal)),
                Err(_panicked) => {
                    let leaf = RobotsUnreachable::new(
                        asking.key.origin.clone(),
                        FetchFailure::NoResponse,
                        None,
                        asking.contact(),
                    );
                    progress.refused = Some(Box::new(leaf.into()));
                }
            }
        })
    }
}

/// Path and query, as robots.txt matches them.
#[derive(Debug)]
pub(super) struct Target {
    sent: Box<str>,
    /// What a server that resolves dot segments makes of it, where it has any: a rule for that path is not got round by
    /// spelling it `/open/../closed`.
    resolved: Option<Box<str>>,
}

impl Target {
    pub(super) fn new(origin: &Origin, sent: &str) -> Self {
        let path = sent.split_once('?').map_or(sent, |(path, _)| path);
        let plain = path.replace("%2e", ".").replace("%2E", ".");
        let resolved = plain.contains("/.").then(|| {
            let query = &sent[path.len()..];
            let url = resolve(&origin.to_string(), &format!("{plain}{query}"));
            url.and_then(|url| url.strip_prefix(&origin.to_string()).map(Into::into))
        });
        Self {
            sent: sent.into(),
            resolved: resolved.flatten(),
        }
    }

    fn check(&self, group: &Group<'_>) -> Verdict {
        let verdict = group.check(self.sent.as_bytes());
        match &self.resolved {
            Some(resolved) if verdict.allowed() => group.check(resolved.as_bytes()),
            _ => verdict,
        }
    }
}

impl<S, ReqBody> fmt::Debug for Gate<S, ReqBody> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("origin", &self.asking.key.origin)
            .field("target", &self.asking.target)
            .finish_non_exhaustive()
    }
}
