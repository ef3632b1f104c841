//! What is known of one origin's robots.txt, and what holds now.

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use etiquette_robots::Robots;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::RobotsPolicy;
use super::answer::life;
use super::stored::{StoredCopy, StoredFailing, StoredOutcome, StoredRobots};
use crate::Now;

/// The first wait after a failed reading. It doubles with each further failure.
const FIRST_RETRY: Duration = Duration::from_secs(60);
/// The longest wait between two failed readings, unless the site asks for a longer one.
const LAST_RETRY: Duration = Duration::from_secs(3600);

/// The outcome of a successful reading.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Known {
    /// The site's rules.
    Rules(Robots),
    /// There is no robots.txt: nothing is forbidden.
    Unavailable,
    /// robots.txt was answered with this 401 or 403, and these close the site.
    Closed(StatusCode),
}

/// Why a reading of robots.txt had no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchFailure {
    /// 408, 429 or a redirect without a target: the site will answer later.
    Later(StatusCode),
    /// A status that says nothing about rules, such as 503.
    Status(StatusCode),
    /// No response: name resolution, connection, TLS, or time out.
    NoResponse,
    /// The body broke off.
    Cut,
    /// The body has a content coding that was not asked for.
    Coded,
    /// More redirects than are followed, or one to a place that cannot be asked.
    Redirects,
    /// A redirect to an address that is not public, where only public ones are connected to.
    NotPublic(IpAddr),
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(status) | Self::Status(status) => {
                write!(f, "it answered {}", status.as_u16())
            }
            Self::NoResponse => f.write_str("it gave no answer"),
            Self::Cut => f.write_str("its body broke off"),
            Self::Coded => f.write_str("its body has a content coding that was not asked for"),
            Self::Redirects => f.write_str("its redirects lead nowhere"),
            Self::NotPublic(address) => {
                write!(f, "it redirects to {address}, which is no public address")
            }
        }
    }
}

/// What a conditional re-read carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// For `If-None-Match`.
    pub etag: Option<HeaderValue>,
    /// For `If-Modified-Since`.
    pub last_modified: Option<HeaderValue>,
}

impl Validators {
    /// The validators of a response.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        Self {
            etag: headers.get(header::ETAG).cloned(),
            last_modified: headers.get(header::LAST_MODIFIED).cloned(),
        }
    }

    /// Makes a request conditional (RFC 9110, 13.1).
    pub fn apply(&self, headers: &mut HeaderMap) {
        if let Some(etag) = &self.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        if let Some(date) = &self.last_modified {
            headers.insert(header::IF_MODIFIED_SINCE, date.clone());
        }
    }
}

/// What holds for requests to an origin at this moment.
#[derive(Debug)]
#[non_exhaustive]
pub enum Standing<'a> {
    /// These rules.
    Obey(&'a Known),
    /// The site's rules are unknown: nothing is sent before `retry_at`.
    Closed {
        /// Why they are unknown.
        failure: &'a FetchFailure,
        /// When robots.txt may be read again.
        retry_at: Instant,
    },
    /// robots.txt has to be read first.
    Read,
}

/// What is known of one origin's robots.txt.
#[derive(Clone, Debug, Default)]
pub struct RobotsRecord {
    copy: Option<Copy>,
    failure: Option<Failing>,
}

#[derive(Clone, Debug)]
struct Copy {
    known: Known,
    validators: Validators,
    /// When it was last confirmed, or restored from a store.
    since: Instant,
    /// Its age at that moment: 0 unless it came from a store.
    age: Duration,
    life: Duration,
    epoch: u64,
}

impl Copy {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since) + self.age
    }
}

#[derive(Clone, Debug)]
struct Failing {
    cause: FetchFailure,
    failures: u32,
    retry_at: Instant,
}

