//! What a site offers machines, in order of use, how each source was found, and what finding it cost.

mod args;
mod counted;
mod report;

use std::io::Write;
use std::time::Duration;

use etiquette_discovery::Discovery;
use http::Extensions;
use tower_etiquette::client::{Client, RequestBody};
use tower_etiquette::{BoxError, Facts, HostPolicy, Hosts};

pub use args::{Args, Probe};

use crate::cli::explain;
use crate::site;
use counted::{Counted, FinalUri};
use report::Report;

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
    let mut report = Report::new(out, args.json);
    let mut failed = 0;
    for url in &urls {
        let before = counted.requests();
        let found = discovery.run::<RequestBody, _>(url).await;
        let requests = counted.requests() - before;
        match found {
            Ok(found) => report.found(url, &found, requests)?,
            Err(error) => {
                failed += 1;
                report.failed(url, &explain(&error), requests)?;
            }
        }
    }
    Ok(failed)
}

/// The robots.txt that the layers obeyed.
fn robots_of(extensions: &Extensions) -> Option<etiquette_robots::Robots> {
    extensions.get::<Facts>()?.robots()?.robots().cloned()
}

#[cfg(test)]
mod tests {
    use etiquette_tests::site::{Answer, Site};
    use serde_json::Value;

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
