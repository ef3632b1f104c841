//! What is known of one origin's robots.txt, and what holds now.

use std::time::{Duration, Instant};

use bytes::Bytes;
use etiquette_robots::Robots;
use http::{HeaderMap, StatusCode};

use super::failure::FetchFailure;
use super::lifetime::lifetime;
use super::policy::RobotsPolicy;
use super::stored::{StoredCopy, StoredFailure, StoredOutcome, StoredRobots};
use super::validators::Validators;
use crate::Now;

/// The first wait after a failed fetch. It doubles with each further failure.
const FIRST_RETRY: Duration = Duration::from_secs(60);
/// The longest wait between two failed fetches, unless the site asks for a longer one.
const LAST_RETRY: Duration = Duration::from_secs(3600);

/// The outcome of a successful fetch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RobotsOutcome {
    /// The site's rules.
    Rules(Robots),
    /// There is no robots.txt: nothing is forbidden.
    Unavailable,
    /// This 401 or 403, and these close the site.
    Closed(StatusCode),
}

/// What holds for requests to an origin at this moment.
#[derive(Debug)]
#[non_exhaustive]
pub enum RobotsStatus<'a> {
    /// These rules.
    Obey(&'a RobotsOutcome),
    /// The site's rules are unknown: nothing is sent before `retry_at`.
    Closed {
        /// Why they are unknown.
        failure: &'a FetchFailure,
        /// When robots.txt may be fetched again.
        retry_at: Instant,
    },
    /// robots.txt has to be fetched first.
    Fetch,
}

/// What is known of one origin's robots.txt.
#[derive(Clone, Debug, Default)]
pub struct RobotsRecord {
    copy: Option<FileCopy>,
    failure: Option<Failures>,
}

#[derive(Clone, Debug)]
struct FileCopy {
    outcome: RobotsOutcome,
    validators: Validators,
    /// When it was last confirmed, or restored from a store.
    since: Instant,
    /// Its age at that moment: 0 unless it came from a store.
    age: Duration,
    life: Duration,
    epoch: u64,
}

impl FileCopy {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since) + self.age
    }
}

#[derive(Clone, Debug)]
struct Failures {
    cause: FetchFailure,
    count: u32,
    retry_at: Instant,
}

