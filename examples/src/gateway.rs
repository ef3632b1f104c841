//! A small reverse proxy around the layers: one upstream, HTTP/1.1, no retries, no redirects followed.
//!
//! It forwards method, target, query and body as they came, removes what concerns one connection only (RFC 9110, 7.6.1),
//! adds Via, and hands trailers on. A refusal of a layer becomes a problem response; an upstream that cannot be reached,
//! 502. The upstream is the operator's choice; where its robots.txt redirects elsewhere, only public addresses are asked.
//! Interim responses are not forwarded: hyper's servers cannot send them.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use clap::{Parser, ValueEnum};
use etiquette_core::decide::address::{AddressRefused, is_public};
use http::header::{HOST, HeaderValue, TE, TRAILER, VIA};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tower::{Service, ServiceExt};
use tower_etiquette::RefusalLayer;
use tower_etiquette::conditional_cache::{ConditionalCacheLayer, Heuristic};
use tower_etiquette::{
    Accept, AcceptLayer, Body, BoxError, BoxedService, HostBudgetLayer, HostPolicy, Hosts,
    Identity, Origin, Refusal, RetryAfterLayer, RobotsLayer, UserAgentLayer,
};
use tower_layer::Layer;

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(about = "A small reverse proxy with the named layers in it")]
pub struct Options {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8002")]
    pub listen: SocketAddr,
    /// The site behind it: scheme, host and port.
    #[arg(long)]
    pub upstream: Uri,
    /// The layers, in any order; each stands where it belongs.
    #[arg(long, value_delimiter = ',')]
    pub layers: Vec<Name>,
    /// The cache serves several users, and guesses the lifetimes that are not stated.
    #[arg(long)]
    pub shared_cache: bool,
    /// The bytes of responses that the cache keeps in memory.
    #[arg(long, default_value_t = 256 << 20)]
    pub cache_bytes: usize,
    /// The product token, for the layers that name the client.
    #[arg(long, default_value = "ExampleBot")]
    pub token: String,
    /// The version beside it.
    #[arg(long, default_value = "0.1")]
    pub bot_version: String,
    /// The page that says who this is.
    #[arg(long, default_value = "https://www.example.com/bot.html")]
    pub info_url: String,
    /// Allows loopback, private and other addresses that are not public beside the upstream's, where its robots.txt
    /// redirects to one.
    #[arg(long)]
    pub allow_private: bool,
    /// The threads that answer. Default: as many as the machine runs at once.
    #[arg(long)]
    pub workers: Option<NonZeroUsize>,
    /// The shortest delay between two requests, for the budget, in seconds.
    #[arg(long, default_value_t = 1.0)]
    pub delay: f64,
}

/// A layer's name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Name {
    /// The client's own name on each request.
    UserAgent,
    /// What it reads.
    Accept,
    /// The rules of the site.
    Robots,
    /// Stored responses.
    Cache,
    /// Pauses that the site asks for.
    RetryAfter,
    /// Permits and delays.
    Budget,
}

/// The body of a request on its way through: what the caller sends, or nothing for a request of a layer's own.
#[derive(Debug, Default)]
pub struct Passed(Option<Incoming>);

impl HttpBody for Passed {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Some(body) => body.size_hint(),
            None => SizeHint::with_exact(0),
        }
    }
}

/// Serves until Ctrl-C.
///
/// # Errors
/// When an option does not hold together, or the address cannot be listened on.
pub async fn run(options: Options, out: &mut (dyn Write + Send)) -> Result<(), BoxError> {
    let listener = TcpListener::bind(options.listen).await?;
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    tokio::select! {
        ended = serve(listener, &options) => ended,
        ended = tokio::signal::ctrl_c() => Ok(ended?),
    }
}

/// Serves what `listener` accepts until the future is dropped; its connections end with it.
///
/// # Errors
/// When an option does not hold together, or a worker cannot be started.
pub async fn serve(listener: TcpListener, options: &Options) -> Result<(), BoxError> {
    let stack = stack(options)?;
    let workers = options.workers.map_or_else(workers, NonZeroUsize::get);
    serve_around(listener, &options.upstream, &stack, workers).await
}

