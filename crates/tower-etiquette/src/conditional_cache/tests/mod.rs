//! What several callers, bodies that break, and other purposes make of the layer.

mod large;
mod partial;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::store::ResponseStore;
use etiquette_core::{Purpose, Refusal, Session};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use tokio::time::{Instant, sleep};
use tower::{ServiceExt, service_fn};
use tower_layer::Layer;
use tower_service::Service;

use super::{ConditionalCacheLayer, MemoryStore, ResponseBody, ResponseFuture};
use crate::context::Context as RequestContext;
use crate::{BoxError, Facts};

/// A body whose chunks come one second apart; an empty chunk is an error.
pub(super) struct Slow {
    chunks: VecDeque<&'static [u8]>,
    due: Pin<Box<tokio::time::Sleep>>,
    dropped: Arc<AtomicUsize>,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.due.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        let next = Instant::now() + Duration::from_secs(1);
        self.due.as_mut().reset(next);
        Poll::Ready(self.chunks.pop_front().map(|chunk| match chunk {
            b"" => Err("broken".into()),
            chunk => Ok(Frame::data(Bytes::from_static(chunk))),
        }))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

/// A site whose head takes a second.
#[derive(Clone, Default)]
pub(super) struct Site {
    asked: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
    fields: Arc<Mutex<Vec<(&'static str, &'static str)>>>,
    chunks: Arc<Mutex<Vec<&'static [u8]>>>,
    status: Arc<Mutex<u16>>,
    seen: Arc<Mutex<Vec<http::HeaderMap>>>,
}

impl Site {
    pub(super) fn new(fields: &[(&'static str, &'static str)], chunks: &[&'static str]) -> Self {
        let site = Self::default();
        *site.status.lock().unwrap() = 200;
        *site.fields.lock().unwrap() = fields.to_vec();
        *site.chunks.lock().unwrap() = chunks.iter().map(|chunk| chunk.as_bytes()).collect();
        site
    }

    fn fresh(chunks: &[&'static str]) -> Self {
        Self::new(&[("cache-control", "max-age=60")], chunks)
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    async fn answer(self, request: Request<Empty<Bytes>>) -> Result<Response<Slow>, BoxError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().unwrap().push(request.headers().clone());
        sleep(Duration::from_secs(1)).await;
        let status = *self.status.lock().unwrap();
        if status == 0 {
            return Err("no answer".into());
        }
        let mut response = Response::builder().status(status);
        for (name, value) in self.fields.lock().unwrap().iter() {
            response = response.header(*name, *value);
        }
        let body = Slow {
            chunks: self.chunks.lock().unwrap().iter().copied().collect(),
            due: Box::pin(sleep(Duration::from_secs(1))),
            dropped: Arc::clone(&self.dropped),
        };
        Ok(response.body(body).unwrap())
    }

    pub(super) fn behind<St: ResponseStore>(
        &self,
        layer: &ConditionalCacheLayer<St>,
    ) -> impl Service<
        Request<Empty<Bytes>>,
        Response = Response<ResponseBody>,
        Error = BoxError,
        Future = ResponseFuture,
    > + Clone
    + Send
    + use<St> {
        let site = self.clone();
        layer.layer(service_fn(move |request| site.clone().answer(request)))
    }
}

pub(super) fn get() -> Request<Empty<Bytes>> {
    Request::get("http://site.example/page")
        .body(Empty::new())
        .unwrap()
}

fn status<B>(response: &Response<B>) -> CacheStatus {
    Facts::of(response).unwrap().cache_status().unwrap()
}

pub(super) async fn text<B: Body<Data = Bytes, Error = BoxError>>(response: Response<B>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn is_hit<B>(response: &Response<B>) -> bool {
    matches!(status(response), CacheStatus::Hit { .. })
}

#[tokio::test(start_paused = true)]
async fn a_hundred_callers_cost_one_request_and_stream_together() {
    for fields in [
        &[("cache-control", "max-age=60"), ("content-length", "9")][..],
        &[("cache-control", "max-age=60")][..],
        &[("etag", "\"a\"")][..],
    ] {
        let site = Site::new(fields, &["one", "two", "six"]);
        let client = site.behind(&ConditionalCacheLayer::new());
        let start = Instant::now();
        let tasks: Vec<_> = (0..100)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { text(client.oneshot(get()).await.unwrap()).await })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap(), "onetwosix");
        }
        assert_eq!(site.asked(), 1, "{fields:?}");
        // A second for the head and one for each chunk; the end of an unknown length takes one more.
        assert!(start.elapsed() <= Duration::from_secs(5));
    }
}

#[tokio::test(start_paused = true)]
async fn two_services_of_one_layer_ask_once() {
    let site = Site::fresh(&["x"]);
    let layer = ConditionalCacheLayer::new();
    let (a, b) = (site.behind(&layer), site.behind(&layer.clone()));
    let (a, b) = tokio::join!(a.oneshot(get()), b.oneshot(get()));
    assert_eq!(
        tokio::join!(text(a.unwrap()), text(b.unwrap())),
        ("x".into(), "x".into())
    );
    assert_eq!(site.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_who_gives_up_leaves_the_request_to_the_others() {
    // Before the head.
    let site = Site::fresh(&["one", "two"]);
    let client = site.behind(&ConditionalCacheLayer::new());
    let first = tokio::spawn(client.clone().oneshot(get()));
    tokio::task::yield_now().await;
    let second = tokio::spawn(client.clone().oneshot(get()));
    sleep(Duration::from_millis(500)).await;
    first.abort();
    assert_eq!(text(second.await.unwrap().unwrap()).await, "onetwo");
    assert_eq!(site.asked(), 1);

    // In the middle of the body.
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("content-length", "6")],
        &["one", "two"],
    );
    let client = site.behind(&ConditionalCacheLayer::new());
    let mut first = client.clone().oneshot(get()).await.unwrap().into_body();
    first.frame().await.unwrap().unwrap();
    let second = client.clone().oneshot(get()).await.unwrap();
    assert!(matches!(
        status(&second),
        CacheStatus::Forwarded {
            collapsed: true,
            ..
        }
    ));
    drop(first);
    assert_eq!(text(second).await, "onetwo");
    assert!(is_hit(&client.oneshot(get()).await.unwrap()));
    assert_eq!(site.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn when_all_give_up_the_request_ends_and_nothing_is_stored() {
    let site = Site::fresh(&["one", "two"]);
    let layer = ConditionalCacheLayer::new();
    let client = site.behind(&layer);
    let mut body = client.clone().oneshot(get()).await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(site.dropped.load(Ordering::SeqCst), 1);
    assert!(layer.get_store().is_empty());
    let again = client.oneshot(get()).await.unwrap();
    assert_eq!(text(again).await, "onetwo");
    assert_eq!(site.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_does_not_read_holds_nobody() {
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("content-length", "6")],
        &["one", "two"],
    );
    let client = site.behind(&ConditionalCacheLayer::new());
    let unread = client.clone().oneshot(get()).await.unwrap();
    let second = client.clone().oneshot(get()).await.unwrap();
    assert_eq!(text(second).await, "onetwo");
    assert!(is_hit(&client.oneshot(get()).await.unwrap()));
    assert_eq!(text(unread).await, "onetwo");
    assert_eq!(site.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_an_error_for_all_and_not_stored() {
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("content-length", "6")],
        &["one", ""],
    );
    let layer = ConditionalCacheLayer::new();
    let client = site.behind(&layer);
    let (a, b) = tokio::join!(client.clone().oneshot(get()), client.clone().oneshot(get()));
    for response in [a.unwrap(), b.unwrap()] {
        assert!(response.into_body().collect().await.is_err());
    }
    assert_eq!(site.asked(), 1);
    assert!(layer.get_store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_ends_early_is_an_error_and_not_stored() {
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("content-length", "9")],
        &["one"],
    );
    let layer = ConditionalCacheLayer::new();
    let response = site.behind(&layer).oneshot(get()).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    assert!(layer.get_store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_one_failure() {
    let site = Site::fresh(&[]);
    *site.status.lock().unwrap() = 0;
    let client = site.behind(&ConditionalCacheLayer::new());
    let (a, b) = tokio::join!(client.clone().oneshot(get()), client.clone().oneshot(get()));
    let mut texts = [a.unwrap_err().to_string(), b.unwrap_err().to_string()];
    texts.sort();
    assert_eq!(texts, ["no answer", "the shared request failed: no answer"]);
    assert_eq!(site.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_for_all_is_asked_for_by_each() {
    for fields in [
        &[("cache-control", "no-store")][..],
        &[("cache-control", "max-age=60"), ("vary", "accept")][..],
        &[("cache-control", "no-cache"), ("etag", "\"a\"")][..],
    ] {
        let site = Site::new(fields, &["x"]);
        let client = site.behind(&ConditionalCacheLayer::new());
        let mut other = get();
        other
            .headers_mut()
            .insert("accept", "text/plain".parse().unwrap());
        let (a, b) = tokio::join!(client.clone().oneshot(get()), client.clone().oneshot(other));
        drop(tokio::join!(text(a.unwrap()), text(b.unwrap())));
        assert_eq!(site.asked(), 2, "{fields:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_body_passes_and_is_not_held() {
    let layer = ConditionalCacheLayer::new().max_body(4);
    for fields in [
        &[("cache-control", "max-age=60"), ("content-length", "9")][..],
        &[("cache-control", "max-age=60")][..],
    ] {
        let site = Site::new(fields, &["one", "two", "six"]);
        let client = site.behind(&layer);
        let (a, b) = tokio::join!(client.clone().oneshot(get()), client.clone().oneshot(get()));
        let (a, b) = tokio::join!(text(a.unwrap()), text(b.unwrap()));
        assert_eq!((&*a, &*b), ("onetwosix", "onetwosix"));
        assert_eq!(site.asked(), 2, "{fields:?}");
        assert!(layer.get_store().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_validation_is_one_for_all() {
    let site = Site::new(&[("etag", "\"a\"")], &["x"]);
    let client = site.behind(&ConditionalCacheLayer::new());
    text(client.clone().oneshot(get()).await.unwrap()).await;
    *site.status.lock().unwrap() = 304;
    site.chunks.lock().unwrap().clear();
    let (a, b) = tokio::join!(client.clone().oneshot(get()), client.clone().oneshot(get()));
    for response in [a.unwrap(), b.unwrap()] {
        assert!(matches!(status(&response), CacheStatus::Validated { .. }));
        assert_eq!(text(response).await, "x");
    }
    assert_eq!(site.asked(), 2);
    assert_eq!(site.seen.lock().unwrap()[1]["if-none-match"], "\"a\"");
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_now_and_one_validation_meanwhile() {
    let says = [
        ("cache-control", "max-age=1, stale-while-revalidate=60"),
        ("etag", "\"a\""),
    ];
    let site = Site::new(&says, &["old"]);
    let layer = ConditionalCacheLayer::new();
    let client = site.behind(&layer);
    text(client.clone().oneshot(get()).await.unwrap()).await;
    sleep(Duration::from_secs(5)).await;
    *site.chunks.lock().unwrap() = vec![b"new"];
    let start = Instant::now();
    for _ in 0..3 {
        let stale = client.clone().oneshot(get()).await.unwrap();
        assert!(matches!(status(&stale), CacheStatus::Hit { ttl } if ttl < 0));
        assert_eq!(text(stale).await, "old");
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    sleep(Duration::from_millis(3_500)).await;
    assert_eq!(site.asked(), 2);
    assert_eq!(
        text(client.clone().oneshot(get()).await.unwrap()).await,
        "new"
    );

    // It ends with the last clone.
    sleep(Duration::from_secs(5)).await;
    let before = site.asked();
    text(client.clone().oneshot(get()).await.unwrap()).await;
    tokio::task::yield_now().await;
    assert_eq!(site.asked(), before + 1);
    let dropped = site.dropped.load(Ordering::SeqCst);
    drop((client, layer));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(site.dropped.load(Ordering::SeqCst), dropped);
}

#[tokio::test(start_paused = true)]
async fn a_change_meanwhile_keeps_the_old_answer_out() {
    let site = Site::fresh(&["old"]);
    let layer = ConditionalCacheLayer::new();
    let client = site.behind(&layer);
    let reading = client.clone().oneshot(get()).await.unwrap();
    let mut post = get();
    *post.method_mut() = http::Method::POST;
    client.clone().oneshot(post).await.unwrap();
    assert_eq!(text(reading).await, "old");
    assert!(layer.get_store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_if_cached_is_refused_without_a_request() {
    let site = Site::fresh(&["x"]);
    let client = site.behind(&ConditionalCacheLayer::new());
    let mut request = get();
    request
        .headers_mut()
        .insert("cache-control", "only-if-cached".parse().unwrap());
    let error = client.oneshot(request).await.unwrap_err();
    assert_eq!(Refusal::find(&*error).unwrap().kind(), "not_stored");
    assert_eq!(site.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn readings_of_robots_txt_pass_untouched() {
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("etag", "\"a\"")],
        &["x"],
    );
    let layer = ConditionalCacheLayer::new();
    let client = site.behind(&layer);
    for _ in 0..2 {
        let mut request = get();
        RequestContext::of(request.extensions_mut()).fetches_robots_txt = true;
        let response = client.clone().oneshot(request).await.unwrap();
        assert!(!response.headers().contains_key("cache-status"));
        text(response).await;
    }
    assert_eq!(site.asked(), 2);
    assert!(layer.get_store().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_a_person_asked_for_stays_in_the_session() {
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("etag", "\"a\"")],
        &["x"],
    );
    let layer = ConditionalCacheLayer::new();
    let client = site.behind(&layer);
    let session = Session::new();
    let ask = || {
        let mut request = get();
        let grant = session.grant(request.uri()).unwrap();
        request.extensions_mut().insert(Purpose::UserFetch(grant));
        request
    };
    text(client.clone().oneshot(ask()).await.unwrap()).await;
    assert!(layer.get_store().is_empty());
    assert!(is_hit(&client.clone().oneshot(ask()).await.unwrap()));
    // A crawl does not see it; the other way round is allowed while the copy is fresh.
    assert!(!is_hit(&client.clone().oneshot(get()).await.unwrap()));
    let elsewhere = Session::new();
    let mut request = get();
    let grant = elsewhere.grant(request.uri()).unwrap();
    text(client.clone().oneshot(get()).await.unwrap()).await;
    request.extensions_mut().insert(Purpose::UserFetch(grant));
    let before = site.asked();
    assert!(is_hit(&client.clone().oneshot(request).await.unwrap()));
    assert_eq!(site.asked(), before);
    // A validation stays in the session too.
    sleep(Duration::from_secs(120)).await;
    *site.status.lock().unwrap() = 304;
    let key = etiquette_core::store::ResponseKey::of(get().uri()).unwrap();
    let crawled = layer.get_store().get(&key).await.unwrap()[0]
        .head
        .initial_age();
    let response = client.clone().oneshot(ask()).await.unwrap();
    assert!(matches!(status(&response), CacheStatus::Validated { .. }));
    assert_eq!(
        layer.get_store().get(&key).await.unwrap()[0]
            .head
            .initial_age(),
        crawled
    );
}

#[tokio::test(start_paused = true)]
async fn ranges_of_a_stored_body() {
    let site = Site::new(
        &[("cache-control", "max-age=60"), ("etag", "\"a\"")],
        &["0123", "456789"],
    );
    let client = site.behind(&ConditionalCacheLayer::new());
    text(client.clone().oneshot(get()).await.unwrap()).await;
    let ask = async |range: &str| {
        let mut request = get();
        request
            .headers_mut()
            .insert("range", range.parse().unwrap());
        let response = client.clone().oneshot(request).await.unwrap();
        let field = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        let (code, place, length) = (
            response.status(),
            field("content-range"),
            field("content-length"),
        );
        (code.as_u16(), place, length, text(response).await)
    };
    let part = |code, place: &str, length: &str, body: &str| {
        (code, place.to_owned(), length.to_owned(), body.to_owned())
    };
    assert_eq!(
        ask("bytes=2-5").await,
        part(206, "bytes 2-5/10", "4", "2345")
    );
    assert_eq!(ask("bytes=-3").await, part(206, "bytes 7-9/10", "3", "789"));
    assert_eq!(ask("bytes=10-").await, part(416, "bytes */10", "0", ""));
    assert_eq!(site.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_a_miss() {
    use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
    use etiquette_core::store::{ResponseKey, StoreFailed, Variant};

    #[derive(Debug)]
    struct Broken;

    fn failed() -> StoreFailed {
        StoreFailed::new("work", "on purpose")
    }

    impl ResponseStore for Broken {
        async fn get(&self, _: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
            Err(failed())
        }
        async fn body(
            &self,
            _: &ResponseKey,
            _: &StoredResponse,
        ) -> Result<Option<Bytes>, StoreFailed> {
            Err(failed())
        }
        async fn put(
            &self,
            _: &ResponseKey,
            _: StoredResponse,
            _: Bytes,
            _: &[Selecting],
        ) -> Result<(), StoreFailed> {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Err(failed())
        }
        async fn update(
            &self,
            _: &ResponseKey,
            _: &Selecting,
            _: StoredResponse,
        ) -> Result<(), StoreFailed> {
            Err(failed())
        }
        async fn remove(&self, _: &ResponseKey, _: Option<&Selecting>) -> Result<(), StoreFailed> {
            Err(failed())
        }
    }

    let site = Site::fresh(&["one", "two"]);
    let answering = site.clone();
    let client = ConditionalCacheLayer::new()
        .store(Broken)
        .layer(service_fn(move |request| answering.clone().answer(request)));
    for _ in 0..2 {
        let response = client.clone().oneshot(get()).await.unwrap();
        assert_eq!(text(response).await, "onetwo");
    }
    assert_eq!(site.asked(), 2);
}

#[test]
fn the_layer_and_the_service_are_clone_send_and_sync() {
    fn check<T: Clone + Send + Sync + 'static>(_: &T) {}
    let inner = service_fn(|_: Request<Empty<Bytes>>| async {
        Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
    });
    let layer = ConditionalCacheLayer::<MemoryStore>::new();
    check(&layer);
    check(&layer.layer(inner));
}
