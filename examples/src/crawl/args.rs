//! The command line.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use http::Uri;

use crate::cli::{Named, Resolve, seconds};

/// Crawls a site politely and says why it goes at the pace it goes.
///
/// Without a URL it serves a small site to itself, crawls it twice and shows what the site saw. With URLs it stays on
/// their hosts, reads the sitemaps and feeds that robots.txt and the start page name, and follows the links of HTML
/// pages.
///
/// Exit status: 0 done; 1 a promise broke; 2 it could not start; 3 the page of --info-url does not name the token.
#[derive(Clone, Debug, Parser)]
#[command(name = "crawl")]
#[non_exhaustive]
pub struct Args {
    /// Where to start.
    #[arg(value_name = "URL")]
    pub urls: Vec<Uri>,
    /// Who asks.
    #[command(flatten)]
    pub named: Named,
    /// Does not start unless the page of --info-url answers within 30 s and names the token. It is asked once, for targets
    /// that are not loopback; without this option, a page that does not is a warning.
    #[arg(long)]
    pub require_published: bool,
    /// How many pages are asked for at most, whether a sitemap, a feed or a link led to them. robots.txt, sitemaps (at
    /// most 50 of a host) and feeds (at most 10) are not counted.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_pages: usize,
    /// How many links a page may be away from where the crawl starts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub max_depth: usize,
    /// What decides which pages are visited, and in which order.
    #[arg(long, value_enum, default_value_t = Prefer::Machine)]
    pub prefer: Prefer,
    /// How many requests a host may have to answer at the same time.
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN)]
    pub max_in_flight: NonZeroU32,
    /// The shortest delay between two requests to a host [default: 1, and 0.2 for the site of its own].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub delay: Option<Duration>,
    /// How long a request may wait for its host before it is given up.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600")]
    pub max_wait: Duration,
    /// Allows targets on loopback and in private networks.
    #[arg(long)]
    pub allow_private: bool,
    /// Connects to ADDR instead of asking for the addresses of HOST. Can be given several times.
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    pub resolve: Vec<Resolve>,
    /// Writes one line of JSON for each URL.
    #[arg(long, value_name = "FILE.jsonl")]
    pub output: Option<PathBuf>,
    /// Shares budgets with all processes that name the same Redis or Valkey server, and robots.txt and responses too
    /// unless --cache is given.
    #[arg(long, value_name = "URL")]
    pub redis: Option<String>,
    /// Keeps responses, robots.txt, the times of visits and the pauses that sites asked for in this folder, so that the
    /// next run asks only for what changed, and no sooner than this one.
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Shows the summary only.
    #[arg(long)]
    pub quiet: bool,
    /// Writes nothing but the summary of each run, as one line of JSON. Its "saved" is the number of requests saved
    /// against following links alone with the same copies: pages that a sitemap lists as unchanged since their last
    /// visit and that were not asked for ("unchanged"), without those whose copy is fresh anyway ("unchanged_fresh"),
    /// less the requests for sitemaps and feeds to which no link leads ("lists"). To how many of those pages a link was
    /// seen is "unchanged_linked".
    #[arg(long)]
    pub json: bool,
}

/// What decides which pages are visited, and in which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum Prefer {
    /// Sitemaps and feeds: pages that are new or changed since the last visit, the newest first; then pages listed
    /// without a date; links fill in. Pages listed as unchanged are not asked for
    #[default]
    Machine,
    /// Links alone, the nearest first; no sitemap and no feed is read
    Links,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_as_documented() {
        let args = Args::try_parse_from([
            "crawl",
            "https://site.test/",
            "http://other.test/x?y",
            "--token=T",
            "--bot-version=V",
            "--info-url=U",
            "--contact=MAIL",
            "--max-pages=7",
            "--max-depth=2",
            "--max-in-flight=3",
            "--delay=0.25",
            "--max-wait=5",
            "--allow-private",
            "--resolve=Site.test:443:127.0.0.1",
            "--resolve=other.test:80:[::1]",
            "--require-published",
            "--output=out.jsonl",
            "--quiet",
            "--prefer=links",
            "--json",
        ])
        .unwrap();
        assert_eq!(args.urls.len(), 2);
        assert!(args.require_published);
        assert_eq!(args.named.contact.as_deref(), Some("MAIL"));
        assert_eq!(args.delay, Some(Duration::from_millis(250)));
        assert_eq!(args.max_wait, Duration::from_secs(5));
        assert_eq!(
            (args.max_in_flight.get(), args.max_pages, args.max_depth),
            (3, 7, 2)
        );
        let [one, two] = &args.resolve[..] else {
            panic!("{args:?}")
        };
        assert_eq!((one.host.as_str(), one.port), ("site.test", 443));
        assert!(two.addr.is_ipv6());
        assert!(args.allow_private && args.quiet && args.json && args.output.is_some());
        assert_eq!(args.prefer, Prefer::Links);
        let args = Args::try_parse_from(["crawl"]).unwrap();
        assert_eq!(args.prefer, Prefer::Machine);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for wrong in [
            "--resolve=site.test",
            "--resolve=site.test:80",
            "--resolve=site.test:x:127.0.0.1",
            "--resolve=site.test:80:localhost",
            "--resolve=:80:127.0.0.1",
            "--delay=-1",
            "--delay=NaN",
            "--max-wait=soon",
            "--max-in-flight=0",
            "--max-in-flight=x",
            "--prefer=x",
        ] {
            assert!(Args::try_parse_from(["crawl", wrong]).is_err(), "{wrong}");
        }
    }
}
