//! One host: what is remembered of it, and when its next request may start.

use std::time::{Duration, Instant};

use super::api::{self, Apis};
use super::backoff::{Backoff, FORGOTTEN_AFTER};
use super::crawl_delay::CrawlDelays;
use super::latency::{LATENCY_KEPT, Latency};
use super::pace::{HostSnapshot, Pace, PaceReason};
use super::pause::Pause;
use super::permits::Permits;
use super::policy::HostPolicy;
use super::runs::Runs;
use super::spacing::Spacing;
use super::start::{ApiQuota, Decision, StartOptions};
use super::starts::Starts;
use crate::Now;

/// What is remembered about one host.
#[derive(Clone, Debug, Default)]
pub struct HostState {
    pub(super) spacing: Spacing,
    /// The permits for pages; each API has its own.
    pub(super) permits: Permits,
    pub(super) starts: Starts,
    pub(super) latency: Latency,
    pub(super) crawl_delays: CrawlDelays,
    pub(super) pause: Pause,
    pub(super) backoff: Backoff,
    /// What its pages were answered with in a row.
    pub(super) runs: Runs,
    pub(super) apis: Apis,
}

/// Decisions.
impl HostState {
    /// A host that nothing is known about.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a request may start at `now`.
    pub fn decide(&mut self, policy: &HostPolicy, now: Instant, options: StartOptions) -> Decision {
        if let (Some(api), false) = (options.api, options.pauses_only) {
            self.apply_recovery(now);
            let from = self.pause.end(now);
            return self.apis.decide(now, from, &self.backoff, api);
        }
        let due = self.due(policy, now, options);
        if options.pauses_only {
            return if due <= now {
                Decision::Admit
            } else {
                Decision::Wait(due)
            };
        }
        // While somebody is about to start, the delay after that start is not known yet.
        let undecided = self.permits.granted() > 0 && !self.delay(policy, now).is_zero();
        if self.permits.in_flight() >= policy.max_in_flight.get() || undecided {
            Decision::Full(due)
        } else if due <= now {
            Decision::Admit
        } else {
            Decision::Wait(due)
        }
    }

    /// The earliest start by pause and delay, whether or not a permit is free; not before `now`.
    pub fn due(&mut self, policy: &HostPolicy, now: Instant, options: StartOptions) -> Instant {
        self.apply_recovery(now);
        let from = self.pause.end(now);
        let spaced = if options.pauses_only {
            let learnt = (self.backoff.level > 0 && !options.delay_taken)
                .then(|| self.backoff.scaled(self.backoff.learnt));
            self.spacing.due_without_permit(learnt)
        } else if let Some(api) = options.api {
            return self.apis.due(from, &self.backoff, api);
        } else if options.delay_taken {
            None
        } else {
            let delay = self.delay(policy, now);
            self.spacing.due(delay, policy.max_in_flight)
        };
        spaced.map_or(from, |spaced| spaced.max(from))
    }

    /// The least time between two starts with the same options, as known at `now`. A burst of an API that was idle is not
    /// spaced: [`HostState::saved_up`].
    pub fn delay_of(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        options: StartOptions,
    ) -> Duration {
        self.pace_of(policy, now, options).delay
    }

    /// The delay between two starts with the same options, and what determines it.
    pub fn pace_of(&mut self, policy: &HostPolicy, now: Instant, options: StartOptions) -> Pace {
        match options.api {
            Some(api) => {
                self.apply_recovery(now);
                api::pace(&self.backoff, api)
            }
            None => self.pace(policy, now),
        }
    }

    /// The least time between two starts of pages, as known at `now`.
    pub fn delay(&mut self, policy: &HostPolicy, now: Instant) -> Duration {
        self.pace(policy, now).delay
    }

    /// The delay between pages, and what determines it.
    pub fn pace(&mut self, policy: &HostPolicy, now: Instant) -> Pace {
        self.apply_recovery(now);
        let (base, reason) = self.base_delay(policy, now);
        Pace {
            delay: self.backoff.scaled(base),
            reason,
            rate: self.backoff.rate,
        }
    }

    /// What those who wait behind the first can count on at once after it, because the API was idle before: as time, of
    /// which each takes one [delay](HostState::delay_of).
    pub fn saved_up(&mut self, now: Instant, api: ApiQuota) -> Duration {
        self.apply_recovery(now);
        let from = self.pause.end(now);
        self.apis.saved_up(from, &self.backoff, api)
    }

