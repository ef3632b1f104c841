//! One fetch of robots.txt: the request, its redirects, its body, and what it means for the record.

use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::retry_after::RetryAfter;
use etiquette_core::decide::robots_txt::{
    FetchFailure, RobotsOutcome, RobotsPolicy, RobotsResponse,
};
use etiquette_core::{PurposeKind, Refusal};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body::Body;
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

use super::fetch_start::FetchStart;
use super::request::RobotsRequest;
use super::stored_copy::StoredCopy;
use super::table::FetchResult;
use crate::context::Context;
use crate::ready::{read_up_to, send};
use crate::redirect::redirect_target;
use crate::start_check::StartCheck;
use crate::{BoxError, events};

/// How long a fetch may wait for its host's budget to let it start: the longest `max_wait`.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(3600);

/// One fetch, for whoever waits for it.
pub(super) struct RobotsFetch {
    request: Arc<RobotsRequest>,
    epoch: u64,
}

/// What the last response of a fetch came to.
enum Fetched {
    /// What is known now, from a response with these fields; the bytes of a file with rules.
    Known(RobotsOutcome, HeaderMap, Option<Bytes>),
    NotModified(HeaderMap),
    Failed(FetchFailure, Option<Duration>),
    /// The host's budget let no request start.
    NotAdmitted(Refusal),
}

impl Fetched {
    /// The outcome in events.
    fn name(&self) -> &'static str {
        match self {
            Self::Known(RobotsOutcome::Rules(_), ..) => "rules",
            Self::Known(RobotsOutcome::Closed(_), ..) => "closed",
            Self::Known(..) => "none",
            Self::NotModified(_) => "unchanged",
            Self::Failed(..) => "unreachable",
            Self::NotAdmitted(_) => "not_admitted",
        }
    }
}

impl RobotsFetch {
    pub(super) fn new(request: &Arc<RobotsRequest>) -> Self {
        Self {
            epoch: request.epoch(),
            request: Arc::clone(request),
        }
    }

    /// Fetches robots.txt through `inner` and puts the outcome into the record, and into the store if there is one.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: the next one who asks fetches anew.
    pub(super) async fn run<S, ReqBody, ResBody>(self, inner: S) -> FetchResult
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
    {
        let origin = &self.request.key.origin;
        let store = StoredCopy::of(&self.request, self.epoch);
        if let Some(store) = &store
            && store.load().await
        {
            self.request.slot.lock().fetch_ended();
            events::robots_fetched(origin, "stored");
            return Ok(());
        }
        let start = Arc::new(FetchStart::new(self.crawl_delay()));
        let fetched = self.within_time(&start, self.follow(inner, &start)).await;
        let outcome = fetched.name();
        let kept = self.keep(fetched);
        events::robots_fetched(origin, outcome);
        let result = match (kept, store) {
            (Ok(bytes), Some(store)) => {
                store.save(bytes).await;
                Ok(())
            }
            (kept, _) => kept.map(drop),
        };
        self.request.slot.lock().fetch_ended();
        result
    }

    /// Puts what was fetched into the record. Returns the bytes of the file, if one came.
    fn keep(&self, fetched: Fetched) -> Result<Option<Bytes>, Refusal> {
        let policy = &self.request.config.policy;
        let now = self.request.config.clock.now().monotonic;
        let record = &mut self.request.slot.lock().record;
        match fetched {
            Fetched::Known(known, headers, bytes) => {
                record.keep(known, &headers, policy, now, self.epoch);
                return Ok(bytes);
            }
            Fetched::NotModified(headers) => record.confirm(&headers, policy, now, self.epoch),
            Fetched::Failed(failure, after) => record.fail(failure, after, now),
            Fetched::NotAdmitted(refusal) => return Err(refusal),
        }
        Ok(None)
    }

    /// The Crawl-delay of the copy that is fetched anew: it holds for this request too.
    fn crawl_delay(&self) -> Option<Duration> {
        match self.request.slot.lock().record.outcome() {
            Some(RobotsOutcome::Rules(robots)) => {
                let tokens = &self.request.key.tokens;
                robots.group(&tokens.crawl).crawl_delay()
            }
            _ => None,
        }
    }

