//! A day of polling on virtual time: six hosts, seven feeds, two ways to ask for them.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use etiquette_core::decide::robots_txt::RobotsPolicy;
use etiquette_tests::client::{fetch, get};
use etiquette_tests::site::{Answer, Arrival, Entry, Script, Site, SiteService};
use http::Uri;
use http_body_util::Empty;
use tower_etiquette::{BoxError, Clock, Etiquette, HostPolicy, Hosts, PausedClock};

use super::poller::Poller;
use crate::cli::Named;

/// Midnight, Tuesday, 1 December 2026.
const MIDNIGHT: u64 = 1_796_083_200;
const DAY: Duration = Duration::from_secs(24 * 3600);
const QUARTER: Duration = Duration::from_secs(15 * 60);

/// What a reader costs the sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cost {
    /// Requests, robots.txt included.
    pub requests: u64,
    /// Bytes of response bodies.
    pub bytes: u64,
    /// Answers 304.
    pub not_modified: u64,
    /// Requests while a site wants a pause. The first is how a reader learns of it.
    pub in_pause: u64,
    /// Requests after a feed is gone. The first is how a reader learns of it.
    pub after_gone: u64,
}

/// The same day, asked for in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Day {
    /// By the layers and the feeds' own pace.
    pub polite: Cost,
    /// Every 15 minutes, the whole feed.
    pub every_quarter: Cost,
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "what the sites saw in a day:")?;
        for (name, cost) in [
            ("at the feeds' pace", self.polite),
            ("every 15 minutes", self.every_quarter),
        ] {
            writeln!(
                f,
                "  {name:<20} {:>5} requests ({} of them 304), {:>9} bytes, {} in a pause, {} after \"gone\"",
                cost.requests, cost.not_modified, cost.bytes, cost.in_pause, cost.after_gone
            )?;
        }
        let share = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
        write!(
            f,
            "  {:.0} % of the requests, {:.1} % of the bytes",
            share(self.polite.requests, self.every_quarter.requests),
            share(self.polite.bytes, self.every_quarter.bytes)
        )
    }
}

const FEEDS: [&str; 7] = [
    // Says how long it may be kept, and which hours to leave out.
    "http://news.example/rss",
    // Says nothing and changes once a day.
    "http://blog.example/feed",
    // Its responses say how long they are fresh.
    "http://planet.example/atom",
    // Two feeds of one host, which asks for a pause in the morning.
    "http://wiki.example/changes",
    "http://wiki.example/pages",
    // Gone for good at noon.
    "http://shop.example/offers",
    // Moved for good to the blog's host.
    "http://old.example/feed",
];

/// Plays the day twice.
pub(super) async fn play(out: &mut (dyn Write + Send)) -> Result<Day, BoxError> {
    let polite = {
        let clock = clock();
        let sites = sites(&clock);
        let hosts = Hosts::builder()
            .policy(HostPolicy::new().jitter(0.0, 0.0))
            .clock(clock.clone())
            .build();
        let identity = Named::default().builder().build()?;
        // The default life of robots.txt is an hour, made for crawls. A client that comes once an hour would fetch it every time.
        let policy = RobotsPolicy::default().max_life(Duration::from_secs(6 * 3600));
        let client = Etiquette::new(identity)
            .hosts(hosts)
            .robots(|layer| layer.policy(policy))
            .service(sites.clone());
        let feeds: Vec<Uri> = FEEDS.iter().map(|feed| Uri::from_static(feed)).collect();
        let end = clock.now().wall + DAY;
        Poller::new(client, &feeds)
            .run::<Empty<Bytes>, _>(&*clock, Some(end), None, out)
            .await?;
        Cost::of(&sites.log().entries())
    };
    let clock = clock();
    let sites = sites(&clock);
    let start = tokio::time::Instant::now();
    for quarter in 0..96 {
        tokio::time::sleep_until(start + QUARTER * quarter).await;
        for feed in FEEDS {
            fetch(sites.clone(), get(feed)).await?;
        }
    }
    Ok(Day {
        polite,
        every_quarter: Cost::of(&sites.log().entries()),
    })
}

