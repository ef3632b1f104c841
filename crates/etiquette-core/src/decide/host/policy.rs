//! What a client allows itself on one host.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::signal::Signal;
use crate::PurposeKind;
use crate::vocabulary::purpose::ApiLimit;

// Why each default is what it is. Where no source is named, the number is our choice, for the reason given.

/// Heritrix processes one URI of a host at a time, Nutch's `fetcher.threads.per.queue` is 1, and so is
/// `CONCURRENT_REQUESTS_PER_DOMAIN` in Scrapy's project template (since 2.13.3).
const DEFAULT_MAX_IN_FLIGHT: NonZeroU32 = NonZeroU32::MIN;

/// 1 s is `DOWNLOAD_DELAY` in Scrapy's project template (since 2.13.3) and StormCrawler's `fetcher.server.delay`. Heritrix
/// waits at least 3 s (`minDelayMs`) and Nutch 5 s (`fetcher.server.delay`); here a site that needs more gets it by
/// [`DEFAULT_LATENCY_FACTOR`], by its Crawl-delay, or by the backoff after a 429.
const DEFAULT_MIN_DELAY: Duration = Duration::from_secs(1);

/// Heritrix's `delayFactor`: a client that waits five times as long as a response took keeps one worker of the site busy for a
/// sixth of the time at most.
const DEFAULT_LATENCY_FACTOR: u32 = 5;

/// Heritrix's `maxDelayMs`, 30,000: a single response that took minutes does not stop the crawl of a site.
const DEFAULT_MAX_DELAY: Duration = Duration::from_secs(30);

/// Heritrix's `respectCrawlDelayUpToSeconds`. Heritrix shortens a longer one to it; here the request is refused, because a
/// site's rule is never cut. A page every five minutes is 288 a day.
const DEFAULT_MAX_CRAWL_DELAY: Duration = Duration::from_secs(300);

/// A 429 may come without Retry-After (RFC 6585, 4). GitHub's documentation asks to wait for at least one minute then, and for
/// exponentially more each time; the limits of sites are mostly counted by the minute.
const DEFAULT_PAUSE: Duration = Duration::from_secs(60);

/// A 503 speaks of an overload or a maintenance that passes (RFC 9110, 15.6.4), not of this client, and a restart takes
/// seconds: half of [`DEFAULT_PAUSE`].
const DEFAULT_PAUSE_503: Duration = Duration::from_secs(30);

/// All clients that were told one Retry-After would come back at one instant. Up to a tenth more spreads them and costs
/// little; nothing is ever taken off, because Retry-After is a minimum (RFC 9110, 10.2.3).
const DEFAULT_JITTER: (f64, f64) = (0.0, 0.1);

/// Two of the longest Crawl-delays that are kept: with less than one, no second page of such a site could wait its turn.
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(600);

/// About 10 s is the limit for keeping a user's attention (Nielsen, Response Times: The 3 Important Limits, 1993).
const DEFAULT_MAX_WAIT_USER: Duration = Duration::from_secs(10);

/// More than can start within [`DEFAULT_MAX_WAIT`] at [`DEFAULT_MIN_DELAY`], which is 600: what would wait too long is
/// refused for that, and this bounds the memory of hosts with a shorter delay.
const DEFAULT_QUEUE_LIMIT: usize = 1_000;

/// A caller that waits for a second response of a host before it reads the body of the first would wait for ever. It is longer
/// than a caller takes to begin to read, and short beside [`DEFAULT_MAX_WAIT`], so that the fault is named and not taken for a
/// busy host.
const DEFAULT_UNREAD_BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Single pages and folders are closed to crawlers for many reasons; ten pages in a row without one that is served are a site
/// that is closed to this one.
const DEFAULT_BLOCKED_AFTER: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

/// The longest that a request may wait for its host: one hour. What waits longer is better tried again later than held in
/// memory.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The longest pause that is made without being asked for, and the longest delay that backoff leads to: one hour. 24 requests
/// a day cost no site anything, and one that is well again, or has a new robots.txt, is found so within the hour.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

type Classifier = Arc<dyn Fn(StatusCode, &HeaderMap) -> Option<Signal> + Send + Sync>;

