//! APIs under a key: for each a bucket of tokens, and how many requests are in flight.
//!
//! **Flow**: [`StartOptions`](super::StartOptions) that name an API are decided by the API's own limit.
//! [`HostState::reserve_api`](super::HostState::reserve_api), [`HostState::start_api`](super::HostState::start_api) and
//! [`HostState::finish_api`](super::HostState::finish_api) are to it what their namesakes are to pages. What belongs to the
//! host holds for both: its pauses, and the rate that backoff leaves of it.
//!
//! A bucket is kept as the instant at which it will be full again. Nothing is added up over time, so that nothing drifts,
//! and a full bucket needs no memory.
//!
//! **After a backoff** nothing is saved up: the requests of an API are spaced evenly, at the pace at which the site complained
//! if that is slower than the limit, divided by the rate that is left. The burst is back with the full rate.

use std::time::{Duration, Instant};

use super::backoff::{Backoff, FORGOTTEN_AFTER};
use super::pace::{Pace, PaceReason};
use super::permits::Permits;
use super::runs::Runs;
use super::start::{ApiQuota, Decision};
use crate::clock::later;
use crate::vocabulary::purpose::ApiLimit;

/// The APIs of a host of which something has to be remembered. No allocation where there are none.
#[derive(Clone, Debug, Default)]
pub(super) struct Apis(Vec<ApiUse>);

/// What is remembered of one API.
#[derive(Clone, Debug, Default)]
pub(super) struct ApiUse {
    number: u64,
    /// When the bucket is full again; `None` before the first start.
    full_at: Option<Instant>,
    last_start: Option<Instant>,
    pub(super) permits: Permits,
    pub(super) runs: Runs,
}

impl Apis {
    pub(super) fn get(&self, number: u64) -> Option<&ApiUse> {
        self.0.iter().find(|api| api.number == number)
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut ApiUse> {
        self.0.iter_mut().find(|api| api.number == number)
    }

    pub(super) fn entry(&mut self, number: u64) -> &mut ApiUse {
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

    pub(super) fn permits(&self, number: u64) -> Permits {
        self.get(number)
            .map_or(Permits::default(), |api| api.permits)
    }

    /// The requests in flight on all of them.
    pub(super) fn in_flight(&self) -> u32 {
        self.0.iter().map(|api| api.permits.in_flight()).sum()
    }

    pub(super) fn last_start(&self) -> Option<Instant> {
        self.0.iter().filter_map(|api| api.last_start).max()
    }

    pub(super) fn most_refusals(&self) -> u32 {
        let refusals = self.0.iter().map(|api| api.runs.refusals);
        refusals.max().unwrap_or(0)
    }

    /// The longest of each run, `pages` included.
    pub(super) fn longest_runs(&self, pages: Runs) -> Runs {
        self.0.iter().map(|api| api.runs).fold(pages, Runs::max)
    }

    /// Whether a request may start at `now`, on a host whose pause ends at `from`.
    pub(super) fn decide(
        &self,
        now: Instant,
        from: Instant,
        backoff: &Backoff,
        api: ApiQuota,
    ) -> Decision {
        let due = self.due(from, backoff, api);
        let permits = self.permits(api.number);
        // Those who are about to start take their tokens with them. If none is left then, what they come to decides.
        let undecided =
            permits.granted() > 0 && self.due_after(from, backoff, api, permits.granted()) > now;
        if permits.in_flight() >= api.limit.max_in_flight.get() || undecided {
            Decision::Full(due)
        } else if due <= now {
            Decision::Admit
        } else {
            Decision::Wait(due)
        }
    }

    /// The earliest start by the bucket, not before `from`.
    pub(super) fn due(&self, from: Instant, backoff: &Backoff, api: ApiQuota) -> Instant {
        self.due_after(from, backoff, api, 0)
    }

    /// The part of the burst that is left at `from`, as time.
    pub(super) fn saved_up(&self, from: Instant, backoff: &Backoff, api: ApiQuota) -> Duration {
        let terms = Terms::of(api.limit, backoff);
        let lead = self.lead(from, terms, api, self.permits(api.number).granted());
        terms.slack.saturating_sub(lead)
    }

    /// Takes the token of a request whose permit is reserved.
    pub(super) fn start(&mut self, now: Instant, backoff: &Backoff, api: ApiQuota) {
        let interval = Terms::of(api.limit, backoff).interval;
        let used = self.entry(api.number);
        used.permits.start();
        let from = used.full_at.map_or(now, |at| at.max(now));
        used.full_at = Some(later(from, interval));
        used.last_start = used.last_start.max(Some(now));
    }

    /// Forgets those whose bucket is full again. Under `pressure` runs, which only make a pause longer, are given up too.
    pub(super) fn forget(&mut self, now: Instant, pressure: bool) {
        self.0.retain(|api| {
            let idle = match api.last_start {
                Some(last) => now.saturating_duration_since(last),
                None => Duration::MAX,
            };
            let empty = api.runs.is_empty() || pressure || idle >= FORGOTTEN_AFTER;
            api.permits.in_flight() > 0 || api.full_at.is_some_and(|at| at > now) || !empty
        });
    }

    pub(super) fn forget_runs(&mut self) {
        for api in &mut self.0 {
            api.runs = Runs::default();
        }
    }

    /// The earliest start once `others` have taken a token each.
    fn due_after(&self, from: Instant, backoff: &Backoff, api: ApiQuota, others: u32) -> Instant {
        let terms = Terms::of(api.limit, backoff);
        let lead = self.lead(from, terms, api, others);
        let due = later(from, lead.saturating_sub(terms.slack));
        match self.get(api.number).and_then(|used| used.last_start) {
            // What was started before the backoff was started at the old rate.
            Some(last) if backoff.is_slowed() => due.max(later(last, terms.interval)),
            _ => due,
        }
    }

    /// How long after `from` the bucket is full again, once `others` have taken a token each.
    fn lead(&self, from: Instant, terms: Terms, api: ApiQuota, others: u32) -> Duration {
        let full_at = self.get(api.number).and_then(|used| used.full_at);
        let lead = full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(from));
        lead.saturating_add(terms.interval.saturating_mul(others))
    }
}

/// A limit at the rate that is left.
#[derive(Clone, Copy, Debug)]
struct Terms {
    /// The time in which the bucket gains a token.
    interval: Duration,
    /// The time in which it gains all but one.
    slack: Duration,
}

impl Terms {
    fn of(limit: ApiLimit, backoff: &Backoff) -> Self {
        let interval = limit.interval();
        if backoff.is_slowed() {
            Self {
                interval: backoff.scaled_for_api(interval.max(backoff.learnt)),
                slack: Duration::ZERO,
            }
        } else {
            Self {
                interval,
                slack: interval.saturating_mul(limit.burst.get() - 1),
            }
        }
    }
}

/// The pace at which the requests of an API are spaced, a burst apart.
pub(super) fn pace(backoff: &Backoff, api: ApiQuota) -> Pace {
    let learnt = backoff.is_slowed() && backoff.learnt > api.limit.interval();
    Pace {
        delay: Terms::of(api.limit, backoff).interval,
        reason: if learnt {
            PaceReason::Learnt
        } else {
            PaceReason::ApiLimit
        },
        rate: backoff.api_rate(),
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

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
