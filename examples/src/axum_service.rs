//! A link-preview service (axum): a person pastes a link into a message, and the service fetches that page once to show
//! its title.
//!
//! Each preview is a user fetch with a session of its own, so nothing of the page outlives the answer. People who paste
//! the same link at the same time cost its site one request: the cache lets strangers read along in an answer that is
//! for anybody. What a layer refuses goes back as a problem response (RFC 9457) that
//! names the rule, the site and when to come back.
//!
//! The page behind the link in its name is served at `/bot.html`.
//!
//! The service keeps one boxed client in its state. It connects to public addresses only, unless told otherwise: the
//! links come from strangers.

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use clap::Parser;
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt;
use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
use tower_etiquette::client::{Client, Error, RequestBody};
use tower_etiquette::identity::InvalidIdentity;
use tower_etiquette::page::DescriptionPage;
use tower_etiquette::{
    BoxError, BoxedService, HostPolicy, Hosts, Identity, Purpose, Refusal, RefusalLayer, Session,
};
use tower_layer::Layer;

use crate::named::{Named, is_loopback};

/// The most bytes of a page that are looked at for its title.
const MOST: usize = 256 << 10;

/// The media type of a problem (RFC 9457).
const PROBLEM: &str = "application/problem+json";

/// The command line.
#[derive(Clone, Debug, Parser)]
#[command(about = "A link-preview service whose fetches are made for the person who asks")]
pub struct Options {
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:8003")]
    pub listen: SocketAddr,
    /// Who asks. Without a name of its own the service asks nobody but this machine.
    #[command(flatten)]
    pub named: Named,
    /// The operator's name for pages that a person asked for.
    #[arg(long, value_name = "T")]
    pub user_token: Option<String>,
    /// Allows links to loopback, private and other addresses that are not public.
    #[arg(long)]
    pub allow_private: bool,
}

/// The boxed client: `Clone`, `Send` and `Sync`, as axum's state has to be.
type Fetch = BoxedService<RequestBody>;