fn clock() -> Arc<PausedClock> {
    Arc::new(PausedClock::new(UNIX_EPOCH + Duration::from_secs(MIDNIGHT)))
}

/// All sites of the day.
fn sites(clock: &Arc<PausedClock>) -> SiteService {
    let clock = Arc::clone(clock);
    let script = Script::call(move |arrival| {
        let now = clock.now().wall;
        let midnight = UNIX_EPOCH + Duration::from_secs(MIDNIGHT);
        let minutes = now.duration_since(midnight).unwrap_or_default().as_secs() / 60;
        answer(arrival, minutes).header("date", &httpdate::fmt_http_date(now))
    });
    Site::builder().otherwise(script).in_process()
}

/// What a site of the day answers so many minutes after midnight.
fn answer(arrival: &Arrival, minutes: u64) -> Answer {
    let host = arrival.host.as_str();
    if arrival.is_robots_txt() {
        return Answer::status(404);
    }
    match host {
        "wiki.example" if (360..480).contains(&minutes) => {
            Answer::retry_after(503, (480 - minutes) * 60)
        }
        "shop.example" if minutes >= 720 => Answer::status(410),
        "news.example" => {
            let extra =
                "<ttl>60</ttl><skipHours><hour>1</hour><hour>2</hour><hour>3</hour></skipHours>";
            feed(host, minutes / 180, extra)
        }
        "blog.example" => feed(host, minutes / 1440, ""),
        "planet.example" => feed(host, minutes / 120, "").header("cache-control", "max-age=5400"),
        "wiki.example" => feed(host, minutes / 90, ""),
        "shop.example" => feed(host, minutes / 600, ""),
        "old.example" => {
            Answer::status(301).header("location", "http://blog.example/feed?from=old")
        }
        _ => Answer::status(404),
    }
}

/// The state of a feed after so many changes: twenty entries, the newest first.
fn feed(host: &str, changes: u64, extra: &str) -> Answer {
    let entries: String = (0..20)
        .map(|age| {
            let number = 100 + changes - age;
            format!(
                "<item><title>Entry {number}</title><link>http://{host}/{number}</link><guid>http://{host}/{number}</guid>\
                 <description>{}</description></item>\n",
                "About as much text as a summary has. ".repeat(8)
            )
        })
        .collect();
    let feed = format!(
        "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>{host}</title>{extra}\n{entries}</channel></rss>\n"
    );
    Answer::of("application/rss+xml", feed).etag(&format!("\"{changes}\""))
}

impl Cost {
    /// What is in a log of the sites.
    fn of(log: &[Entry]) -> Self {
        let answered = |status: u16| {
            let entries = log
                .iter()
                .filter(|entry| entry.status.is_some_and(|s| s == status));
            entries.count() as u64
        };
        Self {
            requests: log.len() as u64,
            bytes: log.iter().map(|entry| entry.bytes).sum(),
            not_modified: answered(304),
            in_pause: answered(503),
            after_gone: answered(410),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_day_at_the_feeds_pace_costs_a_fraction() {
        let mut out = Vec::new();
        let day = play(&mut out).await.unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(day.every_quarter.requests, 7 * 96);
        assert!(
            day.polite.requests * 4 < day.every_quarter.requests,
            "{day}\n{text}"
        );
        assert!(
            day.polite.bytes * 5 < day.every_quarter.bytes,
            "{day}\n{text}"
        );
        // The pause of one feed holds for the other feed of its host, and "gone" is believed.
        assert_eq!(day.polite.in_pause, 1, "{text}");
        assert_eq!(day.polite.after_gone, 1, "{text}");
        assert!(
            text.contains("moved for good to http://blog.example/feed?from=old"),
            "{text}"
        );
        assert!(text.contains("304 not modified"), "{text}");
        let news = text
            .lines()
            .filter(|line| line.contains("http://news.example/rss"));
        for line in news {
            let hour: u32 = line[..2].parse().unwrap();
            assert!(!(1..4).contains(&hour), "{line}");
        }
    }
}
