//! What robots.txt said about a request that was sent.

use std::time::Duration;

use etiquette_robots::{Robots, Verdict};

/// What robots.txt said about a request that was sent: part of [`Facts`](crate::Facts).
#[derive(Clone, Debug)]
pub struct RobotsFacts {
    robots: Option<Robots>,
    verdict: Option<Verdict>,
    crawl_delay: Option<Duration>,
}

impl RobotsFacts {
    pub(crate) fn unavailable() -> Self {
        Self {
            robots: None,
            verdict: None,
            crawl_delay: None,
        }
    }

    pub(crate) fn of_rules(
        robots: Robots,
        verdict: Option<Verdict>,
        crawl_delay: Option<Duration>,
    ) -> Self {
        Self {
            robots: Some(robots),
            verdict,
            crawl_delay,
        }
    }

    /// The file as it was read. `None` where the site has none (RFC 9309, 2.3.1.3).
    #[must_use]
    pub fn robots(&self) -> Option<&Robots> {
        self.robots.as_ref()
    }

    /// The verdict. `None` where the site has no robots.txt, or for a user fetch that no group names.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// The Crawl-delay that the file asks this client for, uncut.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}
