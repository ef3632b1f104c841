//! One host: what is remembered of it, and when its next request may start.

use std::time::{Duration, Instant};

use super::api::{ApiQuota, Apis};
use super::crawl_delay::CrawlDelays;
use super::pace::{HostSnapshot, Pace, PaceReason};
use super::policy::{HostPolicy, LONGEST_PAUSE};
use super::runs::Runs;
use crate::Now;
use crate::clock::{LONGEST, later};

/// Without a request for so long after its pause a host is a stranger again.
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// What a delay follows, but no promise rests on, is kept so long.
const LATENCY_KEPT: Duration = Duration::from_secs(600);

/// What is remembered about one host.
#[derive(Clone, Debug)]
pub struct HostState {
    pub(super) last_start: Option<Instant>,
    /// The last start of a request that asked for pauses only. It is kept apart: the same request may ask for a permit
    /// further in.
    pub(super) last_without_permit: Option<Instant>,
    pub(super) last_end: Option<Instant>,
    /// Until then nothing is let go that asks for pauses only, because the last one was held: see
    /// [`HostState::space_without_permit`].
    pub(super) spaced_until: Option<Instant>,
    pub(super) in_flight: u32,
    pub(super) granted: u32,
    pub(super) started: u64,
    /// Starts are counted in seconds that follow each other; the second before is estimated from two of them.
    pub(super) second: Option<Instant>,
    pub(super) starts_in_second: u32,
    pub(super) starts_in_earlier: u32,
    pub(super) latency: Duration,
    pub(super) crawl_delays: CrawlDelays,
    pub(super) pause_until: Option<Instant>,
    pub(super) backoff_level: u32,
    /// The share of the full rate that is left: 1 at backoff level 0.
    pub(super) rate: f64,
    /// The delay learnt from the pace at which the site complained, where the configured one is shorter.
    pub(super) learnt: Duration,
    pub(super) last_backoff: Option<Instant>,
    /// The end of the last pause that backed_off: successes count from here.
    pub(super) recover_from: Option<Instant>,
    /// The minute and the half-hour since then that have seen a success and are not over yet.
    pub(super) good_minute: Option<u64>,
    pub(super) good_half_hour: Option<u64>,
    /// What its pages answered in a row.
    pub(super) runs: Runs,
    pub(super) apis: Apis,
    pub(super) epoch: u64,
    /// When it last grew.
    pub(super) last_epoch: Option<Instant>,
}

/// What a request asks of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartOptions {
    /// Only pauses hold it, and the learnt delay after them: no permit, no delay.
    pub pauses_only: bool,
    /// Somebody else keeps the delay, or it is a further step of a visit that has taken its delay already.
    pub delay_taken: bool,
    /// The limit of an API takes the place of delay and permits. Stores that several processes share are not asked for it.
    pub api: Option<ApiQuota>,
}

/// Whether a request may start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// It may.
    Admit,
    /// Not before this.
    Wait(Instant),
    /// Not before a permit is free, and not before this.
    Full(Instant),
}

impl StartOptions {
    /// Asks for a permit and the delay, as each request of a budget does.
    #[must_use]
    pub fn pace() -> Self {
        Self::default()
    }

    /// Asks for pauses only.
    #[must_use]
    pub fn pauses() -> Self {
        Self {
            pauses_only: true,
            ..Self::default()
        }
    }

    /// Asks for a permit and a token of an API.
    #[must_use]
    pub fn api(api: ApiQuota) -> Self {
        Self {
            api: Some(api),
            ..Self::default()
        }
    }
}

