//! One reading of robots.txt: the request, its redirects, its body, and what it means for the record.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::retry_after::RetryAfter;
use etiquette_core::decide::robots_txt::{
    FetchFailure, RobotsOutcome, RobotsPolicy, RobotsResponse, RobotsStatus, StoredRobots,
};
use etiquette_core::store::{Claim, RobotsKey, StoreFailed};
use etiquette_core::vocabulary::identity::Identity;
use etiquette_core::{Now, Origin, PurposeKind, Refusal};
use etiquette_robots::{Robots, resolve};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower_service::Service;

use super::layer::Shared;
use super::table::{Key, Slot};
use crate::BoxError;
use crate::events::{self, Event};
use crate::ext::{AtStart, Context, Rules, Visit};
use crate::ready::ready;

/// What a reading leaves for those who waited for it. `Err`: nothing was read because the host does not admit the
/// request; the record has not changed.
pub(super) type Outcome = Result<(), Refusal>;

/// The longest time that a reading may wait for its host's budget to let it start: the longest `max_wait`.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long a store may take for one call before it counts as failed.
const STORE_TIME: Duration = Duration::from_secs(5);

/// One reading, for whoever waits for it.
pub(super) struct Reading {
    pub(super) shared: Arc<Shared>,
    pub(super) slot: Arc<Slot>,
    pub(super) key: Key,
    pub(super) identity: Identity,
    pub(super) purpose: PurposeKind,
    pub(super) visit: Option<Visit>,
    pub(super) epoch: u64,
}

/// What the response to the last request of a reading came to.
enum Read {
    Rules(Bytes, HeaderMap),
    Unavailable(HeaderMap),
    Closed(http::StatusCode, HeaderMap),
    NotModified(HeaderMap),
    FetchFailure(FetchFailure, Option<Duration>),
    Refused(Refusal),
}

impl Read {
    fn name(&self) -> &'static str {
        match self {
            Self::Rules(..) => "rules",
            Self::Unavailable(_) => "none",
            Self::Closed(..) => "closed",
            Self::NotModified(_) => "unchanged",
            Self::FetchFailure(..) => "unreachable",
            Self::Refused(_) => "not_admitted",
        }
    }
}

/// A call of a store that took too long has failed.
fn flat<T>(outcome: Result<Result<T, StoreFailed>, Elapsed>) -> Result<T, ()> {
    outcome.map_err(drop)?.map_err(drop)
}

impl Reading {
    /// Reads robots.txt through `inner` and puts the outcome into the record, and into the store if there is one.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: the next one who asks reads anew.
    pub(super) async fn run<S, ReqBody, ResBody>(self, inner: S) -> Outcome
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
    {
        let origin = &self.key.origin;
        if self.known_to_store().await {
            self.slot.lock().reading_ended();
            let outcome = "stored";
            events::tell(|| Event::RobotsRead { origin, outcome });
            return Ok(());
        }
        let started = Arc::new(Started::new(self.crawl_delay()));
        let read = self
            .within_time(&started, self.follow(inner, &started))
            .await;
        let mut bytes = None;
        let name = read.name();
        let outcome = self.keep(read, &mut bytes);
        events::tell(|| Event::RobotsRead {
            origin,
            outcome: name,
        });
        if let (Some(store), Ok(())) = (&self.shared.settings.store, &outcome) {
            let now = self.shared.settings.clock.now();
            let record = self.slot.lock().record.to_stored(now, bytes);
            // A store that fails is as good as none: the record at hand holds.
            let saved = timeout(STORE_TIME, store.save(&self.stored_key(), record)).await;
            events::taken("robots", "keep robots.txt", flat(saved));
        }
        self.slot.lock().reading_ended();
        outcome
    }