impl RobotsRecord {
    /// What holds at `now`.
    ///
    /// `delay` is the host's delay as it is known now: a copy lives at least two of them, or a Crawl-delay longer than the
    /// lifetime would have robots.txt fetched for ever and no page. `epoch` counts the host's pauses and runs of blocks: a
    /// copy of another epoch is fetched again.
    #[must_use]
    pub fn status(&self, now: Instant, delay: Duration, epoch: u64) -> RobotsStatus<'_> {
        if let Some(failure) = &self.failure {
            if now >= failure.retry_at {
                return RobotsStatus::Fetch;
            }
            return match &self.copy {
                Some(copy) if copy.age(now) < RobotsPolicy::STALE => {
                    RobotsStatus::Obey(&copy.outcome)
                }
                _ => RobotsStatus::Closed {
                    failure: &failure.cause,
                    retry_at: failure.retry_at,
                },
            };
        }
        match &self.copy {
            Some(copy)
                if copy.epoch == epoch
                    && copy.age(now) < copy.life.max(delay.saturating_mul(2)) =>
            {
                RobotsStatus::Obey(&copy.outcome)
            }
            _ => RobotsStatus::Fetch,
        }
    }

    /// The last outcome, however old.
    #[must_use]
    pub fn outcome(&self) -> Option<&RobotsOutcome> {
        self.copy.as_ref().map(|copy| &copy.outcome)
    }

    /// Whether the last fetch had no outcome.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    /// The validators for a conditional request: only where rules are kept that a 304 could confirm.
    #[must_use]
    pub fn validators(&self) -> Option<&Validators> {
        match &self.copy {
            Some(FileCopy {
                outcome: RobotsOutcome::Rules(_),
                validators,
                ..
            }) => Some(validators),
            _ => None,
        }
    }

    /// A fetch that began in `epoch` ended with `outcome` and these response headers.
    pub fn keep(
        &mut self,
        outcome: RobotsOutcome,
        headers: &HeaderMap,
        policy: &RobotsPolicy,
        now: Instant,
        epoch: u64,
    ) {
        let validators = Validators::of(headers);
        self.copy = Some(FileCopy {
            outcome,
            validators,
            since: now,
            age: Duration::ZERO,
            life: lifetime(headers, policy),
            epoch,
        });
        self.failure = None;
    }

    /// The response to a conditional request was 304. Without a copy to confirm it is a failed fetch.
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
        copy.life = lifetime(headers, policy);
        copy.epoch = epoch;
        // Fields of a 304 replace the stored ones (RFC 9111, 3.2).
        let new = Validators::of(headers);
        copy.validators.etag = new.etag.or_else(|| copy.validators.etag.take());
        copy.validators.last_modified = new
            .last_modified
            .or_else(|| copy.validators.last_modified.take());
        self.failure = None;
    }

    /// A fetch had no outcome. The next one is not before the backoff (60 s, doubled with each failure, an hour at most)
    /// nor before `after`, the Retry-After, which is never cut.
    pub fn fail(&mut self, cause: FetchFailure, after: Option<Duration>, now: Instant) {
        let failures = self
            .failure
            .as_ref()
            .map_or(0, |failure| failure.count)
            .saturating_add(1);
        let backoff = FIRST_RETRY
            .saturating_mul(1 << (failures - 1).min(6))
            .min(LAST_RETRY);
        let wait = backoff.max(after.unwrap_or_default());
        let now = Now {
            monotonic: now,
            wall: std::time::SystemTime::UNIX_EPOCH,
        };
        self.failure = Some(Failures {
            cause,
            count: failures,
            retry_at: now.after(wait),
        });
        let expired = |copy: &FileCopy| copy.age(now.monotonic) >= RobotsPolicy::STALE;
        if self.copy.as_ref().is_some_and(expired) {
            self.copy = None;
        }
    }

    /// The record in the form that a store keeps; `bytes` are those of the file if it was fetched just now.
    #[must_use]
    pub fn to_stored(&self, now: Now, bytes: Option<Bytes>) -> StoredRobots {
        let copy = self.copy.as_ref().map(|copy| StoredCopy {
            outcome: match &copy.outcome {
                RobotsOutcome::Rules(_) => StoredOutcome::Rules(bytes),
                RobotsOutcome::Unavailable => StoredOutcome::Unavailable,
                RobotsOutcome::Closed(status) => StoredOutcome::Closed(*status),
            },
            validators: copy.validators.clone(),
            confirmed: now.wall - copy.age(now.monotonic),
            life: copy.life,
        });
        let failure = self.failure.as_ref().map(|failure| StoredFailure {
            cause: failure.cause.clone(),
            failures: failure.count,
            retry_at: now.wall_at(failure.retry_at),
        });
        StoredRobots { copy, failure }
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
            let outcome = match copy.outcome {
                StoredOutcome::Rules(Some(bytes)) if newer => {
                    Some(RobotsOutcome::Rules(parse(&bytes)))
                }
                StoredOutcome::Unavailable => Some(RobotsOutcome::Unavailable),
                StoredOutcome::Closed(status) => Some(RobotsOutcome::Closed(status)),
                StoredOutcome::Rules(_) => None,
            };
            if let Some(outcome) = outcome.filter(|_| newer && age < RobotsPolicy::STALE) {
                self.copy = Some(FileCopy {
                    outcome,
                    validators: copy.validators,
                    since: now.monotonic,
                    age,
                    life: copy.life.clamp(RobotsPolicy::FLOOR, RobotsPolicy::CEILING),
                    epoch,
                });
                self.failure = None;
            }
        }
        if let Some(failure) = stored.failure {
            // A wall clock that jumped back must not close a site for long: its Retry-After is a pause of the host.
            let wait = failure
                .retry_at
                .duration_since(now.wall)
                .unwrap_or_default()
                .min(LAST_RETRY);
            let own = self.failure.as_ref().map_or(0, |own| own.count);
            if failure.failures > own {
                self.failure = Some(Failures {
                    cause: failure.cause,
                    count: failure.failures,
                    retry_at: now.after(wait),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn kept(headers: &[(&'static str, &'static str)], now: Instant) -> RobotsRecord {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        let mut record = RobotsRecord::default();
        record.keep(
            RobotsOutcome::Unavailable,
            &map,
            &RobotsPolicy::default(),
            now,
            0,
        );
        record
    }

    fn obeys(record: &RobotsRecord, at: Instant, delay: Duration, epoch: u64) -> bool {
        matches!(record.status(at, delay, epoch), RobotsStatus::Obey(_))
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
    fn failures_close_backoff_and_keep_the_old_copy_for_thirty_days() {
        let start = Instant::now();
        let mut record = RobotsRecord::default();
        for (failure, wait) in [60, 120, 240, 480, 960, 1920, 3600, 3600]
            .into_iter()
            .enumerate()
        {
            record.fail(FetchFailure::NoResponse, None, start);
            let RobotsStatus::Closed { retry_at, .. } = record.status(start, SECOND, 0) else {
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
            record.status(start + RobotsPolicy::STALE, SECOND, 0),
            RobotsStatus::Closed { .. }
        ));

        let mut record = kept(&[], start);
        let late = start + 10 * RobotsPolicy::CEILING;
        record.fail(FetchFailure::NoResponse, None, late);
        assert!(obeys(&record, late, SECOND, 0));
        assert!(matches!(
            record.status(late + 60 * SECOND, SECOND, 0),
            RobotsStatus::Fetch
        ));
        let too_late = start + RobotsPolicy::STALE;
        record.fail(FetchFailure::NoResponse, None, too_late);
        assert!(matches!(
            record.status(too_late, SECOND, 0),
            RobotsStatus::Closed { .. }
        ));
    }
}
