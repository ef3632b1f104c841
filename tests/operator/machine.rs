//! The crawl example prefers machine formats: what sitemaps and feeds say decides what is asked for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use etiquette_examples::crawl::Tally;
use etiquette_tests::folder::TempFolder;
use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Arrival, Script, Site};
use serde_json::Value;

use crate::crawl::{Output, crawl};

const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// A sitemap of these pages and their dates; a path alone is one of the site itself.
fn sitemap<'a>(arrival: &Arrival, pages: impl IntoIterator<Item = (&'a str, &'a str)>) -> Answer {
    let own = format!("http://{}", arrival.host);
    let pages: String = pages
        .into_iter()
        .map(|(path, date)| {
            let site = if path.starts_with('/') { &own } else { "" };
            match date {
                "" => format!("<url><loc>{site}{path}</loc></url>"),
                _ => format!("<url><loc>{site}{path}</loc><lastmod>{date}</lastmod></url>"),
            }
        })
        .collect();
    Answer::of(
        "application/xml",
        format!("<urlset xmlns=\"{NAMESPACE}\">{pages}</urlset>"),
    )
}

/// A robots.txt that names a sitemap and says what else is given.
fn robots(map: &'static str, rules: &'static str) -> Script {
    Script::call(move |arrival| {
        let host = &arrival.host;
        Answer::text(&format!("{rules}Sitemap: http://{host}{map}\n"))
    })
}

/// This moment, as a sitemap writes it.
fn now() -> String {
    // The wall clock is what a site dates its changes by.
    #[expect(clippy::disallowed_methods)]
    let http = httpdate::fmt_http_date(SystemTime::now());
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(&http[8..11]).unwrap() / 3 + 1;
    format!(
        "{}-{month:02}-{}T{}Z",
        &http[12..16],
        &http[5..7],
        &http[17..25]
    )
}

const PAGES: usize = 500;

/// Which pages change between the runs.
const CHANGED: [usize; 5] = [3, 77, 250, 251, 499];

fn path(page: usize) -> String {
    match page {
        0 => "/".to_owned(),
        _ => format!("/page-{page}.html"),
    }
}

/// A site of 500 pages, each with links to ten others, and a sitemap that dates each. `changed` turns five of them
/// into new ones.
async fn large(changed: &Arc<AtomicBool>) -> Site {
    let listed = Arc::clone(changed);
    let mut site = Site::builder()
        .at("/robots.txt", robots("/sitemap.xml", ""))
        .at(
            "/sitemap.xml",
            Script::call(move |arrival| {
                let now = now();
                let changed = listed.load(Ordering::Relaxed);
                let paths: Vec<String> = (0..PAGES).map(path).collect();
                let date = |page: usize| match CHANGED.contains(&page) && changed {
                    true => now.as_str(),
                    false => "2026-01-01T08:00:00Z",
                };
                sitemap(
                    arrival,
                    (0..PAGES).map(|page| (paths[page].as_str(), date(page))),
                )
            }),
        );
    for page in 0..PAGES {
        let links: String = (1..=10)
            .map(|n| format!("<a href={}>{n}</a> ", path((page * 10 + n) % PAGES)))
            .collect();
        let changed = Arc::clone(changed);
        let new = CHANGED.contains(&page);
        let script = Script::call(move |_| {
            let edition = u8::from(new && changed.load(Ordering::Relaxed));
            let body = format!("<title>{page}, edition {edition}</title>{links}");
            let answer = Answer::html(&body);
            // Not every site has validators: no copy of these is kept, and the visit counts all the same.
            match page % 3 {
                0 => answer,
                _ => answer.etag(&format!("\"{page}-{edition}\"")),
            }
        });
        site = site.at(&path(page), script);
    }
    site.start().await.unwrap()
}

/// What a crawl of `site` came to, and which pages it asked for.
async fn visit(site: &Site, rest: &[&str]) -> (Tally, Vec<String>, String) {
    let before = site.log().entries().len();
    let start = site.url("/");
    let options = ["--allow-private", "--delay=0", "--max-pages=1000"];
    let (outcome, text) = crawl(&[&[start.as_str()], &options[..], rest].concat()).await;
    let asked = site.log().targets().split_off(before);
    let pages = asked
        .iter()
        .filter(|target| !["/robots.txt", "/sitemap.xml"].contains(&target.as_str()));
    (outcome.runs[0], pages.cloned().collect(), text)
}

#[tokio::test]
async fn the_second_run_asks_for_the_five_pages_that_changed() {
    let changed = Arc::new(AtomicBool::new(false));
    let site = large(&changed).await;
    let folder = TempFolder::new();
    let (first, pages, text) = visit(&site, &[&folder.option("--cache"), "--quiet"]).await;
    let different: BTreeSet<&String> = pages.iter().collect();
    assert_eq!((pages.len(), different.len()), (PAGES, PAGES), "{text}");
    // All pages and the sitemap, which links would not have asked for.
    assert_eq!((first.network, first.lists), (PAGES + 1, 1), "{text}");
    assert_eq!((first.unchanged, first.saved()), (0, -1), "{text}");

    changed.store(true, Ordering::Relaxed);
    site.log().next_run();
    let (second, mut pages, text) =
        visit(&site, &[&folder.option("--cache"), "--quiet", "--json"]).await;
    pages.sort();
    let mut expected: Vec<String> = CHANGED.map(path).into();
    expected.sort();
    assert_eq!(pages, expected, "{text}");
    assert_eq!(second.network, CHANGED.len() + 1, "{text}");
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["unchanged"], PAGES - CHANGED.len());
    assert_eq!(summary["unchanged_linked"], PAGES - CHANGED.len());
    assert_eq!(summary["saved"], PAGES - CHANGED.len() - 1);
    for entry in site.log().entries().iter().filter(|entry| entry.run == 2) {
        let with_tag = CHANGED
            .iter()
            .any(|page| page % 3 != 0 && path(*page) == entry.target);
        assert!(!with_tag || entry.is_conditional(), "{entry}");
    }
}

