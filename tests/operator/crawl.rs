//! The crawl example as its users run it: `crawl` with and without targets.

use std::future::pending;
use std::path::PathBuf;

use clap::Parser;
use etiquette_examples::crawl::{Args, BadTarget, Error, Outcome, run};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Script, Site};
use serde_json::Value;

use crate::client::{TOKEN, millis};

pub(crate) fn args(rest: &[&str]) -> Args {
    Args::try_parse_from(["crawl"].iter().chain(rest)).unwrap()
}

/// A file for `--output` that is removed in the end.
pub(crate) struct Output(TempFolder);

impl Output {
    pub(crate) fn new() -> Self {
        Self(TempFolder::new())
    }

    fn file(&self) -> PathBuf {
        self.0.join("output.jsonl")
    }

    pub(crate) fn option(&self) -> String {
        format!("--output={}", self.file().display())
    }

    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.file()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

pub(crate) async fn crawl(rest: &[&str]) -> (Outcome, String) {
    let mut out = Vec::new();
    let outcome = run(&args(rest), &mut out, pending()).await.unwrap();
    (outcome, String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn without_targets_it_keeps_every_promise() {
    let output = Output::new();
    let (outcome, text) = crawl(&[&output.option()]).await;
    assert_eq!(outcome.status(), 0, "{text}");
    assert!(!outcome.stopped);
    for check in outcome.promises.unwrap().checks() {
        check.expect_kept();
    }
    let [first, second] = &outcome.runs[..] else {
        panic!("{text}")
    };
    assert_eq!(first.network, 7, "{text}");
    assert_eq!(
        (first.refused, first.failed, first.left),
        (1, 0, 0),
        "{text}"
    );
    assert_eq!(second.network, 0, "{text}");
    // The sitemap dates three pages: they are not asked for again. One of them is fresh, which saves nothing, and the
    // sitemap itself costs a request.
    assert_eq!((second.validated, second.cache), (4, 0), "{text}");
    assert_eq!((second.unchanged, second.unchanged_fresh), (3, 1), "{text}");
    assert_eq!((second.lists, second.saved()), (1, 1), "{text}");
    // Who reads along sees the site's own log, the table, and why it takes the time it takes.
    for expected in [
        "\"GET /robots.txt HTTP/1.1\" 200",
        "\"GET /busy.html HTTP/1.1\" 429",
        "compatible; ExampleBot/0.1; https://www.example.com/bot.html",
        "Crawl-delay",
        "named",
        "second run conditional",
        "3 unchanged and not asked for; 1 request saved",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(!text.contains("GET /private/"), "{text}");

    let lines = output.lines();
    assert_eq!(lines.len(), 16);
    let refused = lines.iter().find(|line| !line["refusal"].is_null());
    let refused = &refused.unwrap()["refusal"];
    assert_eq!(refused["kind"], "disallowed");
    assert_eq!(refused["line"], 2);
    assert_eq!(refused["rule"], "Disallow: /private/");
    let busy = lines.iter().find(|line| ends_with(line, "/busy.html"));
    assert!(busy.unwrap()["waited_ms"].as_u64().unwrap() >= 2_000);
}

fn ends_with(line: &Value, path: &str) -> bool {
    line["url"].as_str().unwrap().ends_with(path)
}

#[tokio::test]
async fn it_stays_on_the_start_hosts_and_follows_what_it_may() {
    let elsewhere = Site::builder().start().await.unwrap();
    let foreign = elsewhere.url_as("elsewhere.test", "/");
    let site = Site::builder()
        .at(
            "/robots.txt",
            Script::call(|arrival| {
                Answer::text(&format!(
                    "User-agent: *\nDisallow: /no\n\nSitemap: http://{}/map.xml\n",
                    arrival.host
                ))
            }),
        )
        .at(
            "/",
            Answer::html(&format!(
                "<a href=/a>a</a> <a href='/a#part'>a</a> <a href=no>no</a> <a href={foreign}>x</a> \
                 <a rel=nofollow href=/unfollowed>b</a> <a href=/meta>m</a> <a href=/tag>t</a> \
                 <a href=/moved>o</a> <!-- <a href=/comment> -->"
            )),
        )
        .at(
            "/meta",
            Answer::html("<meta name=robots content=nofollow><a href=/beyond-meta>x</a>"),
        )
        .at(
            "/tag",
            Answer::html("<a href=/beyond-tag>x</a>").header("x-robots-tag", "nofollow"),
        )
        .at("/a", Answer::html("<a href=/deep>x</a>"))
        .at("/deep", Answer::html("<a href=/too-deep>x</a>"))
        .at("/moved", Answer::redirect("/new"))
        .at("/new", Answer::html("here now"))
        .at(
            "/map.xml",
            Script::call(|arrival| {
                let host = &arrival.host;
                Answer::of(
                    "application/xml",
                    format!(
                        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\
                         <url><loc>http://{host}/listed</loc></url>\
                         <url><loc>http://elsewhere.test/listed</loc></url></urlset>"
                    ),
                )
            }),
        )
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let output = Output::new();
    let start = site.url_as("site.test", "/");
    let resolve = format!("--resolve=site.test:{}:127.0.0.1", site.port());
    let (outcome, text) = crawl(&[
        &start,
        &resolve,
        &output.option(),
        "--allow-private",
        "--delay=0.05",
        "--max-depth=2",
    ])
    .await;
    assert_eq!(outcome.status(), 0);
    let mut seen = site.log().targets();
    let first: Vec<String> = seen.drain(..2).collect();
    assert_eq!(first, ["/robots.txt", "/"], "{text}");
    seen.sort();
    assert_eq!(
        seen,
        [
            "/a", "/deep", "/listed", "/map.xml", "/meta", "/moved", "/new", "/tag"
        ],
        "{text}"
    );
    assert_eq!(elsewhere.log().connections(), 0);
    let log = site.log().entries();
    promises::named(&log, TOKEN).expect_kept();
    promises::nothing_disallowed(&log, &["/no"]).expect_kept();
    promises::smallest_delay(&log, millis(50)).expect_kept();

    let lines = output.lines();
    let status = |path: &str| {
        let line = lines.iter().find(|line| ends_with(line, path));
        let line = line.unwrap_or_else(|| panic!("{path}\n{text}"));
        (line["status"].as_u64(), line["from"].as_str())
    };
    assert_eq!(status("/listed"), (Some(200), Some("network")));
    assert_eq!(status("/moved"), (Some(302), Some("network")));
    assert_eq!(status("/no"), (None, None));
    assert_eq!(lines.len(), 10, "{text}");
}

#[tokio::test]
async fn max_pages_is_kept() {
    let links: String = (0..20).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let site = Site::builder()
        .otherwise(Answer::html(&links))
        .start()
        .await
        .unwrap();
    let start = site.url("/");
    let options = [
        "--allow-private",
        "--max-pages=4",
        "--delay=0.02",
        "--quiet",
    ];
    let (outcome, text) = crawl(&[&[start.as_str()], &options[..]].concat()).await;
    assert_eq!(outcome.runs[0].network, 4, "{text}");
    assert_eq!(outcome.runs[0].left, 17, "{text}");
    assert_eq!(site.log().pages().len(), 4);
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[tokio::test]
async fn a_long_pause_is_told_with_the_time_to_come_back() {
    let site = Site::builder()
        .at("/", Answer::too_many(86_400))
        .start()
        .await
        .unwrap();
    let output = Output::new();
    let (outcome, text) = crawl(&[
        &site.url("/"),
        &output.option(),
        "--allow-private",
        "--max-wait=2",
        "--delay=0.05",
    ])
    .await;
    assert_eq!(outcome.runs[0].urls(), 1, "{text}");
    assert_eq!(site.log().pages().len(), 1);
    let line = &output.lines()[0];
    assert_eq!(line["refusal"]["kind"], "paused", "{line}");
    assert!(line["refusal"]["retry_at"].is_string(), "{line}");
}

#[tokio::test]
async fn stopping_it_ends_with_the_summary() {
    let links: String = (0..20).map(|n| format!("<a href=/{n}>x</a>")).collect();
    let site = Site::builder()
        .otherwise(Answer::html(&links))
        .start()
        .await
        .unwrap();
    let args = args(&[&site.url("/"), "--allow-private", "--delay=0.1"]);
    let log = site.log().clone();
    let stop = async {
        crate::client::eventually("three pages", || log.pages().len() >= 3).await;
    };
    let mut out = Vec::new();
    let outcome = run(&args, &mut out, stop).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(outcome.stopped);
    assert_eq!(outcome.status(), 0);
    let summary = text.lines().last().unwrap();
    assert!(summary.starts_with("stopped: "), "{text}");
    assert!(outcome.runs[0].left > 0);
}

#[tokio::test]
async fn nothing_is_sent_to_targets_that_may_not_be_crawled() {
    let site = Site::builder().start().await.unwrap();
    let refused = async |rest: &[&str]| {
        let mut out = Vec::new();
        match run(&args(rest), &mut out, pending()).await {
            Err(Error::Target(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let url = site.url("/");
    assert_eq!(refused(&[&url]).await, BadTarget::Private(url.clone()));
    assert!(matches!(
        refused(&["http://192.0.2.1/", &url, "--allow-private"]).await,
        BadTarget::Nameless(..)
    ));
    assert_eq!(site.log().connections(), 0);
}

/// Targets of somebody else's: no loopback address, but this machine all the same.
fn stranger(site: &Site, link: &Site) -> [String; 8] {
    [
        site.url_as("site.acme.org", "/"),
        format!("--resolve=site.acme.org:{}:0.0.0.0", site.port()),
        format!("--resolve=bot.acme.org:{}:127.0.0.1", link.port()),
        format!("--info-url={}", link.url_as("bot.acme.org", "/bot.html")),
        "--token=AcmeBot".to_owned(),
        "--bot-version=1".to_owned(),
        "--allow-private".to_owned(),
        "--delay=0.05".to_owned(),
    ]
}

async fn crawl_stranger(
    site: &Site,
    link: &Site,
    more: &[&str],
) -> (Result<Outcome, Error>, String) {
    let options = stranger(site, link);
    let mut rest: Vec<&str> = options.iter().map(String::as_str).collect();
    rest.extend(more);
    let mut out = Vec::new();
    let outcome = run(&args(&rest), &mut out, pending()).await;
    (outcome, String::from_utf8(out).unwrap())
}

#[tokio::test]
async fn the_page_behind_its_name_is_asked_once_and_politely() {
    let site = Site::builder()
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let link = Site::builder()
        .at("/bot.html", Answer::redirect("/about/bot.html"))
        .at("/about/bot.html", Answer::html("<h1>AcmeBot</h1>"))
        .start()
        .await
        .unwrap();
    let (outcome, text) = crawl_stranger(&site, &link, &["--require-published"]).await;
    assert_eq!(outcome.unwrap().runs[0].network, 1, "{text}");
    assert!(!text.contains("warning"), "{text}");
    let seen = link.log().entries();
    assert_eq!(
        link.log().targets(),
        ["/robots.txt", "/bot.html", "/about/bot.html"]
    );
    promises::named(&seen, "AcmeBot").expect_kept();
    promises::smallest_delay(&seen, millis(50)).expect_kept();
}

#[tokio::test]
async fn a_page_that_does_not_name_it_is_told_or_ends_it() {
    let site = Site::builder()
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let unnamed = Answer::html("Welcome to Acme");
    let closed = Answer::text("User-agent: AcmeBot\nDisallow: /\n");
    for (robots, page, why) in [
        (Answer::not_found(), unnamed, "does not name it"),
        (Answer::not_found(), Answer::not_found(), "status 404"),
        (closed, Answer::html("AcmeBot"), "robots.txt disallows it"),
    ] {
        let link = Site::builder()
            .at("/robots.txt", robots)
            .at("/bot.html", page)
            .start()
            .await
            .unwrap();
        let before = site.log().connections();
        let (outcome, text) = crawl_stranger(&site, &link, &["--require-published"]).await;
        let error = outcome.expect_err(why);
        assert_eq!(error.status(), 3);
        let message = error.to_string();
        let url = link.url_as("bot.acme.org", "/bot.html");
        for part in [url.as_str(), "AcmeBot", why] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(site.log().connections(), before, "{text}");

        let (outcome, text) = crawl_stranger(&site, &link, &["--quiet"]).await;
        assert_eq!(outcome.unwrap().runs[0].network, 1, "{text}");
        assert!(text.starts_with(&format!("warning: {message}")), "{text}");
    }
}

#[tokio::test]
async fn what_is_not_to_be_indexed_or_followed_is_not() {
    let link = "<a href=/beyond>x</a>";
    let page = |meta: &str| Answer::html(&format!("{meta}{link}"));
    let tagged = |tag: &str| page("").header("x-robots-tag", tag);
    let meta = |name: &str, says: &str| page(&format!("<meta name={name} content=\"{says}\">"));
    let cases = [
        ("/plain", Answer::html("nothing said"), false),
        ("/tag", tagged("none"), true),
        (
            "/tag-ours",
            tagged("otherbot: all, ExampleBot: noindex, nofollow"),
            true,
        ),
        ("/meta", meta("robots", "noindex,nofollow"), true),
        ("/meta-ours", meta("examplebot", "none"), true),
        ("/meta-blanks", meta("robots", "noindex nofollow"), true),
        (
            "/both",
            meta("robots", "noindex").header("x-robots-tag", "nofollow"),
            true,
        ),
        (
            "/other",
            Answer::html("<meta name=otherbot content=none>")
                .header("x-robots-tag", "otherbot: none"),
            false,
        ),
        (
            "/file",
            Answer::of("application/pdf", "%PDF-").header("x-robots-tag", "noindex"),
            true,
        ),
    ];
    let links: String = cases
        .iter()
        .map(|(path, ..)| format!("<a href={path}>x</a>"))
        .collect();
    let mut builder = Site::builder()
        .at(
            "/robots.txt",
            Script::call(|arrival| {
                Answer::text(&format!("Sitemap: http://{}/map.txt\n", arrival.host))
            }),
        )
        .at(
            "/map.txt",
            Script::call(|arrival| {
                Answer::text(&format!("http://{}/beyond\n", arrival.host))
                    .header("x-robots-tag", "nofollow")
            }),
        )
        .at("/", Answer::html(&links))
        .otherwise(Answer::html("beyond what may be followed"));
    for (path, answer, _) in &cases {
        builder = builder.at(path, answer.clone().etag("\"1\""));
    }
    let site = builder.start().await.unwrap();
    let output = Output::new();
    let folder = TempFolder::new();
    let cache = folder.option("--cache");
    // What is said stays said when the copy is confirmed, or answers without being asked about.
    for _ in 0..2 {
        let (_, text) = crawl(&[
            &site.url("/"),
            &output.option(),
            &cache,
            "--allow-private",
            "--delay=0.01",
        ])
        .await;
        let seen = site.log().targets();
        assert!(!seen.iter().any(|target| target == "/beyond"), "{text}");
        let lines = output.lines();
        for (path, _, noindex) in &cases {
            let line = lines.iter().find(|line| ends_with(line, path));
            let line = line.unwrap_or_else(|| panic!("{path}\n{text}"));
            assert_eq!(line["noindex"] == true, *noindex, "{line}");
            assert_eq!(line["status"], 200, "{line}");
        }
        assert_eq!(text.matches("  noindex\n").count(), 7, "{text}");
    }
}