    fn keep(&self, read: Read, raw: &mut Option<Bytes>) -> Outcome {
        let policy = &self.shared.settings.policy;
        let now = self.shared.settings.clock.now().monotonic;
        let record = &mut self.slot.lock().record;
        match read {
            Read::Rules(bytes, headers) => {
                let robots = RobotsOutcome::Rules(self.parse(&bytes));
                *raw = Some(bytes);
                record.keep(robots, &headers, policy, now, self.epoch);
            }
            Read::Unavailable(headers) => {
                record.keep(
                    RobotsOutcome::Unavailable,
                    &headers,
                    policy,
                    now,
                    self.epoch,
                );
            }
            Read::Closed(status, headers) => {
                record.keep(
                    RobotsOutcome::Closed(status),
                    &headers,
                    policy,
                    now,
                    self.epoch,
                );
            }
            Read::NotModified(headers) => record.confirm(&headers, policy, now, self.epoch),
            Read::FetchFailure(failure, after) => record.fail(failure, after, now),
            Read::Refused(refusal) => return Err(refusal),
        }
        Ok(())
    }

    fn parse(&self, bytes: &[u8]) -> Robots {
        let tokens = std::iter::once(&self.key.tokens.crawl).chain(&self.key.tokens.user);
        let limit = self.shared.settings.policy.get_max_bytes();
        Robots::builder()
            .tokens(tokens.cloned())
            .max_bytes(limit)
            .parse(bytes)
    }

    fn stored_key(&self) -> RobotsKey {
        RobotsKey {
            origin: self.key.origin.clone(),
            token: self.key.tokens.crawl.clone(),
        }
    }

