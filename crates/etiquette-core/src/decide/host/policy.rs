//! What a client allows itself on one host.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::classify::Signal;
use crate::PurposeKind;

/// The longest that a request may wait for its host: one hour.
pub const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The longest pause that is made without being asked for, and the longest delay that backoff leads to: one hour.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

type Classifier = Arc<dyn Fn(StatusCode, &HeaderMap) -> Option<Signal> + Send + Sync>;

/// What a client allows itself on one host. All spans are real time; all counts are for one group of origins.
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
            max_in_flight: NonZeroU32::MIN,
            min_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            latency_factor: 5,
            max_crawl_delay: Duration::from_secs(300),
            default_pause: Duration::from_secs(60),
            default_pause_503: Duration::from_secs(30),
            jitter: (0.0, 0.1),
            max_wait: Duration::from_secs(600),
            max_wait_user: Duration::from_secs(10),
            queue_limit: 1_000,
            unread_body_timeout: Duration::from_secs(30),
            blocked_after: NonZeroU32::new(10).expect("ten is not zero"),
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

    /// How many requests may be under way at once, from their start to the end of their body. Default 1.
    ///
    /// With one permit the delay also counts from the end of the last body, so that it holds for arrivals too.
    #[must_use]
    pub fn max_in_flight(mut self, max_in_flight: NonZeroU32) -> Self {
        self.max_in_flight = max_in_flight;
        self
    }

    /// The least time between two starts. Default 1 s.
    #[must_use]
    pub fn min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// The delay follows the time from a start to the head of its answer, multiplied by this: a small machine is given
    /// longer pauses. Default 5; 0 switches it off.
    #[must_use]
    pub fn latency_factor(mut self, factor: u32) -> Self {
        self.latency_factor = factor;
        self
    }

    /// The longest delay that latency alone leads to. Default 30 s, as in Heritrix.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The longest Crawl-delay that is kept. Default 300 s. A longer one is never cut: the request is refused.
    #[must_use]
    pub fn max_crawl_delay(mut self, delay: Duration) -> Self {
        self.max_crawl_delay = delay;
        self
    }

    /// The first pause after a 429 without a usable Retry-After; it doubles with each backoff level, to an hour. Default 60 s.
    #[must_use]
    pub fn default_pause(mut self, pause: Duration) -> Self {
        self.default_pause = pause;
        self
    }

    /// The first pause after a 503 without a usable Retry-After, and after the second failure in a row; it doubles
    /// with each failed pause, to an hour. Default 30 s.
    #[must_use]
    pub fn default_pause_503(mut self, pause: Duration) -> Self {
        self.default_pause_503 = pause;
        self
    }

    /// The share of a pause that is added at its end, drawn between `least` and `most`, so that many clients do not
    /// come back at one instant. Default 0 to 0.1. Only ever added: negative shares and what is not a number count as 0.
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

    /// How long a request of a crawl may wait, counted for each attempt. Default 10 minutes, at most 1 hour.
    ///
    /// A wait that would be longer is refused at once with the time at which to come back.
    #[must_use]
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait.min(LONGEST_WAIT);
        self
    }

    /// How long a request that a person waits for may wait. Default 10 s, at most 1 hour.
    #[must_use]
    pub fn max_wait_user(mut self, wait: Duration) -> Self {
        self.max_wait_user = wait.min(LONGEST_WAIT);
        self
    }

    /// How many requests may wait for one host; more are refused. Default 1,000.
    #[must_use]
    pub fn queue_limit(mut self, requests: usize) -> Self {
        self.queue_limit = requests;
        self
    }

    /// How long the first of the queue waits for permits that unread bodies hold, before it is refused. Default 30 s.
    #[must_use]
    pub fn unread_body_timeout(mut self, after: Duration) -> Self {
        self.unread_body_timeout = after;
        self
    }

    /// How many answers of 401, 403 or 451 in a row count as being blocked. Default 10.
    #[must_use]
    pub fn blocked_after(mut self, answers: NonZeroU32) -> Self {
        self.blocked_after = answers;
        self
    }

    /// Whether the RateLimit field of the IETF draft is obeyed. Default yes.
    #[must_use]
    pub fn ratelimit_fields(mut self, obey: bool) -> Self {
        self.ratelimit = obey;
        self
    }

    /// Reads answers that mean something else than their status says, such as GitHub's 403 with Retry-After, which is a
    /// 429. `None` leaves the answer to [`Signal::of`].
    #[must_use]
    pub fn classify(
        mut self,
        classifier: impl Fn(StatusCode, &HeaderMap) -> Option<Signal> + Send + Sync + 'static,
    ) -> Self {
        self.classifier = Some(Arc::new(classifier));
        self
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