impl Default for HostState {
    fn default() -> Self {
        Self {
            last_start: None,
            last_without_permit: None,
            last_end: None,
            spaced_until: None,
            in_flight: 0,
            granted: 0,
            started: 0,
            second: None,
            starts_in_second: 0,
            starts_in_earlier: 0,
            latency: Duration::ZERO,
            crawl_delays: CrawlDelays::default(),
            pause_until: None,
            backoff_level: 0,
            rate: 1.0,
            learnt: Duration::ZERO,
            last_backoff: None,
            recover_from: None,
            good_minute: None,
            good_half_hour: None,
            runs: Runs::default(),
            apis: Apis::default(),
            epoch: 0,
            last_epoch: None,
        }
    }
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
            return self.decide_api(now, api);
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
        let undecided = self.granted > 0 && !self.delay(policy, now).is_zero();
        if self.in_flight >= policy.max_in_flight.get() || undecided {
            Decision::Full(due)
        } else if due <= now {
            Decision::Admit
        } else {
            Decision::Wait(due)
        }
    }

    /// The earliest start by pause and delay, whether or not a permit is free; not before `now`.
    pub fn due(&mut self, policy: &HostPolicy, now: Instant, options: StartOptions) -> Instant {
        if let (Some(api), false) = (options.api, options.pauses_only) {
            return self.due_api(now, api);
        }
        self.apply_recovery(now);
        let mut due = now.max(self.pause_until.unwrap_or(now));
        if options.pauses_only {
            due = due.max(self.spaced_until.unwrap_or(now));
            let last = self.last_start.max(self.last_without_permit);
            if let (Some(start), true, false) = (last, self.backoff_level > 0, options.delay_taken)
            {
                due = due.max(later(start, self.scaled(self.learnt)));
            }
        } else if !options.delay_taken {
            let delay = self.delay(policy, now);
            if let Some(start) = self.last_start {
                due = due.max(later(start, delay));
            }
            if let (Some(end), 1) = (self.last_end, policy.max_in_flight.get()) {
                due = due.max(later(end, delay));
            }
        }
        due
    }

    /// The least time between two starts that ask the same, as known at `now`. A burst of an API that was idle is not
    /// spaced: [`HostState::saved_up`].
    pub fn delay_of(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        options: StartOptions,
    ) -> Duration {
        self.pace_of(policy, now, options).delay
    }

    /// The delay between two starts that ask the same, and what determines it.
    pub fn pace_of(&mut self, policy: &HostPolicy, now: Instant, options: StartOptions) -> Pace {
        match options.api {
            Some(api) => {
                self.apply_recovery(now);
                self.pace_of_api(api)
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
            delay: self.scaled(base),
            reason,
            rate: self.rate,
        }
    }

    /// The end of the pause, if the host is paused at `now`.
    #[must_use]
    pub fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.pause_until.filter(|until| *until > now)
    }

    /// Whether the site has refused so many pages, or answers of one API, in a row that the client counts as blocked.
    #[must_use]
    pub fn is_blocked(&self, policy: &HostPolicy) -> bool {
        self.runs.refusals.max(self.apis.most_refusals()) >= policy.blocked_after.get()
    }

    /// Grows with each pause, and with each run of refusals that blocks the client or is over: what was learnt
    /// about the site before is worth asking again.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The incidents that are not forgiven yet.
    #[must_use]
    pub fn backoff_level(&self) -> u32 {
        self.backoff_level
    }

    /// When [`HostState::epoch`] last grew, as far as that is known: what was learnt elsewhere before, by a process that
    /// has ended, is of an earlier epoch.
    #[must_use]
    pub fn last_epoch(&self) -> Option<Instant> {
        self.last_epoch
    }

    /// The number of requests that were started: by it a visit sees whether somebody else came in between.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started
    }

    /// The last start, if there was one.
    #[must_use]
    pub fn last_start(&self) -> Option<Instant> {
        self.last_start
    }

    /// The last end of a body, if there was one.
    #[must_use]
    pub fn last_end(&self) -> Option<Instant> {
        self.last_end
    }

    /// The requests that hold a permit, those of APIs apart.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The requests that hold a permit, those of APIs included.
    #[must_use]
    pub fn under_way(&self) -> u32 {
        self.in_flight + self.apis.in_flight()
    }

    /// Whether forgetting the host would change nothing that it is owed: nobody is under way, pause and delay are over,
    /// the rate is full. Under `pressure` what only makes a good pace better is given up too.
    pub fn is_forgettable(&mut self, policy: &HostPolicy, now: Instant, pressure: bool) -> bool {
        let due = self.due(policy, now, StartOptions::pace());
        let due = due.max(self.spaced_until.unwrap_or(due));
        if self.in_flight > 0 || due > now || self.backoff_level > 0 {
            return false;
        }
        self.apis.forget(now, pressure);
        if !self.apis.is_empty() {
            return false;
        }
        // With several permits the end of a body sets no delay, but the host was in use until then.
        let idle = match self
            .last_end
            .max(self.last_start)
            .max(self.last_without_permit)
        {
            Some(last) => now.saturating_duration_since(last),
            None => Duration::MAX,
        };
        let runs = self.runs.failures > 0 || self.runs.refusals > 0;
        pressure
            || idle >= FORGOTTEN_AFTER
            || !runs && (self.latency_delay(policy) <= policy.min_delay || idle >= LATENCY_KEPT)
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
            latency_delay: self.latency_delay(policy),
            latency: self.latency,
            paused_until: self
                .paused_until(now.monotonic)
                .map(|until| now.wall_at(until)),
            blocked: self.is_blocked(policy),
            backoff_level: self.backoff_level,
            in_flight: self.under_way(),
            waiting,
            started: self.started,
        }
    }

    pub(super) fn base_delay(&self, policy: &HostPolicy, now: Instant) -> (Duration, PaceReason) {
        let mut base = (policy.min_delay, PaceReason::MinDelay);
        let others = [
            (self.latency_delay(policy), PaceReason::Latency),
            (self.learnt, PaceReason::Learnt),
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

    fn latency_delay(&self, policy: &HostPolicy) -> Duration {
        let delay = self.latency.saturating_mul(policy.latency_factor);
        delay.min(policy.max_delay)
    }

    /// The delay at the present rate: at most an hour by backoff, never less than the delay itself.
    fn scaled(&self, delay: Duration) -> Duration {
        self.scaled_by(delay, self.rate)
    }

    pub(super) fn scaled_by(&self, delay: Duration, rate: f64) -> Duration {
        if rate >= 1.0 {
            return delay;
        }
        let scaled = delay.min(LONGEST).as_secs_f64() / rate;
        let longest = LONGEST_PAUSE.max(delay);
        if scaled >= longest.as_secs_f64() {
            longest
        } else {
            Duration::from_secs_f64(scaled).max(delay)
        }
    }
}

/// Starts and ends.
impl HostState {
    /// What the robots.txt of one origin of the group says now; a longer delay than the policy keeps is not for here.
    pub fn crawl_delay(&mut self, origin: u64, delay: Option<Duration>, now: Instant) {
        self.crawl_delays.set(origin, delay, now);
    }

    /// Takes a permit for a request that is about to start. [`HostState::start`] or [`HostState::unreserve`] follows.
    pub fn reserve(&mut self) {
        self.in_flight += 1;
        self.granted += 1;
    }

    /// Gives a permit back that was reserved and not used: as if nobody had asked.
    pub fn unreserve(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.granted = self.granted.saturating_sub(1);
    }

    /// Stamps the start of a request whose permit is reserved.
    pub fn start(&mut self, now: Instant) {
        self.granted = self.granted.saturating_sub(1);
        self.last_start = Some(self.last_start.map_or(now, |last| last.max(now)));
        self.started += 1;
        self.count_start(now);
    }

    /// Stamps the start of a request that holds no permit.
    pub fn start_without_permit(&mut self, now: Instant) {
        self.last_without_permit = Some(self.last_without_permit.map_or(now, |last| last.max(now)));
        self.started += 1;
        self.count_start(now);
    }

    /// A request without a permit was held here, after a budget elsewhere had started it. Those that the same budget started
    /// meanwhile, each a delay after the one before, are let go by that delay, too.
    pub fn space_without_permit(&mut self, now: Instant, delay: Duration) {
        self.spaced_until = self.spaced_until.max(Some(later(now, delay)));
    }

    /// A request that was started has started without a permit before, and was counted then.
    pub fn uncount_start(&mut self) {
        self.started = self.started.saturating_sub(1);
        self.starts_in_second = self.starts_in_second.saturating_sub(1);
    }

    /// Gives the permit of a started request back: its body has ended, failed or was dropped.
    pub fn finish(&mut self, now: Instant) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end = Some(self.last_end.map_or(now, |last| last.max(now)));
    }

    pub(super) fn count_start(&mut self, now: Instant) {
        self.roll_second(now);
        self.starts_in_second = self.starts_in_second.saturating_add(1);
    }

    fn roll_second(&mut self, now: Instant) {
        let Some(second) = self.second else {
            self.second = Some(now);
            return;
        };
        let since = now.saturating_duration_since(second);
        if since >= Duration::from_secs(1) {
            self.starts_in_earlier = if since < Duration::from_secs(2) {
                self.starts_in_second
            } else {
                0
            };
            self.starts_in_second = 0;
            self.second = Some(later(second, Duration::from_secs(since.as_secs())));
        }
    }

    /// Rounded down, so that the delay learnt from it is not too short.
    pub(super) fn starts_in_second_before(&mut self, now: Instant) -> u32 {
        self.roll_second(now);
        let into = self.second.map_or(0.0, |second| {
            now.saturating_duration_since(second).as_secs_f64()
        });
        let earlier = f64::from(self.starts_in_earlier) * (1.0 - into).clamp(0.0, 1.0);
        self.starts_in_second.saturating_add(earlier as u32)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
