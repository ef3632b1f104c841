//! What a response changes about its host: whether it slows it down, pauses it, or continues a run.

use std::time::{Duration, Instant};

use super::policy::{HostPolicy, LONGEST_PAUSE};
use super::response::HostResponse;
use super::runs::Runs;
use super::signal::Signal;
use super::state::HostState;

/// The first pause of a client that is blocked; each further refusal doubles it, to an hour. It is the first pause after a
/// 429 without Retry-After: a refusal asks for nothing shorter.
const BLOCKED_PAUSE: Duration = Duration::from_secs(60);

/// The failures in a row, other than 503, that pause a host: a single one may be chance.
const FAILURES_BEFORE_PAUSE: u32 = 2;

/// A response, or the lack of one, as the sender of the request saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ResponseRecord {
    /// When the request was started.
    pub started: Instant,
    /// What came back.
    pub response: HostResponse,
    /// Whether it was a page, or an API's response; robots.txt is neither.
    pub page: bool,
    /// The number of the API that responded, if it has a limit of its own.
    pub api: Option<u64>,
    /// Whether the time since the start is the site's latency, and not also that of queues further in.
    pub timed: bool,
    /// A number from 0 to 1, drawn anew for each response, that decides the share added to a pause.
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

    /// The same where the time that the site itself took is not known.
    #[must_use]
    pub fn untimed(mut self) -> Self {
        self.timed = false;
        self
    }

    /// The same from the API `number`: its responses in a row are counted apart from those of pages, and it does not make
    /// the delay between pages shorter.
    #[must_use]
    pub fn of_api(mut self, number: Option<u64>) -> Self {
        self.api = number;
        self
    }
}

impl HostState {
    /// Records what came back. It is not idempotent: a response that is recorded twice counts twice in latency and runs.
    pub fn record_response(&mut self, policy: &HostPolicy, now: Instant, record: &ResponseRecord) {
        self.apply_recovery(now);
        if record.timed {
            let may_fall =
                record.page && record.api.is_none() && record.response.counts_for_latency;
            let latency = now.saturating_duration_since(record.started);
            self.latency.measure(latency, may_fall);
        }
        let late = self.backoff.is_late(record.started);
        if record.page && !late {
            self.end_runs(policy, now, record);
        }
        match record.response.signal {
            Signal::Throttled => self.throttled(policy, now, late, record),
            Signal::Unavailable | Signal::Failed => self.failed(policy, now, late, record),
            Signal::Refused => {
                if record.page {
                    self.refused(policy, now, late, record);
                }
                self.pause_as_asked(policy, now, record);
            }
            Signal::Success => {
                if record.page && !late {
                    self.backoff.recovery.succeeded(now, record.started);
                }
                self.pause_as_asked(policy, now, record);
            }
            Signal::Neutral => self.pause_as_asked(policy, now, record),
        }
    }

    fn throttled(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        late: bool,
        record: &ResponseRecord,
    ) {
        if !late {
            self.back_off(policy, now);
        }
        let default = doubled(policy.default_pause, self.backoff.level);
        let pause = record.response.wait.unwrap_or(default);
        self.pause_and_recover(policy, now, pause, record);
    }

    fn failed(&mut self, policy: &HostPolicy, now: Instant, late: bool, record: &ResponseRecord) {
        let unavailable = record.response.signal == Signal::Unavailable;
        let runs = self.runs_of(record);
        if !late {
            runs.failures = runs.failures.saturating_add(1);
        }
        let in_a_row = runs.failures >= FAILURES_BEFORE_PAUSE || late && runs.failed_pauses > 0;
        if !unavailable && !in_a_row {
            return self.pause_as_asked(policy, now, record);
        }
        if !late {
            runs.failed_pauses = runs.failed_pauses.saturating_add(1);
        }
        let default = doubled(policy.default_pause_503, runs.failed_pauses);
        if !late {
            self.back_off(policy, now);
        }
        let pause = match record.response.wait {
            Some(wait) if unavailable => wait,
            Some(wait) => wait.max(default),
            None => default,
        };
        self.pause_and_recover(policy, now, pause, record);
    }

    fn refused(&mut self, policy: &HostPolicy, now: Instant, late: bool, record: &ResponseRecord) {
        let runs = self.runs_of(record);
        if !late {
            runs.refusals = runs.refusals.saturating_add(1);
        }
        if runs.refusals < policy.blocked_after.get() {
            return;
        }
        if !late {
            runs.blocks = runs.blocks.saturating_add(1);
        }
        let pause = doubled(BLOCKED_PAUSE, runs.blocks);
        if !late {
            self.back_off(policy, now);
        }
        self.pause_and_recover(policy, now, pause, record);
    }

    /// One backoff level more, and what is learnt at the first.
    fn back_off(&mut self, policy: &HostPolicy, now: Instant) {
        if self.backoff.level == 0 {
            let starts = self.starts.in_second_before(now);
            self.backoff
                .learn(starts, self.latency, policy.max_in_flight);
        }
        let (delay, _) = self.base_delay(policy, now);
        self.backoff.raise(now, delay);
        self.pause.new_epoch(now);
    }

    /// A pause that slows the host: successes count from its end.
    fn pause_and_recover(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        wait: Duration,
        record: &ResponseRecord,
    ) {
        let end = self.pause.extend(policy, now, wait, record.jitter);
        self.backoff.recovery.from = Some(end);
    }

    /// A pause without backoff.
    fn pause_as_asked(&mut self, policy: &HostPolicy, now: Instant, record: &ResponseRecord) {
        if let Some(wait) = record.response.wait {
            self.pause.extend(policy, now, wait, record.jitter);
        }
    }

    /// A response ends the runs that it does not continue.
    fn end_runs(&mut self, policy: &HostPolicy, now: Instant, record: &ResponseRecord) {
        let blocked = self.is_blocked(policy);
        self.runs_of(record).end_with(record.response.signal);
        if blocked && !self.is_blocked(policy) {
            self.pause.new_epoch(now);
        }
    }

    /// The runs of the part of the host that responded.
    fn runs_of(&mut self, record: &ResponseRecord) -> &mut Runs {
        match record.api.and_then(|number| self.apis.get_mut(number)) {
            Some(api) => &mut api.runs,
            None => &mut self.runs,
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
