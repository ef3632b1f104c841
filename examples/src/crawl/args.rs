//! The command line.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use http::Uri;

/// Crawls a site politely and says why it goes at the pace it goes.
///
/// Without a URL it serves a small site to itself, crawls it twice and shows what the site saw. With URLs it stays on
/// their hosts, reads the sitemaps and feeds that robots.txt and the start page name, and follows the links of HTML
/// pages.
#[derive(Clone, Debug, Parser)]
#[command(name = "crawl")]
#[non_exhaustive]
pub struct Args {
    /// Where to start.
    #[arg(value_name = "URL")]
    pub urls: Vec<Uri>,
    /// The name that sites can address in robots.txt. Required unless all targets are loopback.
    #[arg(long, value_name = "T")]
    pub token: Option<String>,
    /// The version behind the name.
    #[arg(long, value_name = "V")]
    pub bot_version: Option<String>,
    /// A page that says what this crawler is and how to stop it.
    #[arg(long, value_name = "U")]
    pub info_url: Option<String>,
    /// A mailbox for operators of the sites, sent as From.
    #[arg(long, value_name = "MAIL")]
    pub contact: Option<String>,
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
    pub places: NonZeroU32,
    /// The shortest gap between two requests to a host [default: 1, and 0.2 for the site of its own].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub min_gap: Option<Duration>,
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

/// Where a host name and port lead, whatever DNS says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolve {
    /// The host name, in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The address.
    pub addr: IpAddr,
}

impl FromStr for Resolve {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // An address may contain colons, a host name may not.
        let mut parts = text.splitn(3, ':');
        let (Some(host), Some(port), Some(addr)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err("not of the form HOST:PORT:ADDR");
        };
        if host.is_empty() {
            return Err("the host is empty");
        }
        let addr = addr.trim_start_matches('[').trim_end_matches(']');
        Ok(Self {
            host: host.to_ascii_lowercase(),
            port: port.parse().map_err(|_| "the port is not a number")?,
            addr: addr
                .parse()
                .map_err(|_| "the address is not an IP address")?,
        })
    }
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds")?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "not a span of time")
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
            "--places=3",
            "--min-gap=0.25",
            "--max-wait=5",
            "--allow-private",
            "--resolve=Site.test:443:127.0.0.1",
            "--resolve=other.test:80:[::1]",
            "--output=out.jsonl",
            "--quiet",
            "--prefer=links",
            "--json",
        ])
        .unwrap();
        assert_eq!(args.urls.len(), 2);
        assert_eq!(args.min_gap, Some(Duration::from_millis(250)));
        assert_eq!(args.max_wait, Duration::from_secs(5));
        assert_eq!(
            (args.places.get(), args.max_pages, args.max_depth),
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
            "--min-gap=-1",
            "--min-gap=NaN",
            "--max-wait=soon",
            "--places=0",
            "--places=x",
            "--prefer=x",
        ] {
            assert!(Args::try_parse_from(["crawl", wrong]).is_err(), "{wrong}");
        }
    }
}
