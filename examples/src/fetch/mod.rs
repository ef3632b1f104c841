//! One page, because a person asked for it: what an agent's fetch tool should be.
//!
//! The URL on the command line is the act of the person, and the grant is for that page: its redirects are followed,
//! nothing else is asked for, nothing is kept when the program ends. robots.txt is asked first; a group that names the
//! user token binds. Markdown is preferred where the site offers it.
//!
//! A URL that a model or a program chose is no such act: crawl it, with the name of a crawler.

mod args;
mod exit;
mod outcome;
mod report;

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use http::Uri;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
use tower_etiquette::client::Client;
use tower_etiquette::{HostPolicy, Hosts, Identity, Origin, Purpose, Session};

pub use args::Args;
pub use exit::Exit;
use outcome::{Failure, Page};
use report::Report;

use crate::cli::{belongs_to_somebody, is_loopback};

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

async fn fetch(args: &Args) -> Result<Page, Failure> {
    let url = url(&args.url)?;
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
    for resolve in &args.resolve {
        builder = builder.resolve(&resolve.host, resolve.port, resolve.addr);
    }
    if let Some(file) = &args.cacert {
        for root in roots(file)? {
            builder = builder.root_certificate(root);
        }
    }
    let client = builder.build().map_err(Failure::Request)?;
    // The act of the person is that they named the URL when they started the program.
    let session = Session::new();
    let grant = session
        .grant(&url)
        .map_err(|error| Failure::Url(error.to_string()))?;
    let response = client
        .get_for(&url.to_string(), Purpose::UserFetch(grant))
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

/// The certificates of a file, in DER.
fn roots(file: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let failed = |why: &dyn std::fmt::Display| Failure::Roots(format!("{}: {why}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| failed(&error))?;
    let roots = CertificateDer::pem_slice_iter(&bytes).map(|root| root.map(|root| root.to_vec()));
    let roots: Vec<_> = roots
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    // DER is one certificate and has no lines that could begin one.
    Ok(if roots.is_empty() { vec![bytes] } else { roots })
}

/// The name on the request. Sites that are not this machine must be able to see who comes.
fn identity(args: &Args, url: &Uri) -> Result<Identity, Failure> {
    const USER_TOKEN: &str = "Example-User";
    let named = &args.named;
    if !is_loopback(url) {
        let mut missing = named.missing();
        if args.user_token.is_none() {
            missing.push("--user-token");
        }
        if !missing.is_empty() {
            return Err(Failure::Usage(belongs_to_somebody(
                &url.to_string(),
                &missing,
            )));
        }
        for (option, value, placeholder) in [
            ("--token", &named.token, "ExampleBot"),
            ("--user-token", &args.user_token, USER_TOKEN),
            (
                "--info-url",
                &named.info_url,
                "https://www.example.com/bot.html",
            ),
        ] {
            if value.as_deref() == Some(placeholder) {
                return Err(Failure::Usage(format!(
                    "{option} {placeholder} is a placeholder; sites need a real one"
                )));
            }
        }
    }
    let user_token = args.user_token.as_deref().unwrap_or(USER_TOKEN);
    let builder = named.builder().user_token(user_token);
    builder.build().map_err(Failure::Identity)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etiquette_tests::folder::TempFolder;
    use etiquette_tests::site::{Answer, Site};

    use super::*;

    async fn fetch(arguments: &[&str]) -> (Exit, String, String) {
        let args = <Args as clap::Parser>::try_parse_from([&["fetch"], arguments].concat());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = run(&args.unwrap(), &mut out, &mut err).await;
        let text = |bytes| String::from_utf8(bytes).unwrap();
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
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["refusal"]["kind"], "disallowed");
        assert_eq!(report["refusal"]["line"], 2);
        assert_eq!(
            report["refusal"]["contact"],
            "https://www.example.com/bot.html"
        );
        assert_eq!(site.log().targets(), ["/robots.txt"]);
    }

    #[tokio::test]
    async fn addresses_of_its_own_network_are_not_for_urls_from_elsewhere() {
        let site = Site::builder().start().await.unwrap();
        let (exit, _, err) = fetch(&[&site.url("/")]).await;
        assert_eq!(exit, Exit::NotPublic, "{err}");
        assert!(err.contains("--allow-private"), "{err}");
        let (_, out, _) = fetch(&["--json", &site.url("/")]).await;
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["refusal"]["kind"], "address_not_public");
        assert_eq!(site.log().connections(), 0);
    }

    #[tokio::test]
    async fn somebody_else_s_site_sees_a_real_name() {
        let (exit, _, err) = fetch(&["https://site.example/"]).await;
        assert_eq!(exit, Exit::Usage);
        assert!(err.contains("--token"), "{err}");
    }

    #[tokio::test]
    async fn root_certificates_come_in_both_forms() {
        let pem = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n\
                   another one:\n-----BEGIN CERTIFICATE-----\nBA==\n-----END CERTIFICATE-----\n";
        let folder = TempFolder::new();
        let file = folder.join("etiquette-roots");
        for (bytes, expected) in [
            (pem.as_bytes(), &[&[1, 2, 3][..], &[4]][..]),
            (&[0x30, 0x82, 1], &[&[0x30, 0x82, 1]]),
        ] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(roots(&file).unwrap(), expected);
        }
        std::fs::remove_file(&file).unwrap();
        let missing = format!("--cacert={}", file.display());
        let (exit, _, err) = fetch(&["--allow-private", &missing, "http://127.0.0.1/"]).await;
        assert_eq!(exit, Exit::Usage);
        assert!(err.contains("etiquette-roots"), "{err}");
    }
}
