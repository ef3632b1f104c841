//! robots.txt as a client keeps it.
//!
//! **Flow.** [`Answer::read`] says what a response to the request for /robots.txt means. [`RobotsRecord`] keeps what was
//! learnt of one origin and says what holds now: obey this copy, stay away until then, or read the file (again).
//!
//! **Scope.** RFC 9309, 2.3 (access results), 2.4 (caching) and 2.5 (limits). **Non-goals.** The rules themselves are
//! read by `etiquette-robots`; asking, waiting and single flight belong to the layer.
//!
//! | answer | meaning |
//! | --- | --- |
//! | 2xx | the rules in its body |
//! | 304 to a conditional request | the copy is good for another life |
//! | 301, 302, 303, 307, 308 with `Location` | ask there, at most ten times; the rules count for the first authority |
//! | 408, 429, a redirect without a target | no answer yet: closed, or the old copy, until a later try |
//! | any other 4xx | no rules; 401 and 403 may be made to close the site ([`RobotsPolicy::unauthorized_closes`]) |
//! | 5xx, anything else, no answer, a cut or coded body | unreachable: closed, or the old copy, until a later try |

mod answer;
mod record;
mod stored;

pub use answer::Answer;
pub use record::{FetchFailure, Known, RobotsRecord, Standing, Validators};
pub use stored::{StoredCopy, StoredFailing, StoredOutcome, StoredRobots};

use std::time::Duration;

/// How robots.txt is read and kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RobotsPolicy {
    max_life: Duration,
    unauthorized_closes: bool,
    max_bytes: usize,
    timeout: Duration,
}

impl RobotsPolicy {
    /// The shortest life of a copy, whatever its max-age says: a file with `max-age=0` must not double the requests of
    /// a crawl.
    pub const FLOOR: Duration = Duration::from_secs(60);
    /// The longest life that RFC 9309, 2.4 allows.
    pub const CEILING: Duration = Duration::from_secs(24 * 3600);
    /// How long an old copy may stand in while its site is unreachable (RFC 9309, 2.3.1.4).
    pub const STALE: Duration = Duration::from_secs(30 * 24 * 3600);
    /// How many redirects are followed: the five that RFC 9309, 2.3.1.2 asks for and as many again, because the rules
    /// behind them are better than a guess.
    pub const REDIRECTS: usize = 10;
    /// The bytes that are read at least (RFC 9309, 2.5).
    pub const MIN_BYTES: usize = 512_000;

    /// The longest life of a copy; default an hour, so that one line in robots.txt acts within the hour. Clamped to
    /// [`RobotsPolicy::FLOOR`] and [`RobotsPolicy::CEILING`].
    #[must_use]
    pub fn max_life(mut self, life: Duration) -> Self {
        self.max_life = life.clamp(Self::FLOOR, Self::CEILING);
        self
    }

    /// Whether a robots.txt answered with 401 or 403 closes the site. Off by default: RFC 9309, 2.3.1.3 reads every
    /// 4xx as "no rules".
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

    /// How long each request of a reading may take from its start to the end of its body; default 30 s. Over it the site
    /// is unreachable. Waiting for the host's budget does not count.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// See [`RobotsPolicy::max_bytes`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.max_bytes
    }

    /// See [`RobotsPolicy::timeout`].
    #[must_use]
    pub fn reading_time(&self) -> Duration {
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