    /// Ends `fetch` as unreachable when a request of it takes too long. Its time counts from its start: waiting for
    /// the host's budget is nobody's failure.
    async fn within_time(
        &self,
        start: &FetchStart,
        fetch: impl Future<Output = Fetched>,
    ) -> Fetched {
        let config = &self.request.config;
        let time = config.policy.get_timeout();
        let asked = Instant::now();
        let last = asked
            + if config.hosts.is_some() {
                MAX_QUEUE_TIME + time
            } else {
                time
            };
        let mut fetch = pin!(fetch);
        let mut sleep = pin!(sleep_until(last));
        poll_fn(|cx| {
            if let Poll::Ready(fetched) = fetch.as_mut().poll(cx) {
                return Poll::Ready(fetched);
            }
            // A request may have started in this very poll.
            let end = start.at().map_or(last, |start| last.min(start + time));
            if sleep.deadline() != end {
                sleep.as_mut().reset(end);
            }
            sleep
                .as_mut()
                .poll(cx)
                .map(|()| Fetched::Failed(FetchFailure::NoResponse, None))
        })
        .await
    }

    /// Sends the request, and those to where redirects lead.
    async fn follow<S, ReqBody, ResBody>(&self, mut inner: S, start: &Arc<FetchStart>) -> Fetched
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
    {
        let Some(mut uri) = self.request.key.origin.uri("/robots.txt") else {
            return Fetched::Failed(FetchFailure::NoResponse, None);
        };
        for hop in 0..=RobotsPolicy::REDIRECTS {
            let request = self.request(&uri, hop == 0, start);
            let response = match send(&mut inner, request).await {
                Ok(response) => response,
                Err(error) => return failed(&error, hop),
            };
            let (head, body) = response.into_parts();
            match RobotsResponse::read(head.status, &head.headers, &self.request.config.policy) {
                RobotsResponse::Rules => return self.rules(head.headers, body).await,
                RobotsResponse::NotModified if hop == 0 => {
                    return Fetched::NotModified(head.headers);
                }
                RobotsResponse::Unavailable => {
                    return Fetched::Known(RobotsOutcome::Unavailable, head.headers, None);
                }
                RobotsResponse::Closed => {
                    return Fetched::Known(RobotsOutcome::Closed(head.status), head.headers, None);
                }
                RobotsResponse::Redirect(location) => {
                    match redirect_target(&uri, &String::from_utf8_lossy(&location)) {
                        Some(target) => uri = target,
                        None => return Fetched::Failed(FetchFailure::InvalidRedirect, None),
                    }
                }
                RobotsResponse::FetchFailure(failure) => {
                    let now = self.request.config.clock.now().wall;
                    let after = RetryAfter::of(&head.headers, now).wait();
                    return Fetched::Failed(failure, after);
                }
                _ => return Fetched::Failed(FetchFailure::Status(head.status), None),
            }
            // The body of a redirect holds its permit until it is gone: before the next hop asks for one.
            drop(body);
        }
        Fetched::Failed(FetchFailure::TooManyRedirects, None)
    }

    fn request<ReqBody: Default>(
        &self,
        uri: &Uri,
        conditional: bool,
        start: &Arc<FetchStart>,
    ) -> Request<ReqBody> {
        let (identity, purpose) = (&self.request.identity, self.request.purpose);
        let mut request = Request::new(ReqBody::default());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, identity.user_agent(purpose).clone());
        let from = identity
            .from()
            .filter(|_| purpose != PurposeKind::UserFetch);
        if let Some(from) = from {
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
        if conditional && let Some(validators) = self.request.slot.lock().record.validators() {
            validators.apply(headers);
        }
        let context = Context::of(request.extensions_mut());
        context.identity = Some(identity.clone());
        context.fetches_robots_txt = true;
        context.visit = self.request.visit.clone();
        context.start_check = Some(Arc::clone(start) as Arc<dyn StartCheck>);
        request
    }

    /// Reads the body up to the limit; one byte more tells the parser that there is more.
    async fn rules<B: Body>(&self, headers: HeaderMap, body: B) -> Fetched {
        let limit = self.request.config.policy.get_max_bytes();
        match read_up_to(body, limit + 1).await {
            Ok(bytes) => {
                let rules = RobotsOutcome::Rules(self.request.parse(&bytes));
                Fetched::Known(rules, headers, Some(bytes.into()))
            }
            Err(_) => Fetched::Failed(FetchFailure::IncompleteBody, None),
        }
    }
}

/// An error of the inner service: the host's own refusal is passed on, anything else is a site that did not respond.
///
/// An address that is not connected to is no fault of a site where nobody was asked. At a later `hop` the site was, and
/// its redirect is what failed: without a back-off it would be asked again for each page.
fn failed(error: &BoxError, hop: usize) -> Fetched {
    let error: &(dyn Error + 'static) = error.as_ref();
    match Refusal::find(error) {
        Some(Refusal::Address(leaf)) if hop > 0 => {
            Fetched::Failed(FetchFailure::NotPublic(leaf.address), None)
        }
        Some(refusal) => Fetched::NotAdmitted(refusal.clone()),
        None => Fetched::Failed(FetchFailure::NoResponse, None),
    }
}
