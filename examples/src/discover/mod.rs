//! What a site offers machines, in order of use, how each source was found, and what finding it cost.

mod counted;

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use etiquette_discovery::plan::{Findings, Want};
use etiquette_discovery::{Discovery, SourceGroup};
use http::{Extensions, Uri};
use serde_json::{Value, json};
use tower_etiquette::client::{Client, RequestBody};
use tower_etiquette::{BoxError, Facts, HostPolicy, Hosts, Refusal};

use counted::{Counted, FinalUri};

use crate::named::Named;
use crate::site;

/// Lists what a site offers machines: APIs, feeds, sitemaps, llms.txt.
///
/// Costs each site its robots.txt and its start page. Well-known addresses are guessed at only with `--want` and
/// `--max-probes`. Without a URL it asks a small site that it serves to itself.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "discover")]
#[non_exhaustive]
pub struct Args {
    /// The start pages of the sites.
    #[arg(value_name = "URL")]
    pub urls: Vec<Uri>,
    /// Who asks.
    #[command(flatten)]
    pub named: Named,
    /// What is worth a probe. Can be given several times.
    #[arg(long, value_name = "KIND")]
    pub want: Vec<Probe>,
    /// How many well-known addresses of a site are guessed at, at most 3.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_probes: u8,
    /// Allows targets on loopback and in private networks.
    #[arg(long)]
    pub allow_private: bool,
    /// Writes one line of JSON for each site.
    #[arg(long)]
    pub json: bool,
}

/// What is worth a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Probe {
    /// /.well-known/api-catalog
    Api,
    /// /llms.txt
    Llms,
    /// /sitemap.xml
    Sitemap,
}

impl From<Probe> for Want {
    fn from(probe: Probe) -> Self {
        match probe {
            Probe::Api => Self::Api,
            Probe::Llms => Self::Llms,
            Probe::Sitemap => Self::Sitemap,
        }
    }
}

/// Asks the sites one after the other and writes what they offer. Returns how many of them could not be asked.
///
/// # Errors
/// When the name is not valid or not complete, the client cannot be built, or `out` cannot be written to.
pub async fn run(args: &Args, out: &mut (dyn Write + Send)) -> Result<usize, BoxError> {
    let identity = args.named.identity(&args.urls)?;
    let own = if args.urls.is_empty() {
        Some(site::serve().await?)
    } else {
        None
    };
    let mut policy = HostPolicy::new();
    let mut urls = args.urls.clone();
    if let Some(own) = &own {
        urls.push(own.url("/").parse()?);
        // Its Crawl-delay is what counts.
        policy = policy.min_delay(Duration::from_millis(200));
    }
    let token = identity.token().clone();
    let client = Client::builder(identity)
        .hosts(Hosts::new(policy))
        .max_redirects(0)
        .public_addresses_only(own.is_none() && !args.allow_private)
        .build()?;
    let counted = Counted::new(client);
    let mut discovery = Discovery::new(counted.clone())
        .token(token)
        .max_probes(args.max_probes)
        .client_obeys_robots(robots_of)
        .final_uri(|extensions| extensions.get::<FinalUri>().map(|uri| uri.0.clone()));
    for want in &args.want {
        discovery = discovery.want((*want).into());
    }
    let mut failed = 0;
    for url in &urls {
        let before = counted.requests();
        let found = discovery.run::<RequestBody, _>(url).await;
        let requests = counted.requests() - before;
        match found {
            Ok(found) if args.json => writeln!(out, "{}", as_json(url, &found, requests))?,
            Ok(found) => write_text(out, url, &found, requests)?,
            Err(error) => {
                failed += 1;
                let why = explained(&error);
                if args.json {
                    let line =
                        json!({ "url": url.to_string(), "error": why, "requests": requests });
                    writeln!(out, "{line}")?;
                } else {
                    writeln!(out, "{url}: {why} ({})", in_words(requests))?;
                }
            }
        }
    }
    Ok(failed)
}

/// The robots.txt that the layers obeyed.
fn robots_of(extensions: &Extensions) -> Option<etiquette_robots::Robots> {
    extensions.get::<Facts>()?.robots()?.robots().cloned()
}

fn in_words(requests: u64) -> String {
    match requests {
        1 => "1 request".to_owned(),
        _ => format!("{requests} requests"),
    }
}