/// Serves until Ctrl-C, and then until what has begun is done.
///
/// # Errors
/// When the identity is none, or the address cannot be listened on.
pub async fn run(options: &Options, out: &mut (dyn Write + Send)) -> Result<(), BoxError> {
    let listener = TcpListener::bind(options.listen).await?;
    writeln!(out, "listening on http://{}", listener.local_addr()?)?;
    let stop = async {
        // Without signals there is no Ctrl-C to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    serve(listener, options, stop).await
}

/// Serves what `listener` accepts until `stop`, and then until what has begun is done.
///
/// # Errors
/// When the identity is none.
pub async fn serve(
    listener: TcpListener,
    options: &Options,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), BoxError> {
    let identity = identity(options)?;
    let app = Router::new()
        .route("/preview", get(preview))
        .route_service("/bot.html", DescriptionPage::new(&identity))
        .with_state(App {
            nameless: options.user_token.is_none() || !options.named.missing().is_empty(),
            fetch: fetch(identity, options)?,
        });
    axum::serve(listener, app)
        .with_graceful_shutdown(stop)
        .await?;
    Ok(())
}

fn identity(options: &Options) -> Result<Identity, InvalidIdentity> {
    let user_token = options.user_token.as_deref().unwrap_or("Example-Preview");
    let builder = options.named.builder().user_token(user_token);
    builder
        .purpose("It shows the title of a page to people who paste its link into a message.")
        .build()
}

/// The client, with refusals as responses.
fn fetch(identity: Identity, options: &Options) -> Result<Fetch, BoxError> {
    // An answer of a film is dropped at its head: there is no title in it.
    let accept = AcceptLayer::new(Accept::preset(Preset::Page)).refuse_others(true);
    let client = Client::builder(identity)
        .hosts(Hosts::new(HostPolicy::new()))
        .stack(|stack| stack.accept(accept))
        .total_timeout(Duration::from_secs(20))
        .public_addresses_only(!options.allow_private)
        .build()?;
    // The client's own error type is for people; the layer looks for the refusal in what came through the stack.
    let client = client.map_err(Error::into_inner);
    Ok(BoxedService::new(RefusalLayer::new().layer(client)))
}

/// What a person asks for.
#[derive(Debug, Deserialize)]
struct Wanted {
    url: String,
}

/// An answer.
struct Preview {
    status: StatusCode,
    kind: &'static str,
    body: String,
}

/// What the handlers share.
#[derive(Clone)]
struct App {
    fetch: Fetch,
    /// The name is made up: nobody could be told who comes.
    nameless: bool,
}

async fn preview(State(app): State<App>, Query(wanted): Query<Wanted>) -> Response {
    // Each visit is a person's own. That many who ask for one page at the same time cost its site one request is the
    // doing of the cache, as long as nothing tells them apart.
    let preview = match wanted.url.parse::<Uri>() {
        Ok(url) if app.nameless && !is_loopback(&url) => Preview::problem(
            StatusCode::FORBIDDEN,
            "the site belongs to somebody, and this service has no name of its own: start it with --token, --user-token, \
             --bot-version and --info-url",
        ),
        Ok(url) => look(app.fetch, url).await,
        Err(_) => Preview::problem(StatusCode::BAD_REQUEST, "the link is no URL"),
    };
    let kind = [("content-type", preview.kind)];
    (preview.status, kind, preview.body).into_response()
}

/// One visit to the page at `url`, which a person chose.
async fn look(fetch: Fetch, url: Uri) -> Preview {
    // The session ends with this visit, and with it whatever was kept for it.
    let session = Session::new();
    let grant = match session.grant(&url) {
        Ok(grant) => grant,
        Err(error) => return Preview::problem(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = url.clone();
    request.extensions_mut().insert(Purpose::UserFetch(grant));
    let response = match fetch.oneshot(request).await {
        Ok(response) => response,
        Err(_) => return Preview::problem(StatusCode::BAD_GATEWAY, "the site cannot be reached"),
    };
    let refused = response.extensions().get::<Refusal>().is_some();
    let status = response.status();
    let page = Limited::new(response.into_body(), MOST);
    let text = match page.collect().await {
        Ok(page) => String::from_utf8_lossy(&page.to_bytes()).into_owned(),
        Err(_) => {
            let detail = "the page broke off or is too large";
            return Preview::problem(StatusCode::BAD_GATEWAY, detail);
        }
    };
    if refused {
        return Preview {
            status,
            kind: PROBLEM,
            body: text,
        };
    }
    if !status.is_success() {
        let detail = format!("the site answered {status}");
        return Preview::problem(StatusCode::BAD_GATEWAY, &detail);
    }
    Preview {
        status: StatusCode::OK,
        kind: "application/json",
        body: json!({ "url": url.to_string(), "title": title(&text) }).to_string(),
    }
}

impl Preview {
    /// A problem of the service's own, in the form that refusals have.
    fn problem(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason();
        let body = json!({ "title": title, "status": status.as_u16(), "detail": detail });
        Self {
            status,
            kind: PROBLEM,
            body: body.to_string(),
        }
    }
}

/// The text of the first `<title>`, with blanks folded.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let open = lower.find("<title")?;
    let start = open + lower[open..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let text = page[start..end]
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use etiquette_tests::site::{Answer, Site};

    use super::*;

    /// Starts the service and returns where it listens.
    async fn service() -> SocketAddr {
        service_with(&["--allow-private"]).await
    }

    async fn service_with(options: &[&str]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = Options::parse_from([&["axum_service"], options].concat());
        tokio::spawn(async move { serve(listener, &options, std::future::pending()).await });
        address
    }

    async fn ask(service: SocketAddr, url: &str) -> (StatusCode, serde_json::Value) {
        let client: hyper_util::client::legacy::Client<_, http_body_util::Empty<bytes::Bytes>> =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
                .build_http();
        let uri = format!("http://{service}/preview?url={url}")
            .parse()
            .unwrap();
        let response = client.get(uri).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
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
            assert_eq!(status, StatusCode::OK, "{body}");
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
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(body.to_string().contains("disallowed"), "{body}");
        assert_eq!(site.log().targets(), ["/robots.txt"]);
    }

    #[tokio::test]
    async fn links_into_its_own_network_are_refused() {
        let site = Site::builder().start().await.unwrap();
        let (status, body) = ask(service_with(&[]).await, &site.url("/page")).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert_eq!(body["kind"], "address_not_public", "{body}");
        assert_eq!(site.log().connections(), 0);
    }

    #[tokio::test]
    async fn nobody_else_is_asked_under_a_made_up_name() {
        let (status, body) = ask(service().await, "https://site.example/page").await;
        assert_eq!(status, StatusCode::FORBIDDEN);
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
        let client: hyper_util::client::legacy::Client<_, http_body_util::Empty<bytes::Bytes>> =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
                .build_http();
        let published = tower_etiquette::page::check_published(&identity, client).await;
        assert!(published.unwrap().names_user_token);
    }

    #[test]
    fn titles() {
        assert_eq!(
            title("<TITLE lang=en>A\n B</TITLE>").as_deref(),
            Some("A B")
        );
        assert_eq!(title("<title>A"), None);
        assert_eq!(title(""), None);
    }
}