impl RobotsRecord {
    /// What holds at `now`.
    ///
    /// `delay` is the host's delay as it is known now: a copy lives at least two of them, or a Crawl-delay longer than the
    /// life would have robots.txt read for ever and no page. `epoch` counts the host's pauses and runs of blocks: a
    /// copy of another epoch is read again.
    #[must_use]
    pub fn standing(&self, now: Instant, delay: Duration, epoch: u64) -> Standing<'_> {
        if let Some(failing) = &self.failure {
            if now >= failing.retry_at {
                return Standing::Read;
            }
            return match &self.copy {
                Some(copy) if copy.age(now) < RobotsPolicy::STALE => Standing::Obey(&copy.known),
                _ => Standing::Closed {
                    failure: &failing.cause,
                    retry_at: failing.retry_at,
                },
            };
        }
        match &self.copy {
            Some(copy)
                if copy.epoch == epoch
                    && copy.age(now) < copy.life.max(delay.saturating_mul(2)) =>
            {
                Standing::Obey(&copy.known)
            }
            _ => Standing::Read,
        }
    }

    /// The rules of the last reading that had an outcome, however old.
    #[must_use]
    pub fn known(&self) -> Option<&Known> {
        self.copy.as_ref().map(|copy| &copy.known)
    }

    /// Whether the last reading had no outcome.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// The validators for a conditional re-read: only where rules are kept that a 304 could confirm.
    #[must_use]
    pub fn validators(&self) -> Option<&Validators> {
        match &self.copy {
            Some(Copy {
                known: Known::Rules(_),
                validators,
                ..
            }) => Some(validators),
            _ => None,
        }
    }

    /// A reading that began in `epoch` ended with `known` and these response headers.
    pub fn keep(
        &mut self,
        known: Known,
        headers: &HeaderMap,
        policy: &RobotsPolicy,
        now: Instant,
        epoch: u64,
    ) {
        let validators = Validators::of(headers);
        self.copy = Some(Copy {
            known,
            validators,
            since: now,
            age: Duration::ZERO,
            life: life(headers, policy),
            epoch,
        });
        self.failure = None;
    }

    /// A conditional reading was answered 304. Without a copy to confirm it is a failed reading.
    pub fn confirm(
        &mut self,
        headers: &HeaderMap,
        policy: &RobotsPolicy,
        now: Instant,
        epoch: u64,
    ) {
        let Some(copy) = &mut self.copy else {
            return self.fail(FetchFailure::Status(StatusCode::NOT_MODIFIED), None, now);
        };
        copy.since = now;
        copy.age = Duration::ZERO;
        copy.life = life(headers, policy);
        copy.epoch = epoch;
        // Fields of a 304 replace the stored ones (RFC 9111, 3.2).
        let new = Validators::of(headers);
        copy.validators.etag = new.etag.or_else(|| copy.validators.etag.take());
        copy.validators.last_modified = new
            .last_modified
            .or_else(|| copy.validators.last_modified.take());
        self.failure = None;
    }

    /// A reading had no outcome. The next one is not before the back-off (60 s, doubled with each failure, an hour at
    /// most) nor before `after`, the site's own word, which is never cut.
    pub fn fail(&mut self, cause: FetchFailure, after: Option<Duration>, now: Instant) {
        let failures = self
            .failure
            .as_ref()
            .map_or(0, |failing| failing.failures)
            .saturating_add(1);
        let back_off = FIRST_RETRY
            .saturating_mul(1 << (failures - 1).min(6))
            .min(LAST_RETRY);
        let wait = back_off.max(after.unwrap_or_default());
        let now = Now {
            monotonic: now,
            wall: std::time::SystemTime::UNIX_EPOCH,
        };
        self.failure = Some(Failing {
            cause,
            failures,
            retry_at: now.after(wait),
        });
        let expired = |copy: &Copy| copy.age(now.monotonic) >= RobotsPolicy::STALE;
        if self.copy.as_ref().is_some_and(expired) {
            self.copy = None;
        }
    }

    /// The record in the form that a store keeps; `bytes` are those of the file if it was read just now.
    #[must_use]
    pub fn to_stored(&self, now: Now, bytes: Option<Bytes>) -> StoredRobots {
        let copy = self.copy.as_ref().map(|copy| StoredCopy {
            outcome: match &copy.known {
                Known::Rules(_) => StoredOutcome::Rules(bytes),
                Known::Unavailable => StoredOutcome::Unavailable,
                Known::Closed(status) => StoredOutcome::Closed(*status),
            },
            validators: copy.validators.clone(),
            confirmed: now.wall - copy.age(now.monotonic),
            life: copy.life,
        });
        let failing = self.failure.as_ref().map(|failing| StoredFailing {
            cause: failing.cause.clone(),
            failures: failing.failures,
            retry_at: now.wall_at(failing.retry_at),
        });
        StoredRobots { copy, failing }
    }

    /// Takes over what a store knows where that is newer than the copy at hand. `parse` reads the bytes.
    pub fn restore(
        &mut self,
        stored: StoredRobots,
        parse: impl FnOnce(&[u8]) -> Robots,
        now: Now,
        epoch: u64,
    ) {
        if let Some(copy) = stored.copy {
            // From the future: a wall clock has jumped, and its age is unknown.
            let age = now.wall.duration_since(copy.confirmed).unwrap_or(copy.life);
            let newer = self
                .copy
                .as_ref()
                .is_none_or(|own| age < own.age(now.monotonic));
            let known = match copy.outcome {
                StoredOutcome::Rules(Some(bytes)) if newer => Some(Known::Rules(parse(&bytes))),
                StoredOutcome::Unavailable => Some(Known::Unavailable),
                StoredOutcome::Closed(status) => Some(Known::Closed(status)),
                StoredOutcome::Rules(_) => None,
            };
            if let Some(known) = known.filter(|_| newer && age < RobotsPolicy::STALE) {
                self.copy = Some(Copy {
                    known,
                    validators: copy.validators,
                    since: now.monotonic,
                    age,
                    life: copy.life.clamp(RobotsPolicy::FLOOR, RobotsPolicy::CEILING),
                    epoch,
                });
                self.failure = None;
            }
        }
        if let Some(failing) = stored.failing {
            // A wall clock that jumped back must not close a site for long: the site's own word is a pause of the host.
            let wait = failing
                .retry_at
                .duration_since(now.wall)
                .unwrap_or_default()
                .min(LAST_RETRY);
            let own = self.failure.as_ref().map_or(0, |own| own.failures);
            if failing.failures > own {
                self.failure = Some(Failing {
                    cause: failing.cause,
                    failures: failing.failures,
                    retry_at: now.after(wait),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn kept(headers: &[(&'static str, &'static str)], now: Instant) -> RobotsRecord {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        let mut record = RobotsRecord::default();
        record.keep(Known::Unavailable, &map, &RobotsPolicy::default(), now, 0);
        record
    }

    fn obeys(record: &RobotsRecord, at: Instant, delay: Duration, epoch: u64) -> bool {
        matches!(record.standing(at, delay, epoch), Standing::Obey(_))
    }

    #[test]
    fn a_copy_lives_its_max_age_within_floor_and_ceiling() {
        let start = Instant::now();
        for (cache_control, life) in [
            ("", 3600),
            ("max-age=600", 600),
            ("max-age=5", 60),
            ("public, Max-Age=\"120\"", 120),
            ("max-age=604800", 3600),
            ("max-age=99999999999999999999", 3600),
            ("no-store", 60),
            ("max-age=x", 60),
        ] {
            let record = kept(&[("cache-control", cache_control)], start);
            assert!(
                obeys(&record, start + (life - 1) * SECOND, SECOND, 0),
                "{cache_control}"
            );
            assert!(
                !obeys(&record, start + life * SECOND, SECOND, 0),
                "{cache_control}"
            );
        }
        let aged = kept(&[("cache-control", "max-age=600"), ("age", "500")], start);
        assert!(obeys(&aged, start + 99 * SECOND, SECOND, 0));
        assert!(!obeys(&aged, start + 100 * SECOND, SECOND, 0));
    }

    #[test]
    fn a_copy_outlives_two_delays_and_dies_with_its_epoch() {
        let start = Instant::now();
        let record = kept(&[("cache-control", "max-age=60")], start);
        assert!(obeys(&record, start + 239 * SECOND, 120 * SECOND, 0));
        assert!(!obeys(&record, start + 240 * SECOND, 120 * SECOND, 0));
        assert!(!obeys(&record, start + SECOND, SECOND, 1));
    }

    #[test]
    fn failures_close_back_off_and_keep_the_old_copy_for_thirty_days() {
        let start = Instant::now();
        let mut record = RobotsRecord::default();
        for (failure, wait) in [60, 120, 240, 480, 960, 1920, 3600, 3600]
            .into_iter()
            .enumerate()
        {
            record.fail(FetchFailure::NoResponse, None, start);
            let Standing::Closed { retry_at, .. } = record.standing(start, SECOND, 0) else {
                panic!("failure {failure} does not close");
            };
            assert_eq!(retry_at, start + wait * SECOND);
        }
        record.fail(
            FetchFailure::Later(StatusCode::TOO_MANY_REQUESTS),
            Some(Duration::MAX),
            start,
        );
        assert!(matches!(
            record.standing(start + RobotsPolicy::STALE, SECOND, 0),
            Standing::Closed { .. }
        ));

        let mut record = kept(&[], start);
        let late = start + 10 * RobotsPolicy::CEILING;
        record.fail(FetchFailure::NoResponse, None, late);
        assert!(obeys(&record, late, SECOND, 0));
        assert!(matches!(
            record.standing(late + 60 * SECOND, SECOND, 0),
            Standing::Read
        ));
        let too_late = start + RobotsPolicy::STALE;
        record.fail(FetchFailure::NoResponse, None, too_late);
        assert!(matches!(
            record.standing(too_late, SECOND, 0),
            Standing::Closed { .. }
        ));
    }
}
