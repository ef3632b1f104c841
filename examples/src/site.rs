//! The small site that examples serve to themselves: ten URLs that give a polite client something to obey.

use std::io::{self, Write};
use std::time::Duration;

use etiquette_tests::promises::Expected;
use etiquette_tests::site::{Answer, Arrival, Script, Site};

/// The Crawl-delay in its robots.txt.
pub const CRAWL_DELAY: Duration = Duration::from_millis(300);

/// The Retry-After, in seconds, of the page that is busy once.
pub const RETRY_AFTER: u32 = 2;

/// What its robots.txt disallows to everybody.
pub const DISALLOWED: &[&str] = &["/private/"];

const CHANGED: &str = "Sun, 01 Nov 2020 08:00:00 GMT";

/// What the operator of this site expects of a client named `token` that has one request in flight, or `several`.
#[must_use]
pub fn expected(token: &str, several: bool) -> Expected<'_> {
    // On loopback a request that is on its way arrives within a few milliseconds.
    let travel = if several { 50 } else { 0 };
    Expected {
        token,
        disallowed: DISALLOWED,
        delay: CRAWL_DELAY,
        travel: Duration::from_millis(travel),
    }
}

/// Serves the site on loopback.
///
/// # Errors
/// When loopback cannot be listened on.
pub async fn serve() -> io::Result<Site> {
    Site::builder()
        .at("/robots.txt", Script::call(robots))
        .at(
            "/",
            page(
                "Start",
                "<p><a href=about.html>About</a>, <a href=news.html>news</a>, \
                 <a href=busy.html>a busy page</a>, <a href=private/diary.html>a diary</a>, \
                 <a href=feed.xml>a feed</a></p>",
            )
            .etag("\"start-1\""),
        )
        .at(
            "/about.html",
            page("About", "<p>A site that crawls itself.</p>")
                .last_modified(CHANGED)
                .header("cache-control", "no-cache"),
        )
        .at(
            "/news.html",
            page("News", "<p>Good for a minute.</p>")
                .etag("\"news-1\"")
                .header("cache-control", "max-age=60"),
        )
        .at(
            "/busy.html",
            [
                Answer::too_many(RETRY_AFTER),
                page("Busy", "<p>Once, and then no more.</p>").etag("\"busy-1\""),
            ],
        )
        .at(
            "/archive.html",
            page("Archive", "<p>Only the sitemap leads here.</p>")
                .etag("W/\"archive-1\"")
                .last_modified(CHANGED),
        )
        .at(
            "/private/diary.html",
            page("Diary", "<p>Nobody's business.</p>"),
        )
        .at("/feed.xml", Script::call(feed))
        .at("/sitemap.xml", Script::call(sitemap))
        .start()
        .await
}

/// Writes what the site saw.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_log(site: &Site, out: &mut (dyn Write + Send)) -> io::Result<()> {
    writeln!(out, "\nThe site's access log:")?;
    let entries = site.log().entries();
    entries
        .iter()
        .try_for_each(|entry| writeln!(out, "{entry}"))
}

fn page(title: &str, body: &str) -> Answer {
    Answer::html(&format!(
        "<!doctype html>\n<html lang=en>\n<title>{title}</title>\n\
         <link rel=alternate type=application/atom+xml href=feed.xml>\n<h1>{title}</h1>\n{body}\n</html>\n"
    ))
}

fn robots(arrival: &Arrival) -> Answer {
    Answer::text(&format!(
        "User-agent: *\nDisallow: {}\nCrawl-delay: {}\n\nSitemap: http://{}/sitemap.xml\n",
        DISALLOWED[0],
        CRAWL_DELAY.as_secs_f64(),
        arrival.host
    ))
    .etag("\"robots-1\"")
}

fn feed(arrival: &Arrival) -> Answer {
    Answer::of(
        "application/atom+xml",
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
             <feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
             <title>News</title><id>http://{host}/</id><updated>2020-11-01T08:00:00Z</updated>\n\
             <entry><title>Good for a minute</title><id>http://{host}/news.html</id>\
             <link href=\"http://{host}/news.html\"/><updated>2020-11-01T08:00:00Z</updated></entry>\n\
             </feed>\n",
            host = arrival.host
        ),
    )
    .etag("\"feed-1\"")
}

fn sitemap(arrival: &Arrival) -> Answer {
    let day = "<lastmod>2020-11-01</lastmod>";
    let urls: String = [
        ("/", day),
        ("/about.html", ""),
        ("/news.html", day),
        ("/archive.html", day),
    ]
    .iter()
    .map(|(path, date)| {
        format!(
            "<url><loc>http://{}{path}</loc>{date}</url>\n",
            arrival.host
        )
    })
    .collect();
    Answer::of(
        "application/xml",
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
             <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{urls}</urlset>\n"
        ),
    )
    .etag("\"sitemap-1\"")
}
