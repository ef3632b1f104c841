//! A link-preview service (axum): a person pastes a link into a message, and the service fetches that page once to show
//! its title.
//!
//! Each preview is a user fetch with a session of its own, so nothing of the page outlives the answer. People who paste
//! the same link at the same time cost its site one request: the cache shares an answer that is for anybody. What a layer refuses goes back as a problem response (RFC 9457) that
//! names the rule, the site and when to come back.
//!
//! The page behind the link in its name is served at `/bot.html`.
//!
//! The service keeps one boxed client in its state. It connects to public addresses only, unless told otherwise: the
//! links come from anybody.

mod args;
mod preview;

use std::future::Future;
use std::io::Write;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tower::ServiceExt;
use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
use tower_etiquette::client::{Client, Error};
use tower_etiquette::identity::InvalidIdentity;
use tower_etiquette::page::DescriptionPage;
use tower_etiquette::{BoxError, BoxedService, HostPolicy, Hosts, Identity, RefusalLayer};
use tower_layer::Layer;

pub use args::Args;

use crate::cli::ctrl_c;
use preview::{App, Fetch, preview};

/// Serves until Ctrl-C, and then until what has begun is done.
///
/// # Errors
/// When the identity is none, or the address cannot be listened on.
pub async fn run(args: &Args, out: &mut (dyn Write + Send)) -> Result<(), BoxError> {
    let listener = TcpListener::bind(args.listen).await?;
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    serve(listener, args, ctrl_c()).await
}

/// Serves what `listener` accepts until `stop`, and then until what has begun is done.
///
/// # Errors
/// When the identity is none.
pub async fn serve(
    listener: TcpListener,
    args: &Args,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), BoxError> {
    let identity = identity(args)?;
    let app = Router::new()
        .route("/preview", get(preview))
        .route_service("/bot.html", DescriptionPage::new(&identity))
        .with_state(App {
            nameless: args.user_token.is_none() || !args.named.missing().is_empty(),
            fetch: fetch(identity, args)?,
        });
    axum::serve(listener, app)
        .with_graceful_shutdown(stop)
        .await?;
    Ok(())
}

fn identity(args: &Args) -> Result<Identity, InvalidIdentity> {
    let user_token = args.user_token.as_deref().unwrap_or("Example-Preview");
    let builder = args.named.builder().user_token(user_token);
    builder
        .purpose("It shows the title of a page to people who paste its link into a message.")
        .build()
}

/// The client, with refusals as responses.
fn fetch(identity: Identity, args: &Args) -> Result<Fetch, BoxError> {
    // An answer of a film is dropped at its head: there is no title in it.
    let accept = AcceptLayer::new(Accept::preset(Preset::Page)).refuse_others(true);
    let client = Client::builder(identity)
        .hosts(Hosts::new(HostPolicy::new()))
        .stack(|stack| stack.accept(accept))
        .total_timeout(Duration::from_secs(20))
        .public_addresses_only(!args.allow_private)
        .build()?;
    // The client's own error type is for people; the layer looks for the refusal in what came through the stack.
    let client = client.map_err(Error::into_inner);
    Ok(BoxedService::new(RefusalLayer::new().layer(client)))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use bytes::Bytes;
    use clap::Parser;
    use etiquette_tests::client::{fetch, get};
    use etiquette_tests::site::{Answer, Site};
    use http_body_util::Empty;
    use hyper_util::client::legacy;
    use hyper_util::client::legacy::connect::HttpConnector;
    use hyper_util::rt::TokioExecutor;
    use serde_json::Value;

    use super::*;

    /// Starts the service and returns where it listens.
    async fn service() -> SocketAddr {
        service_with(&["--allow-private"]).await
    }

    async fn service_with(words: &[&str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let args = Args::parse_from([&["axum_service"], words].concat());
        tokio::spawn(async move { serve(listener, &args, std::future::pending()).await });
        address
    }

    fn client() -> legacy::Client<HttpConnector, Empty<Bytes>> {
        legacy::Client::builder(TokioExecutor::new()).build_http()
    }

    /// The status and the JSON of a preview.
    async fn ask(service: SocketAddr, url: &str) -> (u16, Value) {
        let request = get(&format!("http://{service}/preview?url={url}"));
        let page = fetch(client(), request).await.unwrap();
        (page.status, serde_json::from_slice(&page.body).unwrap())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn two_hundred_people_cost_the_site_one_request() {
        let page = Answer::html("<title>Hello &amp;\n welcome</title>");
        let site = Site::builder()
            .at("/page", page.after(Duration::from_secs(3)))
            .start()
            .await
            .unwrap();
        let service = service().await;
        let url = site.url("/page");
        let asks = (0..200).map(|_| {
            let url = url.clone();
            tokio::spawn(async move { ask(service, &url).await })
        });
        for answer in asks.collect::<Vec<_>>() {
            let (status, body) = answer.await.unwrap();
            assert_eq!(status, 200, "{body}");
            assert_eq!(body["title"], "Hello & welcome");
        }
        assert_eq!(site.log().targets(), ["/robots.txt", "/page"]);
    }

    #[tokio::test]
    async fn a_refusal_says_which_rule_it_was() {
        let site = Site::builder()
            .robots("User-agent: Example-Preview\nDisallow: /\n")
            .start()
            .await
            .unwrap();
        let (status, body) = ask(service().await, &site.url("/page")).await;
        assert_eq!(status, 403);
        assert!(body.to_string().contains("disallowed"), "{body}");
        assert_eq!(site.log().targets(), ["/robots.txt"]);
    }

    #[tokio::test]
    async fn links_into_its_own_network_are_refused() {
        let site = Site::builder().start().await.unwrap();
        let (status, body) = ask(service_with(&[]).await, &site.url("/page")).await;
        assert_eq!(status, 403);
        assert_eq!(body["kind"], "address_not_public", "{body}");
        assert_eq!(site.log().connections(), 0);
    }

    #[tokio::test]
    async fn nobody_else_is_asked_under_a_made_up_name() {
        let (status, body) = ask(service().await, "https://site.example/page").await;
        assert_eq!(status, 403);
        assert!(
            body["detail"].as_str().unwrap().contains("--info-url"),
            "{body}"
        );
    }

    #[tokio::test]
    async fn its_own_page_tells_who_it_is() {
        let service = service().await;
        let link = format!("http://{service}/bot.html");
        let identity = Identity::builder("ExampleBot", "0.1", &link)
            .user_token("Example-Preview")
            .build()
            .unwrap();
        let published = tower_etiquette::page::check_published(&identity, client()).await;
        assert!(published.unwrap().names_user_token);
    }
}
