//! A site without sockets: a service that must be ready on the very instance that is called, and notes what arrives.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use tokio::time::{Instant, Sleep, sleep};
use tower::{Service, ServiceExt};
use tower_etiquette::identity::Identity;
use tower_etiquette::purpose::PurposeKind;
use tower_etiquette::{BoxError, BoxedService, Etiquette, HostPolicy, Hosts};

/// How long the head of an answer takes, and then its body.
pub(crate) const STEP: Duration = Duration::from_millis(40);

/// The Retry-After of the first answer to `/busy`.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// The delay of [`hosts`].
pub(crate) const DELAY: Duration = Duration::from_secs(1);

/// An instance that panics when it is called without having been ready; a clone of a ready one is not ready.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    ready: bool,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// One arrival.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) status: u16,
}

impl Probe {
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What arrived and was not robots.txt.
    pub(crate) fn pages(&self) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| seen.path != "/robots.txt");
        seen
    }
}

impl Clone for Probe {
    fn clone(&self) -> Self {
        Self {
            ready: false,
            seen: Arc::clone(&self.seen),
        }
    }
}

impl<B: Send + 'static> Service<Request<B>> for Probe {
    type Response = Response<Slow>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Slow>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        assert!(self.ready, "called without being ready");
        self.ready = false;
        let path = request.uri().path().to_owned();
        let mut seen = self.seen.lock().unwrap();
        let first = !seen.iter().any(|seen| seen.path == path);
        let (status, body) = match path.as_str() {
            "/robots.txt" => (200, "User-agent: *\nDisallow: /no\n"),
            "/busy" if first => (429, "later"),
            _ => (200, "a page"),
        };
        let name = request.headers().get(header::USER_AGENT);
        seen.push(Seen {
            at: Instant::now(),
            path,
            name: name.map_or_else(String::new, |n| n.to_str().unwrap().to_owned()),
            status,
        });
        Box::pin(async move {
            sleep(STEP).await;
            let mut response = Response::builder().status(status);
            if status == 429 {
                response = response.header(header::RETRY_AFTER, PAUSE.as_secs());
            }
            let body = Slow {
                bytes: Some(Bytes::from_static(body.as_bytes())),
                sleep: Box::pin(sleep(STEP)),
            };
            Ok(response.body(body).unwrap())
        })
    }
}

/// A body that comes a step later than its head.
#[derive(Debug)]
pub(crate) struct Slow {
    bytes: Option<Bytes>,
    sleep: Pin<Box<Sleep>>,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.bytes.is_some() && self.sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

pub(crate) type Client = BoxedService<Empty<Bytes>>;

pub(crate) fn identity() -> Identity {
    let link = "https://www.example.com/bot.html";
    Identity::builder("ExampleBot", "0.1", link)
        .build()
        .unwrap()
}

/// Host state of its own with a delay of a second, the same after fast answers and slow ones, and pauses of exact length.
pub(crate) fn hosts() -> Hosts {
    Hosts::new(
        HostPolicy::new()
            .min_delay(DELAY)
            .latency_factor(0)
            .jitter(0.0, 0.0),
    )
}

/// The whole stack over a probe.
pub(crate) fn stack(hosts: &Hosts) -> (Client, Probe) {
    let probe = Probe::default();
    let etiquette = Etiquette::new(identity()).hosts(hosts.clone());
    (etiquette.boxed(probe.clone()), probe)
}

pub(crate) const SITE: &str = "http://site.example";

/// GETs `path` and reads the body to its end; gives the status.
pub(crate) async fn get(client: &Client, path: &str) -> Result<u16, BoxError> {
    read(
        client,
        Request::get(format!("{SITE}{path}")).body(Empty::new())?,
    )
    .await
}

/// As [`get`], for stacks that give no name: the request brings its own.
pub(crate) async fn get_named(client: &Client, path: &str) -> Result<u16, BoxError> {
    let name = identity().user_agent(PurposeKind::Crawl).clone();
    let request = Request::get(format!("{SITE}{path}")).header(header::USER_AGENT, name);
    read(client, request.body(Empty::new())?).await
}

async fn read(client: &Client, request: Request<Empty<Bytes>>) -> Result<u16, BoxError> {
    let response = client.clone().oneshot(request).await?;
    let status = response.status().as_u16();
    response.into_body().collect().await?;
    Ok(status)
}

/// Ends the test when `future` needs longer than a day of the paused clock: it hangs.
pub(crate) async fn in_time<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(86_400), future)
        .await
        .unwrap_or_else(|_| panic!("hangs: {what}"))
}

/// The probe itself: it tells an instance that was ready from its clone.
#[tokio::test(start_paused = true)]
#[should_panic(expected = "called without being ready")]
async fn a_clone_of_a_ready_probe_is_not_ready() {
    let mut ready = Probe::default();
    let request = || Request::get(SITE).body(()).unwrap();
    ServiceExt::<Request<()>>::ready(&mut ready).await.unwrap();
    let mut clone = ready.clone();
    ready.call(request()).await.unwrap();
    drop(clone.call(request()));
}
