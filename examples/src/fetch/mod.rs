//! One page, because a person asked for it: what an agent's fetch tool should be.
//!
//! The URL on the command line is the act of the person, and the permit is for that page: its redirects are followed,
//! nothing else is asked for, nothing is kept when the program ends. robots.txt is asked first; a group that names the
//! user token binds. Markdown is preferred where the site offers it.
//!
//! A URL that a model or a program chose is no such act: crawl it, with the name of a crawler.

mod args;
mod exit;
mod report;

use std::io::Write;
use std::time::{Duration, Instant};

use etiquette_core::address::is_public;
use http::Uri;
use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
use tower_etiquette::client::{Client, Error};
use tower_etiquette::identity::InvalidIdentity;
use tower_etiquette::{HostPolicy, Hosts, Identity, Origin, Purpose, Session};

pub use args::{Args, Resolve};
pub use exit::Exit;
use report::Report;

/// Fetches what `args` say, writes the page to `out` (or to the file that they name) and what there is to say about it
/// to `err`.
pub async fn run(args: &Args, out: &mut (dyn Write + Send), err: &mut (dyn Write + Send)) -> Exit {
    let started = Instant::now();
    let fetched = fetch(args).await;
    let mut report = match &fetched {
        Ok(page) => Report::page(args, page),
        Err(failure) => Report::failure(args, failure),
    };
    report.took(started.elapsed());
    let exit = match &fetched {
        Ok(page) if args.fail && !page.status.is_success() => Exit::HttpError,
        Ok(_) => Exit::Done,
        Err(failure) => failure.exit(),
    };
    // Where the output is gone nobody reads why.
    let written = match (&fetched, args.json) {
        (page, true) => report.write_json(args, page.as_ref().ok(), out),
        (Ok(page), false) if exit == Exit::Done => report.write_page(args, page, out),
        _ => writeln!(err, "fetch: {}", report.reason()),
    };
    match written {
        Ok(()) => exit,
        Err(error) => {
            let _ = writeln!(err, "fetch: {error}");
            Exit::WriteError
        }
    }
}

/// A page that came.
#[derive(Debug)]
struct Page {
    status: http::StatusCode,
    version: http::Version,
    headers: http::HeaderMap,
    facts: tower_etiquette::Facts,
    body: bytes::Bytes,
}

/// Why no page came.
#[derive(Debug)]
enum Failure {
    /// The command line does not hold together.
    Usage(String),
    /// The URL is none.
    Url(String),
    /// The URL leads into the user's own network.
    Private(String),
    /// The identity is none.
    Identity(InvalidIdentity),
    /// The request was refused or failed.
    Request(Error),
    /// The body did not come.
    Body(tower_etiquette::client::BodyError),
}

async fn fetch(args: &Args) -> Result<Page, Failure> {
    let url = url(&args.url)?;
    if !args.allow_private {
        public(args, &url).await?;
    }
    let identity = identity(args, &url)?;
    let accept = if args.html {
        Accept::preset(Preset::Page)
    } else {
        let builder = Accept::builder().preset(Preset::Markdown).or_any(100);
        builder.build().unwrap_or_else(|_| Accept::any())
    };
    let policy = HostPolicy::new().max_wait_user(args.max_wait);
    let mut builder = Client::builder(identity)
        .hosts(Hosts::new(policy))
        .stack(|stack| stack.accept(AcceptLayer::new(accept)))
        .max_body(args.max_bytes)
        .total_timeout(args.max_time)
        .public_addresses_only(!args.allow_private);
    for told in &args.resolve {
        builder = builder.resolve(&told.host, told.port, told.addr);
    }
    let client = builder.build().map_err(Failure::Request)?;
    // The act of the person is that they named the URL when they started the program.
    let session = Session::new();
    let permit = session
        .permit(&url)
        .map_err(|error| Failure::Url(error.to_string()))?;
    let response = client
        .get_for(&url.to_string(), Purpose::UserFetch(permit))
        .await
        .map_err(Failure::Request)?;
    let facts = tower_etiquette::Facts::of(&response).cloned();
    let (head, body) = response.into_parts();
    let limit = usize::try_from(args.max_bytes).unwrap_or(usize::MAX);
    Ok(Page {
        status: head.status,
        version: head.version,
        headers: head.headers,
        facts: facts.unwrap_or_default(),
        body: body.bytes(limit).await.map_err(Failure::Body)?,
    })
}

/// The URL, with `https://` where the scheme is left out as people do.
fn url(text: &str) -> Result<Uri, Failure> {
    let full = if text.contains("://") {
        text.to_owned()
    } else {
        format!("https://{text}")
    };
    let url: Uri = full
        .parse()
        .map_err(|_| Failure::Url(format!("{text} is no URL")))?;
    Origin::of(&url).map_err(|error| Failure::Url(format!("{text}: {error}")))?;
    Ok(url)
}

