//! How robots.txt is fetched and kept: the limits of RFC 9309, 2.3 to 2.5.

use std::time::Duration;

/// How robots.txt is fetched and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsPolicy {
    max_life: Duration,
    unauthorized_closes: bool,
    max_bytes: usize,
    timeout: Duration,
}

impl RobotsPolicy {
    /// The shortest lifetime of a copy, whatever its max-age says: a file with `max-age=0` must not double the requests
    /// of a crawl.
    pub const FLOOR: Duration = Duration::from_secs(60);
    /// The longest lifetime that RFC 9309, 2.4 allows.
    pub const CEILING: Duration = Duration::from_secs(24 * 3600);
    /// How long an old copy may stand in while its site is unreachable (RFC 9309, 2.3.1.4).
    pub const STALE: Duration = Duration::from_secs(30 * 24 * 3600);
    /// How many redirects are followed: the five that RFC 9309, 2.3.1.2 asks for and as many again, because the rules
    /// behind them are better than a guess.
    pub const REDIRECTS: usize = 10;
    /// The bytes that are read at least (RFC 9309, 2.5).
    pub const MIN_BYTES: usize = 512_000;

    /// The longest lifetime of a copy; default an hour, so that one line in robots.txt acts within the hour. Clamped to
    /// [`RobotsPolicy::FLOOR`] and [`RobotsPolicy::CEILING`].
    #[must_use]
    pub fn max_life(mut self, life: Duration) -> Self {
        self.max_life = life.clamp(Self::FLOOR, Self::CEILING);
        self
    }

    /// Whether a 401 or 403 for robots.txt closes the site. Off by default: RFC 9309, 2.3.1.3 reads every 4xx as "no
    /// rules".
    #[must_use]
    pub fn unauthorized_closes(mut self, closes: bool) -> Self {
        self.unauthorized_closes = closes;
        self
    }

    /// How many bytes of a file are read; default and least 512,000. What lies beyond does not count, as RFC 9309, 2.5
    /// has it.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes.max(Self::MIN_BYTES);
        self
    }

    /// How long each request of a fetch may take from its start to the end of its body; default 30 s. Over it the site
    /// is unreachable. Waiting for the host's budget does not count.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// See [`RobotsPolicy::max_life`].
    #[must_use]
    pub fn get_max_life(&self) -> Duration {
        self.max_life
    }

    /// See [`RobotsPolicy::unauthorized_closes`].
    #[must_use]
    pub fn get_unauthorized_closes(&self) -> bool {
        self.unauthorized_closes
    }

    /// See [`RobotsPolicy::max_bytes`].
    #[must_use]
    pub fn get_max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// See [`RobotsPolicy::timeout`].
    #[must_use]
    pub fn get_timeout(&self) -> Duration {
        self.timeout
    }
}

impl Default for RobotsPolicy {
    fn default() -> Self {
        Self {
            max_life: Duration::from_secs(3600),
            unauthorized_closes: false,
            max_bytes: Self::MIN_BYTES,
            timeout: Duration::from_secs(30),
        }
    }
}