/// What a client allows itself on one host. All spans are real time; all counts are for one group of origins.
///
/// | setting | unit | default | why |
/// | --- | --- | --- | --- |
/// | [`max_in_flight`](Self::max_in_flight) | requests | 1 | as Heritrix, Nutch and Scrapy's project template |
/// | [`min_delay`](Self::min_delay) | time | 1 s | Scrapy's project template, StormCrawler |
/// | [`latency_factor`](Self::latency_factor) | times the latency | 5 | Heritrix |
/// | [`max_delay`](Self::max_delay) | time | 30 s | Heritrix |
/// | [`max_crawl_delay`](Self::max_crawl_delay) | time | 300 s | Heritrix |
/// | [`default_pause`](Self::default_pause) | time | 60 s | GitHub asks for a minute after a 429 |
/// | [`default_pause_503`](Self::default_pause_503) | time | 30 s | a restart takes seconds |
/// | [`jitter`](Self::jitter) | share of the pause | 0 to 0.1 | clients that were told one time do not come back at once |
/// | [`max_wait`](Self::max_wait) | time | 10 min | two of the longest Crawl-delays |
/// | [`max_wait_user`](Self::max_wait_user) | time | 10 s | a user's attention does not last longer |
/// | [`queue_limit`](Self::queue_limit) | requests | 1,000 | more than can start within `max_wait` |
/// | [`unread_body_timeout`](Self::unread_body_timeout) | time | 30 s | longer than callers take to read |
/// | [`blocked_after`](Self::blocked_after) | responses | 10 | single pages are refused for many reasons |
/// | [`ratelimit_fields`](Self::ratelimit_fields) | | yes | a limit that a site states is not exceeded |
#[derive(Clone)]
pub struct HostPolicy {
    pub(super) max_in_flight: NonZeroU32,
    pub(super) min_delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) latency_factor: u32,
    pub(super) max_crawl_delay: Duration,
    pub(super) default_pause: Duration,
    pub(super) default_pause_503: Duration,
    pub(super) jitter: (f64, f64),
    pub(super) max_wait: Duration,
    pub(super) max_wait_user: Duration,
    pub(super) queue_limit: usize,
    pub(super) unread_body_timeout: Duration,
    pub(super) blocked_after: NonZeroU32,
    pub(super) ratelimit: bool,
    pub(super) classifier: Option<Classifier>,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            max_in_flight: DEFAULT_MAX_IN_FLIGHT,
            min_delay: DEFAULT_MIN_DELAY,
            max_delay: DEFAULT_MAX_DELAY,
            latency_factor: DEFAULT_LATENCY_FACTOR,
            max_crawl_delay: DEFAULT_MAX_CRAWL_DELAY,
            default_pause: DEFAULT_PAUSE,
            default_pause_503: DEFAULT_PAUSE_503,
            jitter: DEFAULT_JITTER,
            max_wait: DEFAULT_MAX_WAIT,
            max_wait_user: DEFAULT_MAX_WAIT_USER,
            queue_limit: DEFAULT_QUEUE_LIMIT,
            unread_body_timeout: DEFAULT_UNREAD_BODY_TIMEOUT,
            blocked_after: DEFAULT_BLOCKED_AFTER,
            ratelimit: true,
            classifier: None,
        }
    }
}

impl HostPolicy {
    /// The defaults: one permit, a delay of 1 s that follows the host's latency, waits of up to 10 minutes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many requests may be in flight at once, from their start to the end of their body. Default 1, as in Heritrix and
    /// Nutch.
    ///
    /// With one permit the delay also counts from the end of the last body, so that it holds for arrivals too.
    #[must_use]
    pub fn max_in_flight(mut self, max_in_flight: NonZeroU32) -> Self {
        self.max_in_flight = max_in_flight;
        self
    }

    /// The least time between two starts. Default 1 s, as in Scrapy's project template; slow sites get more by
    /// [`HostPolicy::latency_factor`].
    #[must_use]
    pub fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// The delay follows the time from a start to the head of its response, multiplied by this: a small machine is asked less
    /// often. Default 5, as in Heritrix, which keeps one worker of the site busy for a sixth of the time at most; 0 switches it
    /// off.
    #[must_use]
    pub fn latency_factor(mut self, factor: u32) -> Self {
        self.latency_factor = factor;
        self
    }

    /// The longest delay that latency alone leads to. Default 30 s, as in Heritrix: one response that took minutes does not
    /// stop the crawl.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The longest Crawl-delay that is kept. Default 300 s, as in Heritrix. A longer one is never cut: the request is refused.
    #[must_use]
    pub fn max_crawl_delay(mut self, delay: Duration) -> Self {
        self.max_crawl_delay = delay;
        self
    }

    /// The first pause after a 429 without a usable Retry-After; it doubles with each backoff level, to an hour. Default 60 s,
    /// as GitHub asks for.
    #[must_use]
    pub fn default_pause(mut self, pause: Duration) -> Self {
        self.default_pause = pause;
        self
    }

    /// The first pause after a 503 without a usable Retry-After, and after the second failure in a row; it doubles
    /// with each failed pause, to an hour. Default 30 s: a restart takes seconds.
    #[must_use]
    pub fn default_pause_503(mut self, pause: Duration) -> Self {
        self.default_pause_503 = pause;
        self
    }

    /// The share of a pause that is added at its end, drawn between `least` and `most`, so that many clients do not
    /// come back at one instant. Default 0 to 0.1: a tenth spreads them and costs little. Only ever added: negative shares and
    /// what is not a number count as 0.
    #[must_use]
    pub fn jitter(mut self, least: f64, most: f64) -> Self {
        let share = |share: f64| {
            if share.is_finite() {
                share.max(0.0)
            } else {
                0.0
            }
        };
        self.jitter = (share(least), share(most).max(share(least)));
        self
    }

