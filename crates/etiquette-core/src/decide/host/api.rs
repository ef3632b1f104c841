//! APIs under a key: for each a bucket of tokens, and how many requests are under way.
//!
//! **Flow**: an [`Ask`](super::Ask) that names an API is decided by the API's own limit. [`HostState::reserve_api`],
//! [`HostState::start_api`] and [`HostState::finish_api`] are to it what their namesakes are to pages. What belongs to the
//! host holds for both: its pauses, and the rate that backoff leaves of it.
//!
//! A bucket is kept as the instant at which it will be full again. Nothing is added up over time, so that nothing drifts,
//! and a bucket that is full is one that nothing has to be known about.
//!
//! **After a backoff** nothing is saved up: the requests of an API are spaced evenly, at the pace at which the site complained
//! if that is slower than the limit, divided by the rate that is left. The burst is back with the full rate.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::pace::{Pace, PaceReason};
use super::runs::Runs;
use super::state::{Decision, FORGOTTEN_AFTER, HostState};
use crate::clock::later;
use crate::vocabulary::purpose::ApiLimit;

/// The API that a request is for, and the limit that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiAsk {
    /// Tells the APIs of one host apart.
    pub number: u64,
    /// What the site documents. Where declarations of one API differ, each request is held to its own.
    pub limit: ApiLimit,
}

impl ApiAsk {
    /// The API `number` of a host, under `limit`.
    #[must_use]
    pub fn new(number: u64, limit: ApiLimit) -> Self {
        Self { number, limit }
    }
}

/// The APIs of a host that something is owed to. No allocation where there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct Apis(Vec<ApiUse>);

/// What is remembered of one API.
#[derive(Clone, Debug, Default)]
pub(super) struct ApiUse {
    number: u64,
    /// When the bucket is full again; `None` before the first start.
    full_at: Option<Instant>,
    last_start: Option<Instant>,
    in_flight: u32,
    granted: u32,
    pub(super) runs: Runs,
}

/// A limit at the rate that is left.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// The time in which the bucket gains a token.
    interval: Duration,
    /// The time in which it gains all but one.
    slack: Duration,
}