    /// Whether the store knows what holds, from before a restart or from another process. While another process reads
    /// the file this one waits for it, but not longer than a reading may take.
    async fn known_to_store(&self) -> bool {
        let settings = &self.shared.settings;
        let Some(store) = &settings.store else {
            return false;
        };
        self.sit_out_the_pause().await;
        let key = self.stored_key();
        let end = Instant::now() + settings.policy.get_timeout();
        let mut claimed = false;
        loop {
            let loaded = timeout(STORE_TIME, store.load(&key)).await;
            if let Some(Some(stored)) = events::taken("robots", "look up robots.txt", flat(loaded))
            {
                let now = settings.clock.now();
                let hosts = settings.hosts.as_ref();
                let delay = hosts
                    .map(|hosts| hosts.delay(&self.key.origin))
                    .unwrap_or_default();
                let epoch = self.epoch_of(&stored, now);
                let known = {
                    let record = &mut self.slot.lock().record;
                    record.restore(stored, |bytes| self.parse(bytes), now, epoch);
                    let known = match record.status(now.monotonic, delay, self.epoch) {
                        RobotsStatus::Fetch => false,
                        // The pause that came with the 429 holds the next reading back: this one may wait for it.
                        RobotsStatus::Closed {
                            failure: FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS),
                            ..
                        } => hosts.is_none(),
                        _ => true,
                    };
                    known.then(|| record.to_stored(now, None))
                };
                if let Some(known) = known {
                    if claimed {
                        // The claim ends with it.
                        let saved = timeout(STORE_TIME, store.save(&key, known)).await;
                        events::taken("robots", "give up a reading", flat(saved));
                    }
                    return true;
                }
            }
            if claimed {
                return false;
            }
            let claim = timeout(STORE_TIME, store.claim(&key)).await;
            match events::taken("robots", "claim a reading", flat(claim)) {
                Some(Claim::Taken(wait)) if Instant::now() + wait < end => sleep(wait).await,
                // Another process may have ended its reading between the look and the claim: look once more.
                Some(Claim::Granted) => claimed = true,
                _ => return false,
            }
        }
    }

    /// A copy that was confirmed before the host's last pause began is of an earlier epoch, whoever has read it.
    fn epoch_of(&self, stored: &StoredRobots, now: Now) -> u64 {
        let hosts = self.shared.settings.hosts.as_ref();
        let began = hosts.and_then(|hosts| hosts.epoch_began(&self.key.origin));
        match (&stored.copy, began) {
            (Some(copy), Some(began)) if copy.confirmed < now.wall_at(began) => {
                self.epoch.wrapping_sub(1)
            }
            _ => self.epoch,
        }
    }

    /// While the host is paused the file cannot be read: a claim on it would end before its turn, and each process would
    /// read it after the pause. A pause that is longer than a request may wait is for the line to refuse.
    async fn sit_out_the_pause(&self) {
        let settings = &self.shared.settings;
        let Some(hosts) = &settings.hosts else {
            return;
        };
        loop {
            let now = settings.clock.now().monotonic;
            let until = hosts.paused_until(&self.key.origin, now);
            let left = until.map(|until| until - now);
            match left.filter(|left| *left <= hosts.policy().max_wait_for(self.purpose)) {
                Some(left) => sleep(left).await,
                None => return,
            }
        }
    }

    /// The Crawl-delay of the copy that is read anew: it holds for this request too.
    fn crawl_delay(&self) -> Option<Duration> {
        match self.slot.lock().record.outcome() {
            Some(RobotsOutcome::Rules(robots)) => {
                robots.group(&self.key.tokens.crawl).crawl_delay()
            }
            _ => None,
        }
    }

    /// Ends `reading` as unreachable when a request of it takes too long. Its time counts from its start: waiting for
    /// the host's budget is nobody's failure.
    async fn within_time(&self, started: &Started, reading: impl Future<Output = Read>) -> Read {
        let settings = &self.shared.settings;
        let time = settings.policy.get_timeout();
        let asked = Instant::now();
        let last = asked
            + if settings.hosts.is_some() {
                LONGEST_WAIT + time
            } else {
                time
            };
        let mut reading = pin!(reading);
        let mut sleep = pin!(sleep_until(last));
        poll_fn(|cx| {
            if let Poll::Ready(read) = reading.as_mut().poll(cx) {
                return Poll::Ready(read);
            }
            // A request may have started in this very poll.
            let end = started.at().map_or(last, |start| last.min(start + time));
            if sleep.deadline() != end {
                sleep.as_mut().reset(end);
            }
            sleep
                .as_mut()
                .poll(cx)
                .map(|()| Read::FetchFailure(FetchFailure::NoResponse, None))
        })
        .await
    }

    async fn follow<S, ReqBody, ResBody>(&self, mut inner: S, started: &Arc<Started>) -> Read
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
    {
        let settings = &self.shared.settings;
        let Some(mut uri) = self.key.origin.uri("/robots.txt") else {
            return Read::FetchFailure(FetchFailure::NoResponse, None);
        };
        for hop in 0..=RobotsPolicy::REDIRECTS {
            let request = self.request(&uri, hop == 0, started);
            let response = match send(&mut inner, request).await {
                Ok(response) => response,
                Err(error) => return failed(&error, hop),
            };
            let (parts, body) = response.into_parts();
            match RobotsResponse::read(parts.status, &parts.headers, &settings.policy) {
                RobotsResponse::Rules => return self.rules(parts.headers, body).await,
                RobotsResponse::NotModified if hop == 0 => return Read::NotModified(parts.headers),
                RobotsResponse::Unavailable => return Read::Unavailable(parts.headers),
                RobotsResponse::Closed => return Read::Closed(parts.status, parts.headers),
                RobotsResponse::Redirect(location) => match target(&uri, &location) {
                    Some(target) => uri = target,
                    None => return Read::FetchFailure(FetchFailure::InvalidRedirect, None),
                },
                RobotsResponse::FetchFailure(failure) => {
                    let after = self.asked_to_wait(&parts.headers);
                    return Read::FetchFailure(failure, after);
                }
                _ => return Read::FetchFailure(FetchFailure::Status(parts.status), None),
            }
            // The body of a redirect holds its permit until it is gone: before the next hop asks for one.
            drop(body);
        }
        Read::FetchFailure(FetchFailure::TooManyRedirects, None)
    }

    fn request<ReqBody: Default>(
        &self,
        uri: &Uri,
        conditional: bool,
        started: &Arc<Started>,
    ) -> Request<ReqBody> {
        let mut request = Request::new(ReqBody::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.insert(
            header::USER_AGENT,
            self.identity.user_agent(self.purpose).clone(),
        );
        if let Some(from) = self
            .identity
            .from()
            .filter(|_| self.purpose != PurposeKind::UserFetch)
        {
            headers.insert(header::FROM, from.clone());
        }
        // Anything else at a low weight: a strict server's 406 would read as "no rules".
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/plain, */*;q=0.1"),
        );
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        if conditional && let Some(validators) = self.slot.lock().record.validators() {
            validators.apply(headers);
        }
        let context = Context::of(request.extensions_mut());
        context.identity = Some(self.identity.clone());
        context.reads_robots_txt = true;
        context.visit = self.visit.clone();
        context.rules = Some(Arc::clone(started) as Arc<dyn Rules>);
        request
    }

    /// Reads the body up to the limit. What lies beyond is left unread.
    async fn rules<B: Body>(&self, headers: HeaderMap, body: B) -> Read {
        let limit = self.shared.settings.policy.get_max_bytes();
        let mut bytes = Vec::new();
        let mut body = pin!(body);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                return Read::FetchFailure(FetchFailure::IncompleteBody, None);
            };
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            while bytes::Buf::has_remaining(&data) && bytes.len() <= limit {
                let chunk = bytes::Buf::chunk(&data);
                let take = chunk.len().min(limit + 1 - bytes.len());
                bytes.extend_from_slice(&chunk[..take]);
                bytes::Buf::advance(&mut data, take);
            }
            if bytes.len() > limit {
                break;
            }
        }
        Read::Rules(bytes.into(), headers)
    }

    fn asked_to_wait(&self, headers: &HeaderMap) -> Option<Duration> {
        RetryAfter::of(headers, self.shared.settings.clock.now().wall).wait()
    }
}

async fn send<S, R>(inner: &mut S, request: R) -> Result<S::Response, BoxError>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
{
    ready(inner).await.map_err(Into::into)?;
    inner.call(request).await.map_err(Into::into)
}

/// Where a redirect leads, if it leads to a place that HTTP can ask.
fn target(from: &Uri, location: &[u8]) -> Option<Uri> {
    let location = String::from_utf8_lossy(location);
    let target: Uri = resolve(&from.to_string(), &location)?.parse().ok()?;
    Origin::of(&target).is_ok().then_some(target)
}

/// An error of the inner service: the host's own refusal is passed on, anything else is a site that gave no answer.
///
/// An address that is not connected to is no fault of a site where nobody was asked. At a later `hop` the site was, and
/// its redirect is what failed: without a back-off it would be asked again for each page.
fn failed(error: &BoxError, hop: usize) -> Read {
    let error: &(dyn Error + 'static) = error.as_ref();
    match Refusal::find(error) {
        Some(Refusal::Address(leaf)) if hop > 0 => {
            Read::FetchFailure(FetchFailure::NotPublic(leaf.address), None)
        }
        Some(refusal) => Read::Refused(refusal.clone()),
        None => Read::FetchFailure(FetchFailure::NoResponse, None),
    }
}

/// The rules of a request for robots.txt itself: always allowed. Knows since when it is under way, if it is.
#[derive(Debug)]
struct Started {
    crawl_delay: Option<Duration>,
    at: Mutex<Option<Instant>>,
}

impl Started {
    fn new(crawl_delay: Option<Duration>) -> Self {
        Self {
            crawl_delay,
            at: Mutex::new(None),
        }
    }

    fn at(&self) -> Option<Instant> {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rules for Started {
    /// Asked while the request waits, and for the last time just before it starts.
    fn at_start(&self, _: Now) -> AtStart {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = None;
        AtStart::Go {
            crawl_delay: self.crawl_delay,
        }
    }

    fn started(&self) {
        *self.at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}