    /// The delay at the full rate: the largest of those that the client, the site's speed, a complaint and robots.txt ask
    /// for.
    pub(super) fn base_delay(&self, policy: &HostPolicy, now: Instant) -> (Duration, PaceReason) {
        let mut base = (policy.min_delay, PaceReason::MinDelay);
        let others = [
            (self.latency.delay(policy), PaceReason::Latency),
            (self.backoff.learnt, PaceReason::Learnt),
            (
                self.crawl_delays.largest(now).unwrap_or_default(),
                PaceReason::CrawlDelay,
            ),
        ];
        for other in others {
            if other.0 > base.0 {
                base = other;
            }
        }
        base
    }

    /// Applies what time alone changes: recovery for minutes and half-hours that are over, and forgetting.
    pub(super) fn apply_recovery(&mut self, now: Instant) {
        self.backoff.apply_recovery(now);
        let last = self.last_start_of_any().max(self.pause.last_end());
        if self.under_way() == 0
            && last.is_some_and(|last| now.saturating_duration_since(last) >= FORGOTTEN_AFTER)
        {
            self.spacing.forget();
            self.permits = Permits::default();
            self.starts.forget();
            self.latency = Latency::default();
            self.pause.forget();
            self.backoff = Backoff::default();
            self.runs = Runs::default();
            self.apis.forget_runs();
        }
    }
}

/// Starts and ends of pages.
impl HostState {
    /// What the robots.txt of one origin of the group says now; a longer delay than the policy keeps is not for here.
    pub fn crawl_delay(&mut self, origin: u64, delay: Option<Duration>, now: Instant) {
        self.crawl_delays.set(origin, delay, now);
    }

    /// Takes a permit for a request that is about to start. [`HostState::start`] or [`HostState::unreserve`] follows.
    pub fn reserve(&mut self) {
        self.permits.reserve();
    }

    /// Returns a permit that was reserved and not used: as if nobody had asked.
    pub fn unreserve(&mut self) {
        self.permits.unreserve();
    }

    /// Stamps the start of a request whose permit is reserved.
    pub fn start(&mut self, now: Instant) {
        self.permits.start();
        self.spacing.start(now);
        self.starts.count(now);
    }

    /// Stamps the start of a request that holds no permit.
    pub fn start_without_permit(&mut self, now: Instant) {
        self.spacing.start_without_permit(now);
        self.starts.count(now);
    }

    /// A request without a permit was held here, after a budget elsewhere had started it. Those that the same budget started
    /// meanwhile, each a delay after the one before, are spaced by that delay here, too.
    pub fn space_without_permit(&mut self, now: Instant, delay: Duration) {
        self.spacing.space_without_permit(now, delay);
    }

    /// A request that was started has started without a permit before, and was counted then.
    pub fn uncount_start(&mut self) {
        self.starts.uncount();
    }

    /// Returns the permit of a started request: its body has ended, failed or was dropped.
    pub fn finish(&mut self, now: Instant) {
        self.permits.finish();
        self.spacing.finish(now);
    }
}

/// Starts and ends of an API's requests.
impl HostState {
    /// Takes a permit of the API for a request that is about to start. [`HostState::start_api`] or
    /// [`HostState::unreserve_api`] follows.
    pub fn reserve_api(&mut self, api: ApiQuota) {
        self.apis.entry(api.number).permits.reserve();
    }

    /// Returns a permit that was reserved and not used: as if nobody had asked.
    pub fn unreserve_api(&mut self, number: u64) {
        if let Some(api) = self.apis.get_mut(number) {
            api.permits.unreserve();
        }
    }

    /// Stamps the start of a request whose permit is reserved, and takes its token.
    pub fn start_api(&mut self, now: Instant, api: ApiQuota) {
        self.apis.start(now, &self.backoff, api);
        self.starts.count(now);
    }

    /// Returns the permit of a started request: its body has ended, failed or was dropped.
    pub fn finish_api(&mut self, number: u64) {
        if let Some(api) = self.apis.get_mut(number) {
            api.permits.finish();
        }
    }

    /// The requests of an API that hold a permit.
    #[must_use]
    pub fn api_in_flight(&self, number: u64) -> u32 {
        self.apis.permits(number).in_flight()
    }

