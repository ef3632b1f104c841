//! A small reverse proxy around the layers: one upstream, HTTP/1.1, no retries, no redirects followed.
//!
//! It forwards method, target, query and body as they came, removes what concerns one connection only (RFC 9110, 7.6.1),
//! adds Via, and hands trailers on. A refusal of a layer becomes a problem response; an upstream that cannot be reached,
//! 502. The upstream is the operator's choice; where its robots.txt redirects elsewhere, only public addresses are asked.
//! Interim responses are not forwarded: hyper's servers cannot send them.

mod args;
mod body;
mod forward;
mod serve;
mod stack;
mod upstream;

use std::io::Write;
use std::num::NonZeroUsize;

use tokio::net::TcpListener;
use tower_etiquette::BoxError;

pub use args::{Args, Name};
pub use body::PassedBody;
pub use serve::serve_around;
pub use stack::Stack;
pub use upstream::client;

use stack::stack;

/// Serves until Ctrl-C.
///
/// # Errors
/// When an option does not hold together, or the address cannot be listened on.
pub async fn run(args: Args, out: &mut (dyn Write + Send)) -> Result<(), BoxError> {
    let listener = TcpListener::bind(args.listen).await?;
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    tokio::select! {
        ended = serve(listener, &args) => ended,
        ended = tokio::signal::ctrl_c() => Ok(ended?),
    }
}

/// Serves what `listener` accepts until the future is dropped; its connections end with it.
///
/// # Errors
/// When an option does not hold together, or a worker cannot be started.
pub async fn serve(listener: TcpListener, args: &Args) -> Result<(), BoxError> {
    let stack = stack(args)?;
    let workers = args.workers.map_or_else(workers, NonZeroUsize::get);
    serve_around(listener, &args.upstream, &stack, workers).await
}

/// As many workers as the machine runs at once.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::Bytes;
    use clap::Parser;
    use etiquette_tests::client::{Page, fetch, get};
    use etiquette_tests::site::{Answer, Site};
    use http::{Request, Response};
    use http_body_util::{Empty, Full};
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::client::legacy::Client;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    use super::*;

    /// What a client of the gateway gets.
    async fn ask(request: Request<Empty<Bytes>>) -> Page {
        let client = Client::builder(TokioExecutor::new()).build_http();
        fetch(client, request).await.unwrap()
    }

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
        let words = ["gateway", "--upstream", &upstream, "--layers", layers];
        let args = Args::parse_from(words.iter().chain(more));
        tokio::spawn(async move { serve(listener, &args).await.unwrap() });
        address
    }

    #[tokio::test]
    async fn it_forwards_stores_and_names_itself() {
        let upstream = upstream().await;
        let gateway = gateway(upstream, "cache").await;
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let request = Request::get(format!("http://{gateway}/a?b=c"))
                .header("connection", "x-mine")
                .header("x-mine", "1")
                .body(Empty::new())
                .unwrap();
            let page = ask(request).await;
            assert_eq!(page.headers["via"], "1.1 tower-etiquette");
            assert!(!page.headers.contains_key("x-hop"));
            let stored = page.headers.contains_key("age");
            bodies.push((stored, String::from_utf8(page.body.to_vec()).unwrap()));
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
        let url = format!("http://{gateway}/");
        assert_eq!(ask(get(&url)).await.status, 502);
        let request = Request::get(&url)
            .header("cache-control", "only-if-cached")
            .body(Empty::new())
            .unwrap();
        let page = ask(request).await;
        assert_eq!(page.status, 504);
        assert_eq!(page.headers["content-type"], "application/problem+json");
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
            let page = ask(get(&format!("http://{gateway}/"))).await;
            assert_eq!(page.status, status, "{more:?}");
            let body = String::from_utf8_lossy(&page.body);
            assert_eq!(body.contains("address_not_public"), asked == 0, "{body}");
            assert_eq!(inside.log().connections(), asked);
        }
    }
}
