//! What a program hears of its own requests: events and metrics.

mod broken;
mod metrics;
mod tracing;

use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use tower::{Service, ServiceExt, service_fn};
use tower_etiquette::hosts::HostsBuilder;
use tower_etiquette::{BoxError, Etiquette, HostPolicy, Hosts, Identity, Refusal};

type Body = Full<Bytes>;

/// What must not be told to anybody who keeps logs.
const SECRET: &str = "secret";

/// One test at a time. `tracing` remembers for the whole process whether anybody listens to an event, and may ask the
/// thread that comes by first: one that listens to metrics only would silence it for a test that listens.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs on paused time, on this thread: whoever listens to the thread hears it all.
fn run(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing")
        .block_on(future);
}

fn hosts() -> HostsBuilder {
    let policy = HostPolicy::new()
        .jitter(0.0, 0.0)
        .latency_factor(0)
        .min_delay(Duration::from_secs(2));
    Hosts::builder().policy(policy)
}

/// A site that answers the first page request with a 429, later ones with a page that is fresh for a minute.
fn site() -> impl Service<
    Request<Body>,
    Response = Response<Body>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Body>, Infallible>> + Send,
> + Clone
+ Send
+ Sync
+ 'static {
    let pages = std::sync::Arc::new(AtomicU32::new(0));
    service_fn(move |request: Request<Body>| {
        let response = if request.uri().path() == "/robots.txt" {
            Response::new(Full::from("User-agent: *\nDisallow: /private\n"))
        } else if pages.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, 30.into());
            response
        } else if request.headers().contains_key(header::IF_NONE_MATCH) {
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let mut response = Response::new(Full::from("hello"));
            let headers = response.headers_mut();
            headers.insert(header::CACHE_CONTROL, "max-age=60".parse().unwrap());
            headers.insert(header::ETAG, "\"one\"".parse().unwrap());
            response
        };
        std::future::ready(Ok(response))
    })
}

fn identity() -> Identity {
    Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .build()
        .expect("a valid identity")
}

/// One page, through a store that fails.
async fn with_a_broken_store(hosts: Hosts) {
    let stack = Etiquette::new(identity()).hosts(hosts);
    let client = stack
        .cache(|cache| cache.store(broken::Broken))
        .boxed(site());
    let page = format!("http://site.example/page?token={SECRET}");
    let response = get(client, &page).await.expect("a broken store is a miss");
    assert_eq!(response, "hello");
}

/// A page behind a 429, the page again from the cache, again when it is stale, and one that robots.txt closes.
async fn story(hosts: Hosts) {
    let client = Etiquette::new(identity())
        .hosts(hosts.clone())
        .boxed(site());
    let page = format!("http://site.example/page?token={SECRET}");
    for pause in [0, 0, 120] {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let response = get(client.clone(), &page)
            .await
            .expect("no rule forbids it");
        assert_eq!(response, "hello");
    }
    let closed = format!("http://site.example/private?token={SECRET}");
    let error = get(client, &closed).await.expect_err("a rule forbids it");
    assert!(matches!(
        Refusal::find(&*error),
        Some(Refusal::Disallowed(_))
    ));
    let uri = closed.parse().expect("a valid URI");
    let origin = tower_etiquette::Origin::of(&uri).expect("an origin");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let start = hosts.try_start(&origin).expect("the delay is over");
    hosts.try_start(&origin).expect_err("the permit is taken");
    drop(start);
}

async fn get<S, B>(client: S, uri: &str) -> Result<String, BoxError>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let request = Request::get(uri)
        .header(header::AUTHORIZATION, SECRET)
        .body(Body::default())?;
    let response = client.oneshot(request).await?;
    let bytes = response.into_body().collect().await.map_err(Into::into)?;
    Ok(String::from_utf8(bytes.to_bytes().to_vec())?)
}