/// A small site in which each kind of list has a say.
async fn mixed() -> Site {
    Site::builder()
        .at("/robots.txt", robots("/index.xml", "User-agent: *\nDisallow: /no\n\n"))
        .at(
            "/index.xml",
            Script::call(|arrival| {
                let host = &arrival.host;
                // The second sitemap is the index again.
                Answer::of(
                    "application/xml",
                    format!(
                        "<sitemapindex xmlns=\"{NAMESPACE}\"><sitemap><loc>http://{host}/map.xml</loc></sitemap>\
                         <sitemap><loc>http://{host}/index.xml</loc></sitemap></sitemapindex>"
                    ),
                )
            }),
        )
        .at(
            "/map.xml",
            Script::call(|arrival| {
                let pages = [
                    ("/old", "2026-01-01"),
                    ("/undated", ""),
                    ("/new", "2026-11-30"),
                    ("/no/listed", "2026-11-29"),
                    ("http://elsewhere.test/listed", "2026-11-30"),
                    ("/middle", "2026-06-01T00:00:00Z"),
                ];
                sitemap(arrival, pages)
            }),
        )
        .at(
            "/feed.xml",
            Script::call(|arrival| {
                let host = &arrival.host;
                Answer::of(
                    "application/rss+xml",
                    format!(
                        "<rss version=\"2.0\"><channel><title>News</title><item><title>A</title>\
                         <link>http://{host}/fed</link><pubDate>Fri, 27 Nov 2026 08:00:00 GMT</pubDate></item>\
                         </channel></rss>"
                    ),
                )
            }),
        )
        .at(
            "/",
            Answer::html(
                "<link rel=alternate type=application/rss+xml href=feed.xml><a href=linked>l</a> <a href=old>o</a>",
            )
            .etag("\"start\""),
        )
        .otherwise(Answer::html("<a href=/beyond>b</a>").etag("\"page\""))
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn the_newest_first_then_undated_then_links() {
    let site = mixed().await;
    let output = Output::new();
    let start = site.url("/");
    let run = ["--allow-private", "--delay=0.02", "--quiet"];
    let (outcome, text) = crawl(&[&run[..], &[&start, &output.option()]].concat()).await;
    let order = [
        "/robots.txt",
        "/",
        "/index.xml",
        "/feed.xml",
        "/map.xml",
        "/new",
        "/fed",
        "/middle",
        "/old",
        "/undated",
        "/linked",
        "/beyond",
    ];
    let mut asked = site.log().targets();
    // The feed is known before the sitemap of the index.
    asked[3..5].sort();
    assert_eq!(asked, order, "{text}");
    promises::nothing_disallowed(&site.log().entries(), &["/no"]).expect_kept();
    let tally = outcome.runs[0];
    assert_eq!(
        (tally.refused, tally.lists, tally.left),
        (1, 3, 0),
        "{text}"
    );

    let lines = output.lines();
    let found = |path: &str| {
        let line = lines.iter().find(|line| {
            let url = line["url"].as_str().unwrap();
            url.ends_with(path)
        });
        line.unwrap()["found"].as_str().unwrap().to_owned()
    };
    for (path, by) in [
        ("/", "start"),
        ("/index.xml", "robots"),
        ("/map.xml", "sitemap"),
        ("/feed.xml", "start"),
        ("/old", "sitemap"),
        ("/fed", "feed"),
        ("/linked", "link"),
        ("/no/listed", "sitemap"),
    ] {
        assert_eq!(found(path), by, "{path}");
    }
}

#[tokio::test]
async fn one_budget_holds_over_sitemaps_feeds_and_links() {
    let site = mixed().await;
    let start = site.url("/");
    let run = [
        "--allow-private",
        "--delay=0.02",
        "--quiet",
        "--max-pages=3",
    ];
    let (outcome, text) = crawl(&[&run[..], &[&start]].concat()).await;
    let asked = site.log().targets();
    let pages: Vec<&String> = asked
        .iter()
        .filter(|target| !target.ends_with(".xml") && !target.ends_with(".txt"))
        .collect();
    assert_eq!(pages, ["/", "/new", "/fed"], "{text}");
    assert!(outcome.runs[0].left > 0, "{text}");
}

#[tokio::test]
async fn links_alone_read_no_list() {
    let site = mixed().await;
    let start = site.url("/");
    let run = [
        "--allow-private",
        "--delay=0.02",
        "--quiet",
        "--prefer=links",
    ];
    let (_, text) = crawl(&[&run[..], &[&start]].concat()).await;
    let asked = site.log().targets();
    assert_eq!(
        asked,
        ["/robots.txt", "/", "/linked", "/old", "/beyond"],
        "{text}"
    );
}
