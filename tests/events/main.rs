//! What a program hears of its own requests: events and metrics.

mod broken;
mod metrics;
mod tracing;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use etiquette_tests::client::{self, fetch, identity};
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Site, SiteService};
use http::{Request, Response, header};
use http_body_util::Empty;
use tower::Service;
use tower_etiquette::hosts::HostsBuilder;
use tower_etiquette::{BoxError, Etiquette, HostPolicy, Hosts, Refusal};

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
    paused::run(future);
}

fn hosts() -> HostsBuilder {
    let policy = HostPolicy::new()
        .jitter(0.0, 0.0)
        .latency_factor(0)
        .min_delay(Duration::from_secs(2));
    Hosts::builder().policy(policy)
}

/// A site that answers the first page request with a 429, later ones with a page that is fresh for a minute.
fn site() -> SiteService {
    let page = Answer::status(200)
        .header("cache-control", "max-age=60")
        .etag("\"one\"")
        .body("hello");
    Site::builder()
        .at(
            "/robots.txt",
            Answer::text("User-agent: *\nDisallow: /private\n"),
        )
        .otherwise([Answer::retry_after(429, 30), page])
        .in_process()
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

/// The body of an answer to a request with credentials.
async fn get<S, B>(client: S, url: &str) -> Result<String, BoxError>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>, Error = BoxError>,
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut request = client::get(url);
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, SECRET.parse()?);
    let page = fetch(client, request).await?;
    Ok(String::from_utf8(page.body.to_vec())?)
}