/// Refuses a URL whose host has an address that is not public, so that it can be said in words. The client checks each
/// connection by itself, redirects included.
async fn public(args: &Args, url: &Uri) -> Result<(), Failure> {
    let origin = Origin::of(url).map_err(|error| Failure::Url(error.to_string()))?;
    let host = origin.host().trim_start_matches('[').trim_end_matches(']');
    let told = args.resolve.iter();
    let told = told.filter(|told| told.host == host && told.port == origin.port());
    let mut addresses: Vec<_> = told.map(|told| told.addr).collect();
    if addresses.is_empty() {
        // A name that does not resolve is left to the request, which will say so.
        let found = tokio::net::lookup_host((host, origin.port())).await;
        addresses.extend(found.into_iter().flatten().map(|address| address.ip()));
    }
    match addresses.into_iter().find(|&address| !is_public(address)) {
        Some(address) => Err(Failure::Private(format!(
            "{url} leads to {address}, which is no public address; --allow-private allows it"
        ))),
        None => Ok(()),
    }
}

/// The name on the request. Sites that are not this machine must be able to see who comes.
fn identity(args: &Args, url: &Uri) -> Result<Identity, Failure> {
    let given = [
        ("--token", &args.token, "ExampleBot"),
        ("--user-token", &args.user_token, "Example-User"),
        ("--bot-version", &args.bot_version, "0.1"),
        (
            "--info-url",
            &args.info_url,
            "https://www.example.com/bot.html",
        ),
    ];
    if !is_local(url) {
        for (option, value, placeholder) in &given {
            match value {
                None => {
                    return Err(Failure::Usage(format!(
                        "{url} belongs to somebody: give {option}, so that its operator can see who comes"
                    )));
                }
                Some(value) if value == placeholder && *option != "--bot-version" => {
                    return Err(Failure::Usage(format!(
                        "{option} {value} is a placeholder; sites need a real one"
                    )));
                }
                Some(_) => {}
            }
        }
    }
    let [token, user_token, version, info_url] =
        given.map(|(_, value, placeholder)| value.as_deref().unwrap_or(placeholder));
    let mut builder = Identity::builder(token, version, info_url).user_token(user_token);
    if let Some(contact) = &args.contact {
        builder = builder.contact(contact);
    }
    builder.build().map_err(Failure::Identity)
}

/// Whether the URL names this machine.
fn is_local(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || literal
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use etiquette_tests::site::{Answer, Site};

    use super::*;

    async fn fetch(arguments: &[&str]) -> (Exit, String, String) {
        let args = <Args as clap::Parser>::try_parse_from([&["fetch"], arguments].concat());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = run(&args.unwrap(), &mut out, &mut err).await;
        let text = |octets| String::from_utf8(octets).unwrap();
        (exit, text(out), text(err))
    }

    #[tokio::test]
    async fn a_cold_visit_is_one_visit() {
        let site = Site::builder()
            .at(
                "/",
                Answer::redirect("/page").after(Duration::from_millis(50)),
            )
            .at(
                "/page",
                Answer::of("text/markdown", "# Hello").after(Duration::from_millis(50)),
            )
            .at("/robots.txt", Answer::text("User-agent: *\nDisallow: /\n"))
            .start()
            .await
            .unwrap();
        let started = Instant::now();
        let (exit, out, err) = fetch(&["--allow-private", &site.url("/")]).await;
        assert_eq!((exit, out.as_str()), (Exit::Done, "# Hello"), "{err}");
        assert!(started.elapsed() < Duration::from_secs(2));
        let seen = site.log().entries();
        assert_eq!(site.log().targets(), ["/robots.txt", "/", "/page"]);
        assert!(
            seen.iter()
                .all(|entry| entry.user_agent().contains("Example-User/0.1"))
        );
    }

    #[tokio::test]
    async fn it_says_who_refused_by_which_rule() {
        let site = Site::builder()
            .robots("User-agent: Example-User\nDisallow: /private\n")
            .start()
            .await
            .unwrap();
        let url = site.url("/private/x");
        let (exit, out, _) = fetch(&["--allow-private", "--json", &url]).await;
        assert_eq!(exit, Exit::Refused);
        let told: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(told["refusal"]["kind"], "disallowed");
        assert_eq!(told["refusal"]["line"], 2);
        assert_eq!(
            told["refusal"]["contact"],
            "https://www.example.com/bot.html"
        );
        assert_eq!(site.log().targets(), ["/robots.txt"]);
    }

    #[tokio::test]
    async fn addresses_of_its_own_network_are_not_for_urls_from_elsewhere() {
        let site = Site::builder().start().await.unwrap();
        let (exit, _, err) = fetch(&[&site.url("/")]).await;
        assert_eq!(exit, Exit::Refused, "{err}");
        assert!(site.log().targets().is_empty());
    }

    #[tokio::test]
    async fn strangers_see_a_real_name() {
        let (exit, _, err) = fetch(&["https://site.example/"]).await;
        assert_eq!(exit, Exit::Usage);
        assert!(err.contains("--token"), "{err}");
    }
}