impl Apis {
    pub(super) fn get(&self, number: u64) -> Option<&ApiUse> {
        self.0.iter().find(|api| api.number == number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ApiUse> {
        self.0.iter_mut().find(|api| api.number == number)
    }

    fn entry(&mut self, number: u64) -> &mut ApiUse {
        let at = self.0.iter().position(|api| api.number == number);
        let at = at.unwrap_or_else(|| {
            self.0.push(ApiUse {
                number,
                ..ApiUse::default()
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requests under way on all of them.
    pub(super) fn in_flight(&self) -> u32 {
        self.0.iter().map(|api| api.in_flight).sum()
    }

    pub(super) fn last_start(&self) -> Option<Instant> {
        self.0.iter().filter_map(|api| api.last_start).max()
    }

    pub(super) fn most_refusals(&self) -> u32 {
        self.0
            .iter()
            .map(|api| api.runs.refusals)
            .max()
            .unwrap_or(0)
    }

    /// The longest of each run, `pages` included.
    pub(super) fn longest_runs(&self, pages: Runs) -> Runs {
        self.0.iter().map(|api| api.runs).fold(pages, Runs::max)
    }

    /// Forgets those whose bucket is full again. Under `pressure` runs, which only make a pause longer, are given up too.
    pub(super) fn forget(&mut self, now: Instant, pressure: bool) {
        self.0.retain(|api| {
            let idle = match api.last_start {
                Some(last) => now.saturating_duration_since(last),
                None => Duration::MAX,
            };
            let empty = api.runs.is_empty() || pressure || idle >= FORGOTTEN_AFTER;
            api.in_flight > 0 || api.full_at.is_some_and(|at| at > now) || !empty
        });
    }

    pub(super) fn forget_runs(&mut self) {
        for api in &mut self.0 {
            api.runs = Runs::default();
        }
    }
}

impl HostState {
    pub(super) fn decide_api(&mut self, now: Instant, api: ApiAsk) -> Decision {
        let due = self.due_api(now, api);
        let (in_flight, granted) = match self.apis.get(api.number) {
            Some(used) => (used.in_flight, used.granted),
            None => (0, 0),
        };
        // Those who are about to start take their tokens with them. If none is left then, what they come to decides.
        let undecided = granted > 0 && self.due_after(now, api, granted) > now;
        if in_flight >= api.limit.max_in_flight.get() || undecided {
            Decision::Full(due)
        } else if due <= now {
            Decision::Admit
        } else {
            Decision::Wait(due)
        }
    }

    /// The earliest start by pause and bucket.
    pub(super) fn due_api(&mut self, now: Instant, api: ApiAsk) -> Instant {
        self.settle(now);
        self.due_after(now, api, 0)
    }

    /// What those who wait behind the first can count on at once after it, because the API was idle before: as time, of
    /// which each takes one [delay](HostState::delay_of).
    pub fn saved_up(&mut self, now: Instant, api: ApiAsk) -> Duration {
        self.settle(now);
        let granted = self.apis.get(api.number).map_or(0, |used| used.granted);
        let lead = self.lead(self.from(now), api, granted);
        self.terms(api.limit).slack.saturating_sub(lead)
    }

    /// Takes a permit of the API for a request that is about to start. [`HostState::start_api`] or
    /// [`HostState::unreserve_api`] follows.
    pub fn reserve_api(&mut self, api: ApiAsk) {
        let used = self.apis.entry(api.number);
        used.in_flight += 1;
        used.granted += 1;
    }

    /// Gives a permit back that was reserved and not used: as if nobody had asked.
    pub fn unreserve_api(&mut self, number: u64) {
        if let Some(used) = self.apis.get_mut(number) {
            used.in_flight = used.in_flight.saturating_sub(1);
            used.granted = used.granted.saturating_sub(1);
        }
    }

    /// Stamps the start of a request whose permit is reserved, and takes its token.
    pub fn start_api(&mut self, now: Instant, api: ApiAsk) {
        let interval = self.terms(api.limit).interval;
        let used = self.apis.entry(api.number);
        used.granted = used.granted.saturating_sub(1);
        let from = used.full_at.map_or(now, |at| at.max(now));
        used.full_at = Some(later(from, interval));
        used.last_start = used.last_start.max(Some(now));
        self.started += 1;
        self.count_start(now);
    }

    /// Gives the permit of a started request back: its body has ended, failed or was dropped.
    pub fn finish_api(&mut self, number: u64) {
        if let Some(used) = self.apis.get_mut(number) {
            used.in_flight = used.in_flight.saturating_sub(1);
        }
    }

    /// The requests of an API that hold a permit.
    #[must_use]
    pub fn api_in_flight(&self, number: u64) -> u32 {
        self.apis.get(number).map_or(0, |used| used.in_flight)
    }

    /// Whether something is owed to the API: its bucket is not full, requests are under way, or what came in a row is not
    /// forgotten yet. Under `pressure` the last does not count.
    pub fn owes_api(&mut self, now: Instant, number: u64, pressure: bool) -> bool {
        if self.backoff_level == 0 {
            self.apis.forget(now, pressure);
        }
        self.apis.get(number).is_some()
    }

    pub(super) fn pace_of_api(&self, api: ApiAsk) -> Pace {
        let reason = if self.is_slowed() && self.learnt > api.limit.interval() {
            PaceReason::Learnt
        } else {
            PaceReason::ApiLimit
        };
        Pace {
            delay: self.terms(api.limit).interval,
            reason,
            rate: self.rate_of_apis(),
        }
    }

    fn due_after(&self, now: Instant, api: ApiAsk, others: u32) -> Instant {
        let terms = self.terms(api.limit);
        let from = self.from(now);
        let lead = self.lead(from, api, others);
        let due = later(from, lead.saturating_sub(terms.slack));
        let last = self.apis.get(api.number).and_then(|used| used.last_start);
        match last {
            // What was started before the backoff was started at the old rate.
            Some(last) if self.is_slowed() => due.max(later(last, terms.interval)),
            _ => due,
        }
    }

    fn from(&self, now: Instant) -> Instant {
        now.max(self.pause_until.unwrap_or(now))
    }

    /// How long after `from` the bucket is full again, once `others` have taken a token each.
    fn lead(&self, from: Instant, api: ApiAsk, others: u32) -> Duration {
        let used = self.apis.get(api.number);
        let lead = used
            .and_then(|used| used.full_at)
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(from));
        let taken = self.terms(api.limit).interval.saturating_mul(others);
        lead.saturating_add(taken)
    }

    fn terms(&self, limit: ApiLimit) -> Terms {
        let interval = limit.interval();
        if self.is_slowed() {
            return Terms {
                interval: self.scaled_by(interval.max(self.learnt), self.rate_of_apis()),
                slack: Duration::ZERO,
            };
        }
        Terms {
            interval,
            slack: interval.saturating_mul(limit.burst.get() - 1),
        }
    }

    fn is_slowed(&self) -> bool {
        self.rate < 1.0 || self.backoff_level > 0
    }

    /// The floor under the rate is for the delay between pages, which is an hour there. Without it each level halves.
    fn rate_of_apis(&self) -> f64 {
        if self.backoff_level == 0 {
            self.rate
        } else {
            self.rate.min(super::backoff::ceiling(self.backoff_level))
        }
    }
}

impl ApiLimit {
    /// The time between two starts that are evenly spaced, rounded up to a nanosecond.
    #[must_use]
    pub fn interval(&self) -> Duration {
        let nanos = self
            .per
            .as_nanos()
            .div_ceil(u128::from(self.requests.get()));
        let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, (nanos % 1_000_000_000) as u32)
    }
}

impl super::HostPolicy {
    /// The stricter of this policy and an API's limit in every respect, for where the two cannot be kept apart.
    #[must_use]
    pub fn within(&self, limit: ApiLimit) -> Self {
        let mut policy = self.clone();
        policy.min_delay = policy.min_delay.max(limit.interval());
        policy.max_in_flight = NonZeroU32::min(policy.max_in_flight, limit.max_in_flight);
        policy
    }
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
