//! Why a host is asked at the pace at which it is asked.

use std::time::{Duration, SystemTime};

/// What determines the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PaceReason {
    /// The client's own least delay.
    MinDelay,
    /// The site's Crawl-delay.
    CrawlDelay,
    /// The site's latency.
    Latency,
    /// The pace at which the site complained.
    Learnt,
    /// The limit that the site documents for the API.
    ApiLimit,
}

impl PaceReason {
    /// A short stable name, for logs and machines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MinDelay => "min_delay",
            Self::CrawlDelay => "crawl_delay",
            Self::Latency => "latency",
            Self::Learnt => "learnt",
            Self::ApiLimit => "api_limit",
        }
    }
}

/// The pace at which a host is asked, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Pace {
    /// The delay that is kept, backoff included.
    pub delay: Duration,
    /// What determines it.
    pub reason: PaceReason,
    /// The share of the full rate that is left after backoffs, from 0 to 1.
    pub rate: f64,
}

/// What is known about a host, to explain its pace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HostSnapshot {
    /// The name of the group, if it is kept: it is for hosts with traffic or a pause.
    pub name: Option<String>,
    /// The delay and what determines it.
    pub pace: Pace,
    /// The client's own least delay.
    pub min_delay: Duration,
    /// The largest Crawl-delay in force in the group.
    pub crawl_delay: Option<Duration>,
    /// The delay that the latency asks for.
    pub latency_delay: Duration,
    /// The latency that the delay follows.
    pub latency: Duration,
    /// The end of the pause, if the host is paused.
    pub paused_until: Option<SystemTime>,
    /// Whether the pause is there because the site keeps refusing this client.
    pub blocked: bool,
    /// The pauses that backed off and are not forgiven yet.
    pub backoff_level: u32,
    /// The requests in flight, up to the end of their body, those to APIs included.
    pub in_flight: u32,
    /// The requests that wait.
    pub waiting: usize,
    /// The requests that were started since the host is remembered.
    pub started: u64,
}