fn explained(error: &(dyn Error + 'static)) -> String {
    if let Some(refusal) = Refusal::find(error) {
        return refusal.explain().to_string();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn write_text(
    out: &mut (dyn Write + Send),
    url: &Uri,
    found: &Findings,
    requests: u64,
) -> std::io::Result<()> {
    let status = found
        .start_status
        .map_or("not asked for".to_owned(), |status| status.to_string());
    writeln!(out, "{url}: {status}, {}", in_words(requests))?;
    if found.sources.is_empty() {
        writeln!(out, "  nothing for machines is announced")?;
    }
    for source in &found.sources {
        let title = source
            .title
            .as_deref()
            .map(|title| format!("  \"{title}\""))
            .unwrap_or_default();
        let elsewhere = if source.cross_origin {
            "  (another site)"
        } else {
            ""
        };
        writeln!(
            out,
            "  {:<12} {:<11} {}{title}{elsewhere}",
            source.kind.name(),
            source.via.name(),
            source.uri
        )?;
    }
    let best = found.sources.first().map(|source| source.kind.group());
    let advice = match best {
        Some(SourceGroup::Api) => "ask the API for what you need; leave the pages alone",
        Some(SourceGroup::Feed) => "poll the feed for what is new",
        Some(SourceGroup::Sitemap) => "let lastmod in the sitemap decide which pages to visit",
        Some(SourceGroup::Text) => "read the text in place of the pages",
        _ => return Ok(()),
    };
    writeln!(out, "  first: {advice}")
}

fn as_json(url: &Uri, found: &Findings, requests: u64) -> Value {
    let sources: Vec<Value> = found
        .sources
        .iter()
        .map(|source| {
            json!({
                "kind": source.kind.name(),
                "url": source.uri.to_string(),
                "via": source.via.name(),
                "cross_origin": source.cross_origin,
                "title": source.title,
            })
        })
        .collect();
    json!({
        "url": url.to_string(),
        "status": found.start_status.map(|status| status.as_u16()),
        "requests": requests,
        "sources": sources,
    })
}

#[cfg(test)]
mod tests {
    use etiquette_tests::site::{Answer, Site};

    use super::*;

    async fn discovered(args: &Args) -> (usize, String) {
        let mut out = Vec::new();
        let failed = run(args, &mut out).await.unwrap();
        (failed, String::from_utf8(out).unwrap())
    }

    #[tokio::test]
    async fn its_own_site_costs_two_requests() {
        let (failed, text) = discovered(&Args::default()).await;
        assert_eq!(failed, 0, "{text}");
        assert!(text.contains("200 OK, 2 requests"), "{text}");
        let feed = text.find("feed_atom").unwrap_or_else(|| panic!("{text}"));
        assert!(feed < text.find("sitemap").unwrap(), "{text}");
    }

    #[tokio::test]
    async fn redirects_and_probes_are_counted_and_what_is_refused_is_told() {
        let site = Site::builder()
            .robots("User-agent: *\nDisallow: /private/\n")
            .at("/", Answer::redirect("/new/"))
            .at(
                "/new/",
                Answer::html("<link rel=service-desc href=openapi.json>"),
            )
            .at("/llms.txt", Answer::of("text/markdown", "# Site\n"))
            .start()
            .await
            .unwrap();
        let args = Args {
            urls: vec![
                site.url("/").parse().unwrap(),
                site.url("/private/").parse().unwrap(),
            ],
            want: vec![Probe::Llms],
            max_probes: 1,
            allow_private: true,
            json: true,
            ..Args::default()
        };
        let (failed, text) = discovered(&args).await;
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [found, refused] = &lines[..] else {
            panic!("{text}")
        };
        let log = site.log().targets();
        assert_eq!(log, ["/robots.txt", "/", "/new/", "/llms.txt"]);
        assert_eq!(found["requests"], 4);
        assert_eq!(found["sources"][0]["url"], site.url("/new/openapi.json"));
        assert_eq!(found["sources"][1]["via"], "well_known");
        assert_eq!(failed, 1);
        assert_eq!(refused["requests"], 0);
        assert!(
            refused["error"].as_str().unwrap().contains("Disallow"),
            "{text}"
        );
        let log = site.log().targets();
        assert_eq!(log, ["/robots.txt", "/", "/new/", "/llms.txt"]);
    }

    #[tokio::test]
    async fn nobody_is_asked_without_a_name() {
        let args = Args {
            urls: vec!["https://site.example/".parse().unwrap()],
            ..Args::default()
        };
        let error = run(&args, &mut Vec::new()).await.unwrap_err();
        assert!(error.to_string().contains("--token"), "{error}");
    }
}