    /// Whether something has to be remembered of the API: its bucket is not full, requests are in flight, or a run of
    /// responses is not forgotten yet. Under `pressure` the last does not count.
    pub fn owes_api(&mut self, now: Instant, number: u64, pressure: bool) -> bool {
        if self.backoff.level == 0 {
            self.apis.forget(now, pressure);
        }
        self.apis.get(number).is_some()
    }
}

/// What is known.
impl HostState {
    /// A pause that another process has learnt of, and backed off for. What only lengthens the last one by the time that
    /// messages take is no pause of its own.
    pub fn learn_pause(&mut self, now: Instant, until: Instant) {
        self.pause.learn(now, until);
    }

    /// The end of the pause, if the host is paused at `now`.
    #[must_use]
    pub fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.pause.until(now)
    }

    /// Whether the site has refused so many pages, or responses of one API, in a row that the client counts as blocked.
    #[must_use]
    pub fn is_blocked(&self, policy: &HostPolicy) -> bool {
        self.runs.refusals.max(self.apis.most_refusals()) >= policy.blocked_after.get()
    }

    /// Grows with each pause, and with each run of refusals that blocks the client or is over: what was learnt
    /// about the site before is worth asking again.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.pause.epoch()
    }

    /// When [`HostState::epoch`] last grew, as far as that is known: what was learnt elsewhere before, by a process that
    /// has ended, is of an earlier epoch.
    #[must_use]
    pub fn last_epoch(&self) -> Option<Instant> {
        self.pause.last_epoch()
    }

    /// The pauses that backed off and are not forgiven yet.
    #[must_use]
    pub fn backoff_level(&self) -> u32 {
        self.backoff.level
    }

    /// The number of requests that were started: by it a visit sees whether another request came in between.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.starts.total()
    }

    /// The last start, if there was one.
    #[must_use]
    pub fn last_start(&self) -> Option<Instant> {
        self.spacing.last_start()
    }

    /// The last start of all: of pages, of requests without a permit, and of APIs.
    pub(super) fn last_start_of_any(&self) -> Option<Instant> {
        self.spacing.last_start_of_any().max(self.apis.last_start())
    }

    /// The last end of a body, if there was one.
    #[must_use]
    pub fn last_end(&self) -> Option<Instant> {
        self.spacing.last_end()
    }

    /// The requests that hold a permit, those of APIs apart.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.permits.in_flight()
    }

    /// The requests that hold a permit, those of APIs included.
    #[must_use]
    pub fn under_way(&self) -> u32 {
        self.permits.in_flight() + self.apis.in_flight()
    }

    /// Whether forgetting the host lets no request start sooner: none is in flight, pause and delay are over, the rate is
    /// full. Under `pressure` what only makes a good pace better is given up too.
    pub fn is_forgettable(&mut self, policy: &HostPolicy, now: Instant, pressure: bool) -> bool {
        let due = self.due(policy, now, StartOptions::pace());
        let due = due.max(self.spacing.spaced_until().unwrap_or(due));
        if self.permits.in_flight() > 0 || due > now || self.backoff.level > 0 {
            return false;
        }
        self.apis.forget(now, pressure);
        if !self.apis.is_empty() {
            return false;
        }
        // With several permits the end of a body sets no delay, but the host was in use until then.
        let idle = match self.spacing.last_use() {
            Some(last) => now.saturating_duration_since(last),
            None => Duration::MAX,
        };
        let runs = self.runs.failures > 0 || self.runs.refusals > 0;
        let latency = self.latency.delay(policy);
        pressure
            || idle >= FORGOTTEN_AFTER
            || !runs && (latency <= policy.min_delay || idle >= LATENCY_KEPT)
    }

    /// What explains the pace. `waiting` and the `name` are known to the caller.
    pub fn snapshot(
        &mut self,
        policy: &HostPolicy,
        now: Now,
        name: Option<String>,
        waiting: usize,
    ) -> HostSnapshot {
        let pace = self.pace(policy, now.monotonic);
        HostSnapshot {
            name,
            pace,
            min_delay: policy.min_delay,
            crawl_delay: self.crawl_delays.largest(now.monotonic),
            latency_delay: self.latency.delay(policy),
            latency: self.latency.0,
            paused_until: self
                .paused_until(now.monotonic)
                .map(|until| now.wall_at(until)),
            blocked: self.is_blocked(policy),
            backoff_level: self.backoff.level,
            in_flight: self.under_way(),
            waiting,
            started: self.started(),
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