    /// How long a request of a crawl may wait, counted for each attempt. Default 10 minutes, which is two of the longest
    /// Crawl-delays; at most 1 hour.
    ///
    /// A wait that would be longer is refused at once with the time at which to come back.
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait.min(LONGEST_WAIT);
        self
    }

    /// How long a request that a person waits for may wait. Default 10 s, about the limit of a user's attention; at most
    /// 1 hour.
    #[must_use]
    pub fn max_wait_user(mut self, wait: Duration) -> Self {
        self.max_wait_user = wait.min(LONGEST_WAIT);
        self
    }

    /// How many requests may wait for one host; more are refused. Default 1,000, more than can start within
    /// [`HostPolicy::max_wait`] at the default delay: it bounds memory.
    #[must_use]
    pub fn queue_limit(mut self, requests: usize) -> Self {
        self.queue_limit = requests;
        self
    }

    /// How long the first of the queue waits for permits that unread bodies hold, before it is refused. Default 30 s, longer
    /// than callers take to begin to read.
    #[must_use]
    pub fn unread_body_timeout(mut self, after: Duration) -> Self {
        self.unread_body_timeout = after;
        self
    }

    /// How many responses of 401, 403 or 451 in a row count as being blocked. Default 10: single pages are refused for many
    /// reasons.
    #[must_use]
    pub fn blocked_after(mut self, responses: NonZeroU32) -> Self {
        self.blocked_after = responses;
        self
    }

    /// Whether the RateLimit field of the IETF draft is obeyed. Default yes.
    #[must_use]
    pub fn ratelimit_fields(mut self, obey: bool) -> Self {
        self.ratelimit = obey;
        self
    }

    /// Classifies responses that mean something else than their status says, such as GitHub's 403 with Retry-After, which is a
    /// 429. `None` leaves the response to [`Signal::of`].
    #[must_use]
    pub fn classify(
        mut self,
        classifier: impl Fn(StatusCode, &HeaderMap) -> Option<Signal> + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Some(Arc::new(classifier));
        self
    }

    /// The stricter of this policy and an API's limit in every respect, for where the two cannot be kept apart.
    #[must_use]
    pub fn within(&self, limit: ApiLimit) -> Self {
        let mut policy = self.clone();
        policy.min_delay = policy.min_delay.max(limit.interval());
        policy.max_in_flight = policy.max_in_flight.min(limit.max_in_flight);
        policy
    }

    /// How long a request of this purpose may wait: [`HostPolicy::max_wait`] or [`HostPolicy::max_wait_user`].
    #[must_use]
    pub fn max_wait_for(&self, purpose: PurposeKind) -> Duration {
        match purpose {
            PurposeKind::UserFetch => self.max_wait_user,
            PurposeKind::Crawl | PurposeKind::Api => self.max_wait,
        }
    }

    /// [`HostPolicy::max_in_flight`].
    #[must_use]
    pub fn get_max_in_flight(&self) -> NonZeroU32 {
        self.max_in_flight
    }

    /// [`HostPolicy::min_delay`].
    #[must_use]
    pub fn get_min_delay(&self) -> Duration {
        self.min_delay
    }

    /// [`HostPolicy::max_delay`].
    #[must_use]
    pub fn get_max_delay(&self) -> Duration {
        self.max_delay
    }

    /// [`HostPolicy::latency_factor`].
    #[must_use]
    pub fn get_latency_factor(&self) -> u32 {
        self.latency_factor
    }

    /// [`HostPolicy::max_crawl_delay`].
    #[must_use]
    pub fn get_max_crawl_delay(&self) -> Duration {
        self.max_crawl_delay
    }

    /// [`HostPolicy::default_pause`].
    #[must_use]
    pub fn get_default_pause(&self) -> Duration {
        self.default_pause
    }

    /// [`HostPolicy::default_pause_503`].
    #[must_use]
    pub fn get_default_pause_503(&self) -> Duration {
        self.default_pause_503
    }

    /// [`HostPolicy::jitter`], the least share and the largest.
    #[must_use]
    pub fn get_jitter(&self) -> (f64, f64) {
        self.jitter
    }

    /// [`HostPolicy::queue_limit`].
    #[must_use]
    pub fn get_queue_limit(&self) -> usize {
        self.queue_limit
    }

    /// [`HostPolicy::unread_body_timeout`].
    #[must_use]
    pub fn get_unread_body_timeout(&self) -> Duration {
        self.unread_body_timeout
    }

    /// [`HostPolicy::blocked_after`].
    #[must_use]
    pub fn get_blocked_after(&self) -> NonZeroU32 {
        self.blocked_after
    }
}

impl fmt::Debug for HostPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPolicy")
            .field("max_in_flight", &self.max_in_flight)
            .field("min_delay", &self.min_delay)
            .field("max_wait", &self.max_wait)
            .field("max_wait_user", &self.max_wait_user)
            .finish_non_exhaustive()
    }
}
