//! A day of polling on virtual time: six hosts, seven feeds, two ways to ask for them.

use std::convert::Infallible;
use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use etiquette_core::decide::robots_txt::RobotsPolicy;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body_util::{Empty, Full};

use tower::{Service, ServiceExt, service_fn};
use tower_etiquette::{BoxError, Clock, Etiquette, HostPolicy, Hosts, Identity, PausedClock};

use super::poller::Poller;

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
        let sites = Sites::new(&clock);
        let hosts = Hosts::builder()
            .policy(HostPolicy::new().jitter(0.0, 0.0))
            .clock(clock.clone())
            .build();
        let identity =
            Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
        // The default life of robots.txt is an hour, made for crawls. Who comes once an hour would read it every time.
        let policy = RobotsPolicy::default().max_life(Duration::from_secs(6 * 3600));
        let client = Etiquette::new(identity)
            .hosts(hosts)
            .robots(|layer| layer.policy(policy))
            .service(sites.service());
        let feeds: Vec<Uri> = FEEDS.iter().map(|feed| Uri::from_static(feed)).collect();
        let end = clock.now().wall + DAY;
        Poller::new(client, &feeds)
            .run::<Empty<Bytes>, _>(&*clock, Some(end), None, out)
            .await?;
        sites.cost()
    };
    let clock = clock();
    let sites = Sites::new(&clock);
    let start = tokio::time::Instant::now();
    for quarter in 0..96 {
        tokio::time::sleep_until(start + QUARTER * quarter).await;
        for feed in FEEDS {
            let request = Request::get(feed).body(Empty::<Bytes>::new())?;
            sites.service().oneshot(request).await?;
        }
    }
    Ok(Day {
        polite,
        every_quarter: sites.cost(),
    })
}

fn clock() -> Arc<PausedClock> {
    Arc::new(PausedClock::new(UNIX_EPOCH + Duration::from_secs(MIDNIGHT)))
}

/// All sites of the day, and what they saw.
#[derive(Clone)]
struct Sites {
    clock: Arc<PausedClock>,
    cost: Arc<Mutex<Cost>>,
}

impl Sites {
    fn new(clock: &Arc<PausedClock>) -> Self {
        Self {
            clock: clock.clone(),
            cost: Arc::default(),
        }
    }

    fn cost(&self) -> Cost {
        *self.cost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn service(
        &self,
    ) -> impl Service<
        Request<Empty<Bytes>>,
        Response = Response<Full<Bytes>>,
        Error = Infallible,
        Future: Send,
    > + Clone
    + Send
    + 'static {
        let sites = self.clone();
        service_fn(move |request: Request<Empty<Bytes>>| {
            let response = sites.answer(request.uri(), request.headers());
            async { Ok(response) }
        })
    }

    /// The answer to a request, counted.
    fn answer(&self, uri: &Uri, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let now = self.clock.now().wall;
        let minutes = now
            .duration_since(UNIX_EPOCH + Duration::from_secs(MIDNIGHT))
            .unwrap_or_default()
            .as_secs()
            / 60;
        let host = uri.host().unwrap_or_default();
        let busy =
            host == "wiki.example" && (360..480).contains(&minutes) && uri.path() != "/robots.txt";
        let gone = host == "shop.example" && minutes >= 720 && uri.path() != "/robots.txt";
        let answer = match (host, uri.path()) {
            (_, "/robots.txt") => Answer::status(404),
            _ if busy => {
                Answer::status(503).header("retry-after", ((480 - minutes) * 60).to_string())
            }
            _ if gone => Answer::status(410),
            ("news.example", _) => {
                let extra = "<ttl>60</ttl><skipHours><hour>1</hour><hour>2</hour><hour>3</hour></skipHours>";
                Answer::feed(host, minutes / 180, extra)
            }
            ("blog.example", _) => Answer::feed(host, minutes / 1440, ""),
            ("planet.example", _) => {
                Answer::feed(host, minutes / 120, "").header("cache-control", "max-age=5400")
            }
            ("wiki.example", _) => Answer::feed(host, minutes / 90, ""),
            ("shop.example", _) => Answer::feed(host, minutes / 600, ""),
            ("old.example", _) => {
                Answer::status(301).header("location", "http://blog.example/feed?from=old")
            }
            _ => Answer::status(404),
        };
        let response = answer.to(headers, now);
        let mut cost = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        cost.requests += 1;
        cost.in_pause += u64::from(busy);
        cost.after_gone += u64::from(gone);
        cost.not_modified += u64::from(response.status() == StatusCode::NOT_MODIFIED);
        cost.bytes += http_body::Body::size_hint(response.body())
            .exact()
            .unwrap_or(0);
        response
    }
}

/// What a site of the day answers.
struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    tag: Option<String>,
}

impl Answer {
    fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            tag: None,
        }
    }

    /// The state of a feed after so many changes: twenty entries, the newest first.
    fn feed(host: &str, changes: u64, extra: &str) -> Self {
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
        Self {
            body: format!(
                "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel><title>{host}</title>{extra}\n{entries}</channel></rss>\n"
            ),
            tag: Some(format!("\"{changes}\"")),
            ..Self::status(200)
        }
        .header("content-type", "application/rss+xml")
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The response to a request: 304 without a body where the client knows the feed's state.
    fn to(self, asked: &HeaderMap, now: SystemTime) -> Response<Full<Bytes>> {
        let known = asked
            .get(header::IF_NONE_MATCH)
            .and_then(|tag| tag.to_str().ok());
        let same = self.tag.is_some() && known == self.tag.as_deref();
        let mut response = Response::builder()
            .status(if same { 304 } else { self.status })
            .header(header::DATE, httpdate::fmt_http_date(now));
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        if let Some(tag) = self.tag {
            response = response.header(header::ETAG, tag);
        }
        let body = if same { String::new() } else { self.body };
        response
            .body(Full::from(body))
            .expect("the names and values above are valid")
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
