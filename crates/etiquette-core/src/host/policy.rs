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

/// The longest pause that is made without being asked for, and the longest gap that strikes lead to: one hour.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);

type Classifier = Arc<dyn Fn(StatusCode, &HeaderMap) -> Option<Signal> + Send + Sync>;

/// What a client allows itself on one host. All spans are real time; all counts are for one group of origins.
#[derive(Clone)]
pub struct HostPolicy {
    pub(super) places: NonZeroU32,
    pub(super) min_gap: Duration,
    pub(super) max_gap: Duration,
    pub(super) latency_factor: u32,
    pub(super) max_crawl_delay: Duration,
    pub(super) pause_429: Duration,
    pub(super) pause_503: Duration,
    pub(super) jitter: (f64, f64),
    pub(super) max_wait: Duration,
    pub(super) max_wait_user: Duration,
    pub(super) queue: usize,
    pub(super) body_held: Duration,
    pub(super) shut_out_after: NonZeroU32,
    pub(super) ratelimit: bool,
    pub(super) classifier: Option<Classifier>,
}

/// The numbers of a [`HostPolicy`] that decide pace and pauses. Each is described at the method that sets it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PolicyNumbers {
    /// [`HostPolicy::places`].
    pub places: NonZeroU32,
    /// [`HostPolicy::min_gap`].
    pub min_gap: Duration,
    /// [`HostPolicy::max_gap`].
    pub max_gap: Duration,
    /// [`HostPolicy::latency_factor`].
    pub latency_factor: u32,
    /// [`HostPolicy::default_pause`].
    pub default_pause: Duration,
    /// [`HostPolicy::default_pause_503`].
    pub default_pause_503: Duration,
    /// [`HostPolicy::jitter`].
    pub jitter: (f64, f64),
    /// [`HostPolicy::shut_out_after`].
    pub shut_out_after: NonZeroU32,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            places: NonZeroU32::MIN,
            min_gap: Duration::from_secs(1),
            max_gap: Duration::from_secs(30),
            latency_factor: 5,
            max_crawl_delay: Duration::from_secs(300),
            pause_429: Duration::from_secs(60),
            pause_503: Duration::from_secs(30),
            jitter: (0.0, 0.1),
            max_wait: Duration::from_secs(600),
            max_wait_user: Duration::from_secs(10),
            queue: 1_000,
            body_held: Duration::from_secs(30),
            shut_out_after: NonZeroU32::new(10).expect("ten is not zero"),
            ratelimit: true,
            classifier: None,
        }
    }
}

impl HostPolicy {
    /// The defaults: one place, a gap of 1 s that follows the host's latency, waits of up to 10 minutes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many requests may be under way at once, from their start to the end of their body. Default 1.
    ///
    /// With one place the gap also counts from the end of the last body, so that it holds for arrivals too.
    #[must_use]
    pub fn places(mut self, places: NonZeroU32) -> Self {
        self.places = places;
        self
    }

    /// The least time between two starts. Default 1 s.
    #[must_use]
    pub fn min_gap(mut self, gap: Duration) -> Self {
        self.min_gap = gap;
        self
    }

    /// The gap follows the time from a start to the head of its answer, multiplied by this: a small machine is given
    /// longer pauses. Default 5; 0 switches it off.
    #[must_use]
    pub fn latency_factor(mut self, factor: u32) -> Self {
        self.latency_factor = factor;
        self
    }

    /// The longest gap that latency alone leads to. Default 30 s, as in Heritrix.
    #[must_use]
    pub fn max_gap(mut self, gap: Duration) -> Self {
        self.max_gap = gap;
        self
    }

    /// The longest Crawl-delay that is kept. Default 300 s. A longer one is never cut: the request is refused.
    #[must_use]
    pub fn max_crawl_delay(mut self, delay: Duration) -> Self {
        self.max_crawl_delay = delay;
        self
    }

    /// The first pause after a 429 without a usable Retry-After; it doubles with each strike, to an hour. Default 60 s.
    #[must_use]
    pub fn default_pause(mut self, pause: Duration) -> Self {
        self.pause_429 = pause;
        self
    }

    /// The first pause after a 503 without a usable Retry-After, and after the second failure in a row; it doubles
    /// with each failed pause, to an hour. Default 30 s.
    #[must_use]
    pub fn default_pause_503(mut self, pause: Duration) -> Self {
        self.pause_503 = pause;
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
    pub fn queue(mut self, requests: usize) -> Self {
        self.queue = requests;
        self
    }

    /// How long the first of the queue waits for places that unread bodies hold, before it is refused. Default 30 s.
    #[must_use]
    pub fn body_held(mut self, after: Duration) -> Self {
        self.body_held = after;
        self
    }

    /// How many answers of 401, 403 or 451 in a row count as being shut out. Default 10.
    #[must_use]
    pub fn shut_out_after(mut self, answers: NonZeroU32) -> Self {
        self.shut_out_after = answers;
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

    /// The numbers that decide pace and pauses, for stores that keep a host's state for several processes.
    #[must_use]
    pub fn numbers(&self) -> PolicyNumbers {
        PolicyNumbers {
            places: self.places,
            min_gap: self.min_gap,
            max_gap: self.max_gap,
            latency_factor: self.latency_factor,
            default_pause: self.pause_429,
            default_pause_503: self.pause_503,
            jitter: self.jitter,
            shut_out_after: self.shut_out_after,
        }
    }

    /// The longest wait of a request of this purpose.
    #[must_use]
    pub fn longest_wait(&self, purpose: PurposeKind) -> Duration {
        match purpose {
            PurposeKind::UserFetch => self.max_wait_user,
            PurposeKind::Crawl | PurposeKind::Api => self.max_wait,
        }
    }

    /// How many requests may wait for one host.
    #[must_use]
    pub fn queue_limit(&self) -> usize {
        self.queue
    }

    /// How long the first of the queue waits for unread bodies.
    #[must_use]
    pub fn body_held_after(&self) -> Duration {
        self.body_held
    }

    /// The longest Crawl-delay that is kept.
    #[must_use]
    pub fn longest_crawl_delay(&self) -> Duration {
        self.max_crawl_delay
    }
}

impl fmt::Debug for HostPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostPolicy")
            .field("places", &self.places)
            .field("min_gap", &self.min_gap)
            .field("max_wait", &self.max_wait)
            .field("max_wait_user", &self.max_wait_user)
            .finish_non_exhaustive()
    }
}