/// As many workers as the machine runs at once.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Serves what `listener` accepts from `stack`, whose innermost service asks `upstream`, until the future is dropped.
///
/// Each connection stays with one of so many `workers`, threads with an event loop of their own: an answer from the
/// store then wakes nobody else.
///
/// # Errors
/// When a worker cannot be started.
pub async fn serve_around(
    listener: TcpListener,
    upstream: &Uri,
    stack: &Stack,
    workers: usize,
) -> Result<(), BoxError> {
    let workers = (0..workers.max(1)).map(|number| worker(number, upstream, stack));
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    for worker in workers.iter().cycle() {
        let socket = loop {
            match listener.accept().await {
                Ok((socket, _)) => break socket,
                // Out of file handles, mostly: others will be closed meanwhile.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        };
        let _ = socket.set_nodelay(true);
        // The workers end after this future only.
        let _ = worker.send(socket.into_std()?);
    }
    Ok(())
}

/// Starts a worker, which ends when its sender is dropped, and its connections with it.
fn worker(
    number: usize,
    upstream: &Uri,
    stack: &Stack,
) -> std::io::Result<UnboundedSender<std::net::TcpStream>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (upstream, stack) = (upstream.clone(), stack.clone());
    let (sender, mut accepted) = unbounded_channel();
    let work = async move {
        while let Some(socket) = accepted.recv().await {
            // A caller who is gone already is no event of the gateway.
            if let Ok(socket) = TcpStream::from_std(socket) {
                tokio::spawn(connection(socket, upstream.clone(), stack.clone()));
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("gateway-{number}"))
        .spawn(move || runtime.block_on(work))?;
    Ok(sender)
}

async fn connection(socket: TcpStream, upstream: Uri, stack: Stack) {
    let stack = Mutex::new(stack);
    let service = service_fn(move |request| answer(&stack, &upstream, request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(socket), service);
    // A caller who goes away is no event of the gateway.
    let _ = served.await;
}

/// Layers around a client, their types forgotten.
pub type Stack = BoxedService<Passed>;

/// The client towards the upstream: no retries, no redirects followed.
#[must_use]
pub fn client() -> Client<HttpConnector, Passed> {
    pool().build(connector())
}

/// Servers end a connection that was idle for five seconds or longer (Node and Apache for five). A request that meets
/// its end is lost, since nothing is sent twice: a connection is given up before.
const LONGEST_IDLE: Duration = Duration::from_secs(3);

fn pool() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(LONGEST_IDLE)
        .retry_canceled_requests(false);
    builder
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(5)));
    connector
}

/// Connects to the upstream wherever it is, and elsewhere to public addresses only.
#[derive(Clone)]
struct Public {
    inner: HttpConnector,
    upstream: Option<Authority>,
    any: bool,
}

impl Service<Uri> for Public {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut inner = self.inner.clone();
        let checks = !self.any && uri.authority() != self.upstream.as_ref();
        Box::pin(async move {
            let target = if checks { public(&uri).await? } else { uri };
            std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
            Ok(inner.call(target).await?)
        })
    }
}

/// `uri` with the address that its host leads to, so that what was checked is what is connected to.
async fn public(uri: &Uri) -> Result<Uri, BoxError> {
    let origin = Origin::of(uri)?;
    let host = origin.host().trim_matches(['[', ']']);
    let found: Vec<_> = tokio::net::lookup_host((host, origin.port()))
        .await?
        .collect();
    if let Some(private) = found.iter().find(|found| !is_public(found.ip())) {
        let leaf = AddressRefused::new(Some(origin), private.ip(), None);
        return Err(Refusal::from(leaf).into());
    }
    let address = found.first().ok_or("the host has no address")?;
    let target = Uri::builder().scheme("http").path_and_query("/");
    Ok(target.authority(address.to_string()).build()?)
}

