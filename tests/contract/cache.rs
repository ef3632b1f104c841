//! The cache between tower's neighbours: who asks, who waits, and what is kept of what broke off.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use tokio::time::{Sleep, sleep, timeout};
use tower::limit::ConcurrencyLimitLayer;
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_etiquette::conditional_cache::{CacheStatus, ConditionalCacheLayer};
use tower_etiquette::{BoxError, BoxedService, Facts};

use crate::probe::STEP;

const BODY: [&str; 3] = ["one", "two", "six"];

/// What the site does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    /// The head does not come.
    Fails,
    /// The service panics instead.
    Panics,
    /// The body breaks off after its first chunk.
    Breaks,
    /// The body ends after its first chunk as if that were all.
    Ends,
}

/// A site that must be ready on the instance that is called, and answers step by step.
#[derive(Debug)]
struct Site {
    ready: bool,
    log: Arc<Log>,
}

#[derive(Debug)]
struct Log {
    mood: Mutex<Mood>,
    asked: AtomicUsize,
    /// Requests and bodies under way.
    held: AtomicUsize,
}

/// Counts as under way until it is dropped.
#[derive(Debug)]
struct Held(Arc<Log>);

impl Held {
    fn new(log: &Arc<Log>) -> Self {
        log.held.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(log))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.held.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Clone for Site {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            log: Arc::clone(&self.log),
        }
    }
}

impl Service<Request<Empty<Bytes>>> for Site {
    type Response = Response<Steps>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Steps>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Empty<Bytes>>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "called without being ready"
        );
        self.log.asked.fetch_add(1, Ordering::SeqCst);
        let mood = *self.log.mood.lock().unwrap();
        let held = Held::new(&self.log);
        Box::pin(async move {
            sleep(STEP).await;
            match mood {
                Mood::Fails => return Err("no answer".into()),
                Mood::Panics => panic!("on purpose"),
                _ => {}
            }
            let body = Steps {
                chunks: BODY.to_vec(),
                mood,
                sleep: Box::pin(sleep(STEP)),
                _held: held,
            };
            let response = Response::builder()
                .header("cache-control", "max-age=60")
                .header("etag", "\"a\"")
                .header("content-length", "9");
            Ok(response.body(body).unwrap())
        })
    }
}

#[derive(Debug)]
struct Steps {
    chunks: Vec<&'static str>,
    mood: Mood,
    sleep: Pin<Box<Sleep>>,
    _held: Held,
}

impl Body for Steps {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let next = tokio::time::Instant::now() + STEP;
        self.sleep.as_mut().reset(next);
        match self.mood {
            _ if self.chunks.is_empty() => Poll::Ready(None),
            Mood::Breaks if self.chunks.len() < 3 => Poll::Ready(Some(Err("broken".into()))),
            Mood::Ends if self.chunks.len() < 3 => Poll::Ready(None),
            _ => {
                let chunk = self.chunks.remove(0);
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))))
            }
        }
    }
}

type Client = BoxedService<Empty<Bytes>>;

/// Where a limit of one stands.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    Over,
    Under,
}

const LIMITS: [Limit; 3] = [Limit::None, Limit::Over, Limit::Under];

fn client(limit: Limit, mood: Mood) -> (Client, Arc<Log>) {
    let log = Arc::new(Log {
        mood: Mutex::new(mood),
        asked: AtomicUsize::new(0),
        held: AtomicUsize::new(0),
    });
    let site = Site {
        ready: false,
        log: Arc::clone(&log),
    };
    let cache = ConditionalCacheLayer::new();
    let one = ConcurrencyLimitLayer::new(1);
    let client = match limit {
        Limit::None => BoxedService::new(ServiceBuilder::new().layer(cache).service(site)),
        Limit::Over => {
            BoxedService::new(ServiceBuilder::new().layer(one).layer(cache).service(site))
        }
        Limit::Under => {
            BoxedService::new(ServiceBuilder::new().layer(cache).layer(one).service(site))
        }
    };
    (client, log)
}

/// The body, and whether it came from the store.
async fn get(client: &Client) -> Result<(String, bool), BoxError> {
    let request = Request::get("http://site.example/page")
        .body(Empty::new())
        .unwrap();
    let response = client.clone().oneshot(request).await?;
    let status = Facts::of(&response).and_then(Facts::cache_status);
    let hit = status.as_ref().is_some_and(CacheStatus::is_from_store);
    let body = response.into_body().collect().await?.to_bytes();
    Ok((String::from_utf8(body.to_vec()).unwrap(), hit))
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(60);
    timeout(limit, work)
        .await
        .unwrap_or_else(|_| panic!("{what}: it hangs"))
}

