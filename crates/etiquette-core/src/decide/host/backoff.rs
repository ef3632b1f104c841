//! Pauses, backoff level, and the recovery from them.

use std::time::{Duration, Instant};

use super::HostState;
use super::policy::{HostPolicy, LONGEST_PAUSE};
use super::state::FORGOTTEN_AFTER;
use crate::clock::{LONGEST, later};

const MINUTE: Duration = Duration::from_secs(60);
const HALF_HOUR: Duration = Duration::from_secs(1_800);
/// Two processes see the end of one pause at most so far apart.
const SAME_PAUSE: Duration = Duration::from_millis(500);
/// What a successful minute gives back of the full rate.
const RECOVERY: f64 = 0.1;
/// How far minutes alone bring the rate back.
const CEILING: f64 = 0.9;

impl HostState {
    /// A pause that another process has learnt of, and backed off for. What only lengthens the last one by the time that
    /// messages take is no pause of its own.
    pub fn learn_pause(&mut self, now: Instant, until: Instant) {
        if until > now && self.pause_until.is_none_or(|known| known < until) {
            let new = |known: Instant| until.saturating_duration_since(known) > SAME_PAUSE;
            if self.paused_until(now).is_none() && self.pause_until.is_none_or(new) {
                self.new_epoch(now);
            }
            self.pause_until = Some(until);
        }
    }

    pub(super) fn back_off(&mut self, policy: &HostPolicy, now: Instant) {
        if self.backoff_level == 0 {
            // Where the delay is short, permits and latency set the pace: remember the one that was too fast.
            let starts = self.starts_in_second_before(now);
            self.learnt = (Duration::from_secs(1) / starts.max(1))
                .max(self.latency / policy.max_in_flight.get())
                .min(LONGEST_PAUSE);
        }
        let (base, _) = self.base_delay(policy, now);
        let floor = base.as_secs_f64() / LONGEST_PAUSE.as_secs_f64();
        self.rate = (self.rate / 2.0).max(floor).min(self.rate);
        self.backoff_level = self.backoff_level.saturating_add(1);
        self.last_backoff = Some(now);
        self.good_minute = None;
        self.good_half_hour = None;
        self.new_epoch(now);
    }

    /// Never shortens a pause. A pause that `slows` moves the instant from which successes count.
    pub(super) fn pause(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        wait: Duration,
        jitter: f64,
        slows: bool,
    ) {
        let wait = wait.min(LONGEST);
        let (least, most) = policy.jitter;
        let share = least + (most - least) * jitter.clamp(0.0, 1.0);
        let added = (wait.as_secs_f64() * share).min(LONGEST.as_secs_f64());
        let end = later(later(now, wait), Duration::from_secs_f64(added));
        if self.paused_until(now).is_none() {
            self.new_epoch(now);
        }
        let end = self.pause_until.map_or(end, |old| old.max(end));
        self.pause_until = Some(end);
        if slows {
            self.recover_from = Some(end);
        }
    }

    /// Only what was asked after the pause shows that the site is well again.
    pub(super) fn succeeded(&mut self, now: Instant, started: Instant) {
        if let Some(from) = self.recover_from
            && started >= from
        {
            let since = now.saturating_duration_since(from);
            self.good_minute = Some(since.as_secs() / MINUTE.as_secs());
            self.good_half_hour = Some(since.as_secs() / HALF_HOUR.as_secs());
        }
    }

    /// Applies what time alone changes: recovery for minutes and half-hours that are over, and forgetting.
    pub(super) fn apply_recovery(&mut self, now: Instant) {
        if self.backoff_level > 0
            && let Some(from) = self.recover_from
        {
            let since = now.saturating_duration_since(from).as_secs();
            if self
                .good_minute
                .is_some_and(|minute| minute < since / MINUTE.as_secs())
            {
                self.good_minute = None;
                let most = ceiling(self.backoff_level);
                self.rate = (self.rate + RECOVERY).min(most).max(self.rate);
            }
            if self
                .good_half_hour
                .is_some_and(|half_hour| half_hour < since / HALF_HOUR.as_secs())
            {
                self.good_half_hour = None;
                self.backoff_level -= 1;
                if self.backoff_level == 0 {
                    self.full_rate();
                }
            }
        }
        let last = self
            .last_start
            .max(self.last_without_permit)
            .max(self.apis.last_start())
            .max(self.pause_until);
        if self.under_way() == 0
            && last.is_some_and(|last| now.saturating_duration_since(last) >= FORGOTTEN_AFTER)
        {
            self.apis.forget_runs();
            *self = Self {
                last_start: self.last_start,
                last_without_permit: self.last_without_permit,
                last_end: self.last_end,
                started: self.started,
                crawl_delays: std::mem::take(&mut self.crawl_delays),
                apis: std::mem::take(&mut self.apis),
                epoch: self.epoch,
                last_epoch: self.last_epoch,
                ..Self::default()
            };
        }
    }

    fn full_rate(&mut self) {
        self.rate = 1.0;
        self.learnt = Duration::ZERO;
        self.recover_from = None;
        self.good_minute = None;
        self.good_half_hour = None;
    }

    pub(super) fn new_epoch(&mut self, now: Instant) {
        self.epoch += 1;
        self.last_epoch = Some(now);
    }
}

/// How far minutes alone bring the rate back at this backoff level.
pub(super) fn ceiling(backoff_level: u32) -> f64 {
    CEILING * 0.5_f64.powi(backoff_level.clamp(1, 64) as i32 - 1)
}