/// The client towards the upstream, and the named layers around it in their order.
fn stack(options: &Options) -> Result<Stack, BoxError> {
    let upstream = &options.upstream;
    if upstream.scheme_str() != Some("http") || upstream.authority().is_none() {
        return Err("--upstream takes http://host:port".into());
    }
    let has = |name| options.layers.contains(&name);
    let hosts =
        Hosts::new(HostPolicy::new().min_delay(Duration::try_from_secs_f64(options.delay)?));
    let client: Client<_, Passed> = pool().build(Public {
        inner: connector(),
        upstream: upstream.authority().cloned(),
        any: options.allow_private,
    });
    let mut stack = BoxedService::new(client);
    if has(Name::Budget) {
        stack = BoxedService::new(HostBudgetLayer::new(hosts.clone()).layer(stack));
    }
    if has(Name::RetryAfter) {
        stack = BoxedService::new(RetryAfterLayer::new(hosts.clone()).layer(stack));
    }
    if has(Name::Cache) {
        let mut cache = ConditionalCacheLayer::new().max_bytes(options.cache_bytes);
        if options.shared_cache {
            cache = cache.shared().heuristic(Heuristic::tenth());
        }
        stack = BoxedService::new(cache.layer(stack));
    }
    if has(Name::Robots) {
        stack = BoxedService::new(RobotsLayer::new().hosts(hosts).layer(stack));
    }
    if has(Name::Accept) {
        stack = BoxedService::new(AcceptLayer::new(Accept::any()).layer(stack));
    }
    if has(Name::UserAgent) || has(Name::Robots) {
        let named = Identity::builder(&options.token, &options.bot_version, &options.info_url);
        stack = BoxedService::new(UserAgentLayer::new(named.build()?).layer(stack));
    }
    Ok(BoxedService::new(RefusalLayer::new().layer(stack)))
}

/// Calls the stack, which stays with its connection: one request after the other.
fn answer(
    stack: &Mutex<Stack>,
    upstream: &Uri,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> + use<> {
    let called = towards(upstream, request).map(|request| {
        let mut stack = stack.lock().unwrap_or_else(PoisonError::into_inner);
        // A stack is ready whenever it is asked; what waits does so in its future.
        match stack.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Ok(stack.call(request)),
            _ => Err(Box::pin(stack.clone().oneshot(request))),
        }
    });
    async move {
        let answered = match called {
            None => return Ok(bare(StatusCode::BAD_REQUEST)),
            Some(Ok(answer)) => answer.await,
            Some(Err(answer)) => answer.await,
        };
        let mut response = answered.unwrap_or_else(|_| bare(StatusCode::BAD_GATEWAY));
        between_connections(response.headers_mut());
        Ok(response)
    }
}

/// The request as the upstream gets it; `None` for one that names nothing there.
fn towards(upstream: &Uri, request: Request<Incoming>) -> Option<Request<Passed>> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().cloned()?;
    let path = if path.as_str().starts_with('/') || path == "*" {
        path
    } else {
        PathAndQuery::from_static("/")
    };
    let mut uri = upstream.clone().into_parts();
    uri.path_and_query = Some(path);
    parts.uri = Uri::from_parts(uri).ok()?;
    // There is one upstream, and it is asked under its own name: responses are stored under it.
    parts.headers.remove(HOST);
    let trailers = parts.headers.get(TE).is_some_and(|te| {
        te.to_str().is_ok_and(|te| {
            te.split(',')
                .any(|member| member.trim().eq_ignore_ascii_case("trailers"))
        })
    });
    between_connections(&mut parts.headers);
    if trailers {
        parts
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
    }
    parts.version = http::Version::HTTP_11;
    Some(Request::from_parts(parts, Passed(Some(body))))
}