fn whole(hit: bool) -> (String, bool) {
    ("onetwosix".to_owned(), hit)
}

fn assert_idle(log: &Log, when: &str) {
    assert_eq!(log.held.load(Ordering::SeqCst), 0, "{when}");
}

/// Moments that hit every step of an answer, and the instants between two.
fn moments() -> impl Iterator<Item = Duration> {
    let half = STEP / 2;
    (0..)
        .map(move |n| half * n)
        .take_while(|&at| at <= STEP * 6)
}

#[tokio::test(start_paused = true)]
async fn whenever_the_leader_is_dropped_another_goes_on_and_nothing_stays_behind() {
    for limit in LIMITS {
        for after in moments() {
            let when = format!("{limit:?}, dropped after {after:?}");
            let (client, log) = client(limit, Mood::Well);
            let leader = timeout(after, get(&client));
            let others = async { tokio::join!(get(&client), get(&client)) };
            let (_, others) = in_time(&when, async { tokio::join!(leader, others) }).await;
            assert_eq!(others.0.unwrap().0, "onetwosix", "{when}");
            assert_eq!(others.1.unwrap().0, "onetwosix", "{when}");
            assert_eq!(
                in_time(&when, get(&client)).await.unwrap(),
                whole(true),
                "{when}"
            );
            assert!(log.asked.load(Ordering::SeqCst) <= 2, "{when}");
            assert_idle(&log, &when);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_caller_who_is_dropped_leaves_nothing_stored_but_a_whole() {
    for limit in LIMITS {
        for after in moments() {
            let when = format!("{limit:?}, dropped after {after:?}");
            let (client, log) = client(limit, Mood::Well);
            let had_all = timeout(after, get(&client)).await.is_ok();
            assert_idle(&log, &when);
            let (body, hit) = in_time(&when, get(&client)).await.unwrap();
            assert_eq!(body, "onetwosix", "{when}");
            // One who has all of it finds it in the store; one who was dropped may have been late by an instant only.
            assert!(hit || !had_all, "{when}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_failure_is_one_request_and_an_error_for_all() {
    for limit in [Limit::None, Limit::Under] {
        for mood in [Mood::Fails, Mood::Panics, Mood::Breaks, Mood::Ends] {
            let when = format!("{limit:?}, {mood:?}");
            let (client, log) = client(limit, mood);
            let all = async { tokio::join!(get(&client), get(&client), get(&client)) };
            let all = in_time(&when, all).await;
            assert!(
                all.0.is_err() && all.1.is_err() && all.2.is_err(),
                "{when}: {all:?}"
            );
            assert_eq!(log.asked.load(Ordering::SeqCst), 1, "{when}");
            assert_idle(&log, &when);
            // Neither is it remembered, nor is any of the body.
            *log.mood.lock().unwrap() = Mood::Well;
            assert_eq!(
                in_time(&when, get(&client)).await.unwrap(),
                whole(false),
                "{when}"
            );
            assert_eq!(
                in_time(&when, get(&client)).await.unwrap(),
                whole(true),
                "{when}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_does_not_read_holds_neither_the_others_nor_the_store() {
    for limit in [Limit::None, Limit::Under] {
        let when = format!("{limit:?}");
        let (client, log) = client(limit, Mood::Well);
        let request = Request::get("http://site.example/page")
            .body(Empty::new())
            .unwrap();
        let unread = in_time(&when, client.clone().oneshot(request))
            .await
            .unwrap();
        assert_eq!(
            in_time(&when, get(&client)).await.unwrap(),
            whole(false),
            "{when}"
        );
        assert_eq!(
            in_time(&when, get(&client)).await.unwrap(),
            whole(true),
            "{when}"
        );
        assert_idle(&log, &when);
        let body = in_time(&when, unread.into_body().collect()).await.unwrap();
        assert_eq!(body.to_bytes(), "onetwosix", "{when}");
        assert_eq!(log.asked.load(Ordering::SeqCst), 1, "{when}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_answer_needs_no_permit_under_a_full_limit() {
    let (client, log) = client(Limit::Under, Mood::Well);
    assert_eq!(get(&client).await.unwrap(), whole(false));
    let other = Request::get("http://site.example/other")
        .body(Empty::new())
        .unwrap();
    let mut other = std::pin::pin!(client.clone().oneshot(other));
    // The only permit is taken by a request that nobody carries on.
    assert!(timeout(STEP / 2, &mut other).await.is_err());
    assert_eq!(in_time("a hit", get(&client)).await.unwrap(), whole(true));
    assert_eq!(log.asked.load(Ordering::SeqCst), 2);
}
