//! Polls feeds in the order in which they are due.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::time::{Duration, SystemTime};

use etiquette_discovery::feed::{self, FeedState, Next, Poll};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use tower::{Service, ServiceExt};
use tower_etiquette::conditional_cache::CacheStatus;
use tower_etiquette::{BoxError, Clock, Facts, Refusal};

/// More hops than a feed that still exists has.
const MAX_HOPS: usize = 5;

/// The feeds and the client that asks for them.
pub(super) struct Poller<S> {
    client: S,
    feeds: Vec<Known>,
}

/// A feed between two polls.
struct Known {
    uri: Uri,
    state: FeedState,
    seen: HashSet<String>,
}

/// What a poll came to, for its line.
struct Outcome {
    what: What,
    next: Next,
}

enum What {
    /// A feed came, so many of its entries are new, and so it came.
    Feed {
        new: usize,
        how: &'static str,
    },
    /// A response that is no feed.
    Status(StatusCode),
    NotAFeed,
    Refused(String),
    Failed(String),
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed { new, how } => write!(f, "{how}, {new} new"),
            Self::Status(status) => write!(f, "{status}"),
            Self::NotAFeed => f.write_str("not a feed"),
            Self::Refused(why) => write!(f, "not sent: {why}"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl<S> Poller<S> {
    pub(super) fn new(client: S, feeds: &[Uri]) -> Self {
        let feeds = feeds.iter().map(|uri| Known {
            uri: uri.clone(),
            state: FeedState::new(),
            seen: HashSet::new(),
        });
        Self {
            client,
            feeds: feeds.collect(),
        }
    }

    /// Polls until `end`, so many times, or until no feed is left.
    pub(super) async fn run<ReqBody, ResBody>(
        &mut self,
        clock: &dyn Clock,
        end: Option<SystemTime>,
        polls: Option<usize>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), BoxError>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>>,
        S::Error: Into<BoxError>,
        ReqBody: Default,
        ResBody: Body,
        ResBody::Error: Into<BoxError>,
    {
        for _ in 0..polls.unwrap_or(usize::MAX) {
            let next = self
                .feeds
                .iter_mut()
                .filter(|feed| !feed.state.stopped)
                .min_by_key(|feed| feed.state.next_poll_at);
            let Some(feed) = next else {
                writeln!(out, "no feed is left")?;
                return Ok(());
            };
            if let Some(at) = feed.state.next_poll_at {
                if end.is_some_and(|end| at >= end) {
                    return Ok(());
                }
                // The wall clock may be set while we wait: look again before asking.
                while let Ok(left) = at.duration_since(clock.now().wall) {
                    if left.is_zero() {
                        break;
                    }
                    tokio::time::sleep(left).await;
                }
            }
            let began = time_of_day(clock);
            let asked = feed.uri.clone();
            let Outcome { what, next } = poll(&mut self.client, feed, clock).await;
            let moved = match &feed.state.moved_to {
                Some(to) if *to != asked => {
                    feed.uri = to.clone();
                    format!(", moved for good to {to}")
                }
                _ => String::new(),
            };
            write!(out, "{began}  {asked:<32}  {what}{moved}; ")?;
            match next {
                Next::At(at) => {
                    let wait = at.duration_since(clock.now().wall).unwrap_or_default();
                    writeln!(out, "next in {}", in_words(wait))?;
                }
                _ => writeln!(out, "never again")?,
            }
        }
        Ok(())
    }
}

/// One poll: the request, its redirects, and what follows from the answer.
async fn poll<S, ReqBody, ResBody>(client: &mut S, feed: &mut Known, clock: &dyn Clock) -> Outcome
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ReqBody: Default,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    let mut uri = feed.uri.clone();
    for _ in 0..=MAX_HOPS {
        let (status, headers, facts, body) = match ask(client, &uri).await {
            Ok(answer) => answer,
            Err(error) => return failed(feed, &error, clock),
        };
        let now = clock.now().wall;
        if matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            let redirect = Poll::Redirect {
                status,
                headers: &headers,
                from: &uri,
            };
            match feed.state.record(redirect, now) {
                Next::Follow(to) => {
                    uri = to;
                    continue;
                }
                next => {
                    let what = What::Status(status);
                    return Outcome { what, next };
                }
            }
        }
        let parsed = feed::parse(&uri, &body)
            .ok()
            .filter(|_| status == StatusCode::OK);
        let new = parsed.iter().flat_map(|parsed| &parsed.entries);
        let new = new
            .filter(|entry| feed.seen.insert(entry.id.clone()))
            .count();
        let what = match (&parsed, status) {
            (Some(_), _) => What::Feed {
                new,
                how: how(facts.cache_status()),
            },
            (None, StatusCode::OK) => What::NotAFeed,
            (None, status) => What::Status(status),
        };
        let answer = Poll::Response {
            status,
            headers: &headers,
            hints: parsed.map(|parsed| parsed.hints),
            changed: new > 0,
        };
        let next = feed.state.record(answer, now);
        return Outcome { what, next };
    }
    let next = feed.state.record(Poll::NoResponse, clock.now().wall);
    Outcome {
        what: What::Failed("too many redirects".into()),
        next,
    }
}

fn failed(feed: &mut Known, error: &BoxError, clock: &dyn Clock) -> Outcome {
    let now = clock.now().wall;
    match Refusal::find(&**error) {
        Some(refusal) => Outcome {
            what: What::Refused(refusal.explain().to_string()),
            next: feed.state.record(
                Poll::Refused {
                    retry_at: refusal.retry_at(),
                },
                now,
            ),
        },
        None => Outcome {
            what: What::Failed(error.to_string()),
            next: feed.state.record(Poll::NoResponse, now),
        },
    }
}

async fn ask<S, ReqBody, ResBody>(
    client: &mut S,
    uri: &Uri,
) -> Result<(StatusCode, HeaderMap, Facts, bytes::Bytes), BoxError>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ReqBody: Default,
    ResBody: Body,
    ResBody::Error: Into<BoxError>,
{
    let mut request = Request::new(ReqBody::default());
    *request.uri_mut() = uri.clone();
    let client = client.ready().await.map_err(Into::into)?;
    let response = client.call(request).await.map_err(Into::into)?;
    let facts = Facts::of(&response).cloned().unwrap_or_default();
    let (head, body) = response.into_parts();
    let body = Limited::new(body, feed::MAX_FEED)
        .collect()
        .await?
        .to_bytes();
    Ok((head.status, head.headers, facts, body))
}

/// How the body came.
fn how(status: Option<CacheStatus>) -> &'static str {
    match status {
        Some(CacheStatus::Hit { .. }) => "still fresh, not asked",
        Some(CacheStatus::Validated { .. }) => "304 not modified",
        Some(CacheStatus::StaleOnError { .. }) => "old copy",
        _ => "200",
    }
}

/// Hours and minutes of the day, GMT.
fn time_of_day(clock: &dyn Clock) -> String {
    let seconds = clock
        .now()
        .wall
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    format!("{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60)
}

fn in_words(wait: Duration) -> String {
    let minutes = wait.as_secs().div_ceil(60);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes} min"),
        (hours, 0) => format!("{hours} h"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}