/// Removes what concerns one connection, and says that the message came this way.
fn between_connections(headers: &mut HeaderMap) {
    let trailer: Vec<HeaderValue> = headers.get_all(TRAILER).iter().cloned().collect();
    etiquette_core::decide::cache_policy::remove_connection_fields(headers);
    for value in trailer {
        headers.append(TRAILER, value);
    }
    headers.append(VIA, HeaderValue::from_static("1.1 tower-etiquette"));
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::new(Empty::<Bytes>::new()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use etiquette_tests::site::{Answer, Site};
    use http_body_util::BodyExt;
    use http_body_util::Full;

    use super::*;

    async fn listen() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// An upstream that shows what it got, and one answer that may be stored.
    async fn upstream() -> SocketAddr {
        let (listener, address) = listen().await;
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let service = service_fn(|request: Request<Incoming>| async move {
                    let seen = format!(
                        "{} {} {:?}",
                        request.method(),
                        request.uri(),
                        request.headers()
                    );
                    let response = Response::builder()
                        .header("cache-control", "s-maxage=60")
                        .header("connection", "x-hop")
                        .header("x-hop", "1");
                    response.body(Full::<Bytes>::from(seen))
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
        });
        address
    }

    async fn gateway(upstream: SocketAddr, layers: &str) -> SocketAddr {
        gateway_with(upstream, layers, &["--shared-cache"]).await
    }

    async fn gateway_with(upstream: SocketAddr, layers: &str, more: &[&str]) -> SocketAddr {
        let (listener, address) = listen().await;
        let upstream = format!("http://{upstream}");
        let options = ["gateway", "--upstream", &upstream, "--layers", layers];
        let options = Options::parse_from(options.iter().chain(more));
        tokio::spawn(async move { serve(listener, &options).await.unwrap() });
        address
    }

    #[tokio::test]
    async fn it_forwards_stores_and_names_itself() {
        let upstream = upstream().await;
        let gateway = gateway(upstream, "cache").await;
        let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let request = Request::get(format!("http://{gateway}/a?b=c"))
                .header("connection", "x-mine")
                .header("x-mine", "1")
                .body(Empty::new())
                .unwrap();
            let response = client.request(request).await.unwrap();
            assert_eq!(response.headers()["via"], "1.1 tower-etiquette");
            assert!(!response.headers().contains_key("x-hop"));
            let stored = response.headers().contains_key("age");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            bodies.push((stored, String::from_utf8(body.to_vec()).unwrap()));
        }
        let (first, second) = (&bodies[0], &bodies[1]);
        assert!(first.1.starts_with("GET /a?b=c "), "{}", first.1);
        assert!(
            first.1.contains("via") && !first.1.contains("x-mine"),
            "{}",
            first.1
        );
        assert!(first.1.contains(&upstream.to_string()), "{}", first.1);
        assert_eq!((first.0, second.0), (false, true));
        assert_eq!(first.1, second.1);
    }

    #[tokio::test]
    async fn an_upstream_that_is_not_there_is_a_502() {
        let (listener, nobody) = listen().await;
        drop(listener);
        let gateway = gateway(nobody, "cache").await;
        let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let uri = format!("http://{gateway}/").parse().unwrap();
        assert_eq!(client.get(uri).await.unwrap().status(), 502);
        let request = Request::get(format!("http://{gateway}/"))
            .header("cache-control", "only-if-cached")
            .body(Empty::new())
            .unwrap();
        let response = client.request(request).await.unwrap();
        assert_eq!(response.status(), 504);
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json"
        );
    }

    #[tokio::test]
    async fn a_robots_txt_that_leads_into_its_own_network_is_not_followed() {
        let inside = Site::builder()
            .robots("User-agent: *\nAllow: /\n")
            .start()
            .await
            .unwrap();
        let target = inside.url_as("localhost", "/robots.txt");
        let site = Site::builder()
            .at("/robots.txt", Answer::redirect(&target))
            .otherwise(Answer::html("a page"))
            .start()
            .await
            .unwrap();
        for (more, status, asked) in [(&[][..], 403, 0), (&["--allow-private"], 200, 1)] {
            let gateway = gateway_with(site.address(), "robots,user-agent", more).await;
            let client: Client<_, Empty<Bytes>> =
                Client::builder(TokioExecutor::new()).build_http();
            let uri = format!("http://{gateway}/").parse().unwrap();
            let answer = client.get(uri).await.unwrap();
            assert_eq!(answer.status(), status, "{more:?}");
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body = String::from_utf8_lossy(&body);
            assert_eq!(body.contains("address_not_public"), asked == 0, "{body}");
            assert_eq!(inside.log().connections(), asked);
        }
    }
}
