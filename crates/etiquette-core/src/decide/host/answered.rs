//! What an answer says about its host: whether it slows it down, pauses it, or continues a run.

use std::time::{Duration, Instant};

use super::HostState;
use super::classify::{HostResponse, Signal};
use super::policy::{HostPolicy, LONGEST_PAUSE};
use super::runs::Runs;

/// The first pause of a client that is blocked; each further refusal doubles it.
const BLOCKED_PAUSE: Duration = Duration::from_secs(60);

/// An answer as the one who sent the request saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResponseRecord {
    /// When the request was started.
    pub started: Instant,
    /// What came back.
    pub response: HostResponse,
    /// Whether it was a page, or an API's answer; robots.txt is neither.
    pub page: bool,
    /// The number of the API that answered, if it has a limit of its own.
    pub api: Option<u64>,
    /// Whether the time since the start is the site's latency, and not also that of other lines further in.
    pub timed: bool,
    /// A number from 0 to 1, drawn anew for each answer, that decides the share added to a pause.
    pub jitter: f64,
}

impl ResponseRecord {
    /// What came back for a page that was started at `started`.
    #[must_use]
    pub fn new(started: Instant, response: HostResponse, page: bool, jitter: f64) -> Self {
        Self {
            started,
            response,
            page,
            api: None,
            timed: true,
            jitter,
        }
    }

    /// The same from one who does not know how long the site itself took.
    #[must_use]
    pub fn untimed(mut self) -> Self {
        self.timed = false;
        self
    }

    /// The same from the API `number`: what it answers in a row is counted apart from pages, and it does not make the delay
    /// between pages shorter.
    #[must_use]
    pub fn of_api(mut self, number: Option<u64>) -> Self {
        self.api = number;
        self
    }
}

impl HostState {
    /// Records what came back. Recording it twice changes nothing but the latency and the runs, so do not.
    pub fn record_response(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        received: &ResponseRecord,
    ) {
        self.apply_recovery(now);
        if received.timed {
            self.measure(now.saturating_duration_since(received.started), received);
        }
        // The request left before the last backoff: it tells nothing new about the pace since.
        let late = self
            .last_backoff
            .is_some_and(|backoff| received.started <= backoff);
        if received.page && !late {
            self.end_runs(policy, now, received);
        }
        let answer = received.response;
        match answer.signal {
            Signal::Throttled => {
                if !late {
                    self.back_off(policy, now);
                }
                let pause = answer
                    .wait
                    .unwrap_or_else(|| doubled(policy.default_pause, self.backoff_level));
                self.pause(policy, now, pause, received.jitter, true);
            }
            Signal::Unavailable | Signal::Failed => {
                self.failed(policy, now, late, received);
            }
            Signal::Refused => {
                if received.page {
                    self.refused(policy, now, late, received);
                }
                self.pause_as_asked(policy, now, received);
            }
            Signal::Success | Signal::Neutral => {
                if answer.signal == Signal::Success && received.page && !late {
                    self.succeeded(now, received.started);
                }
                self.pause_as_asked(policy, now, received);
            }
        }
    }

    /// A pause without backoff.
    fn pause_as_asked(&mut self, policy: &HostPolicy, now: Instant, received: &ResponseRecord) {
        if let Some(wait) = received.response.wait {
            self.pause(policy, now, wait, received.jitter, false);
        }
    }

    fn failed(&mut self, policy: &HostPolicy, now: Instant, late: bool, received: &ResponseRecord) {
        let unavailable = received.response.signal == Signal::Unavailable;
        let runs = self.runs_of(received);
        if !late {
            runs.failures = runs.failures.saturating_add(1);
        }
        // A single failure other than 503 may be chance.
        let pauses = unavailable || runs.failures >= 2 || late && runs.failed_pauses > 0;
        if pauses {
            if !late {
                runs.failed_pauses = runs.failed_pauses.saturating_add(1);
            }
            let default = doubled(policy.default_pause_503, runs.failed_pauses);
            if !late {
                self.back_off(policy, now);
            }
            let pause = match received.response.wait {
                Some(wait) if unavailable => wait,
                Some(wait) => wait.max(default),
                None => default,
            };
            self.pause(policy, now, pause, received.jitter, true);
        } else {
            self.pause_as_asked(policy, now, received);
        }
    }

    fn refused(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        late: bool,
        received: &ResponseRecord,
    ) {
        let runs = self.runs_of(received);
        if !late {
            runs.refusals = runs.refusals.saturating_add(1);
        }
        if runs.refusals >= policy.blocked_after.get() {
            if !late {
                runs.blocks = runs.blocks.saturating_add(1);
            }
            let pause = doubled(BLOCKED_PAUSE, runs.blocks);
            if !late {
                self.back_off(policy, now);
            }
            self.pause(policy, now, pause, received.jitter, true);
        }
    }

    /// An answer ends the runs that it does not continue.
    fn end_runs(&mut self, policy: &HostPolicy, now: Instant, received: &ResponseRecord) {
        let blocked = self.is_blocked(policy);
        self.runs_of(received).end_with(received.response.signal);
        if blocked && !self.is_blocked(policy) {
            self.new_epoch(now);
        }
    }

    /// The runs of the part of the host that answered.
    fn runs_of(&mut self, received: &ResponseRecord) -> &mut Runs {
        match received.api.and_then(|number| self.apis.get_mut(number)) {
            Some(api) => &mut api.runs,
            None => &mut self.runs,
        }
    }

    /// The latency goes up at once and down by half; only pages that were served bring it down.
    fn measure(&mut self, latency: Duration, received: &ResponseRecord) {
        if latency > self.latency {
            self.latency = latency;
        } else if received.page && received.api.is_none() && received.response.counts_for_latency {
            self.latency = (self.latency + latency) / 2;
        }
    }
}

/// `first` × 2^(`times` − 1), at most an hour, or `first` if that is longer.
fn doubled(first: Duration, times: u32) -> Duration {
    let factor = 1_u32
        .checked_shl(times.saturating_sub(1))
        .unwrap_or(u32::MAX);
    let factor = if times > 32 { u32::MAX } else { factor };
    first.saturating_mul(factor).min(LONGEST_PAUSE.max(first))
}
