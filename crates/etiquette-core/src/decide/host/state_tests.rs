use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::*;
use crate::decide::host::{HostPolicy, HostResponse, PaceReason, ResponseRecord, Signal};

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A host and a clock that the test turns.
struct Bench {
    policy: HostPolicy,
    state: HostState,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let policy = HostPolicy::new().latency_factor(0).jitter(0.0, 0.0);
        Self {
            policy,
            state: HostState::new(),
            now: Instant::now(),
        }
    }

    fn wait_until_due(&mut self) -> Duration {
        let due = self.state.due(&self.policy, self.now, StartOptions::pace());
        let waited = due - self.now;
        self.now = due;
        waited
    }

    /// A request at once, answered at once.
    fn visit(&mut self, signal: Signal, wait: Option<u64>) {
        self.state.reserve();
        self.state.start(self.now);
        let answer = HostResponse {
            wait: wait.map(seconds),
            ..answer(signal)
        };
        let received = ResponseRecord::new(self.now, answer, true, 0.0);
        self.state
            .record_response(&self.policy, self.now, &received);
        self.state.finish(self.now);
    }

    /// The wait until the next request may start, which is then made.
    fn next(&mut self, signal: Signal, wait: Option<u64>) -> u64 {
        let waited = self.wait_until_due();
        self.visit(signal, wait);
        waited.as_secs()
    }

    fn delay(&mut self) -> Duration {
        self.state.delay(&self.policy, self.now)
    }
}

fn answer(signal: Signal) -> HostResponse {
    HostResponse {
        signal,
        counts_for_latency: signal == Signal::Success,
        ..HostResponse::failure()
    }
}

#[test]
fn pauses_without_a_value_double_to_an_hour() {
    let mut bench = Bench::new();
    bench.visit(Signal::Throttled, None);
    let waits: Vec<_> = (0..9)
        .map(|_| bench.next(Signal::Throttled, None))
        .collect();
    assert_eq!(waits, [60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600]);
}

#[test]
fn a_value_is_a_floor_under_a_rate_that_falls() {
    let mut bench = Bench::new();
    bench.visit(Signal::Throttled, Some(5));
    let waits: Vec<_> = (0..13)
        .map(|_| bench.next(Signal::Throttled, Some(5)))
        .collect();
    assert_eq!(waits[..4], [5, 5, 8, 16]);
    assert_eq!(
        waits[11..],
        [3_600, 3_600],
        "one request an hour in the end"
    );
}

#[test]
fn a_burst_backs_off_once_and_extends_only() {
    let mut bench = Bench::new();
    let started = bench.now;
    for _ in 0..8 {
        bench.state.reserve();
        bench.state.start(started);
    }
    bench.now += seconds(1);
    for wait in [20, 2, 5] {
        let answer = HostResponse {
            wait: Some(seconds(wait)),
            ..answer(Signal::Throttled)
        };
        let received = ResponseRecord::new(started, answer, true, 0.0);
        bench
            .state
            .record_response(&bench.policy, bench.now, &received);
    }
    let until = bench.state.paused_until(bench.now);
    assert_eq!(until, Some(bench.now + seconds(20)));
    assert_eq!(bench.state.backoff_level(), 1);
}

#[test]
fn only_success_brings_the_rate_back() {
    let mut bench = Bench::new();
    bench.visit(Signal::Throttled, Some(5));
    bench.wait_until_due();
    assert_eq!(bench.delay(), seconds(2));
    bench.now += seconds(7_200);
    assert_eq!(bench.delay(), seconds(2), "time alone does nothing");

    for minute in 1..=4 {
        bench.visit(Signal::Success, None);
        bench.now += seconds(60);
        let rate = bench.state.pace(&bench.policy, bench.now).rate;
        assert!(
            (rate - (0.5 + 0.1 * f64::from(minute))).abs() < 1e-9,
            "{rate}"
        );
    }
    bench.visit(Signal::Success, None);
    bench.now += seconds(60);
    let rate = bench.state.pace(&bench.policy, bench.now).rate;
    assert!(
        (rate - 0.9).abs() < 1e-9,
        "not the full rate before a half-hour: {rate}"
    );
    bench.now += seconds(1_800);
    assert_eq!(bench.delay(), seconds(1));
    assert_eq!(bench.state.backoff_level(), 0);
}

#[test]
fn each_good_half_hour_lowers_the_backoff_by_one_and_doubles_the_ceiling() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.wait_until_due();
        bench.visit(Signal::Throttled, Some(5));
    }
    bench.wait_until_due();
    let mut ceilings = Vec::new();
    for _ in 0..3 {
        for _ in 0..30 {
            bench.visit(Signal::Success, None);
            bench.now += seconds(60);
        }
        ceilings.push(bench.state.pace(&bench.policy, bench.now).rate);
    }
    assert!((ceilings[0] - 0.225).abs() < 1e-9, "{ceilings:?}");
    assert!((ceilings[1] - 0.45).abs() < 1e-9, "{ceilings:?}");
    assert!(
        (ceilings[2] - 0.9).abs() < 1e-9 || ceilings[2] == 1.0,
        "{ceilings:?}"
    );
}

#[test]
fn one_failure_is_chance_and_two_are_a_pause() {
    let mut bench = Bench::new();
    bench.visit(Signal::Failed, None);
    assert_eq!(bench.state.paused_until(bench.now), None);
    assert_eq!(bench.next(Signal::Failed, None), 1);
    assert_eq!(bench.next(Signal::Failed, None), 30);
    assert_eq!(bench.next(Signal::Success, None), 60);
    bench.wait_until_due();
    bench.visit(Signal::Failed, None);
    assert_eq!(
        bench.state.paused_until(bench.now),
        None,
        "the run was over"
    );
}

#[test]
fn ten_refusals_block_the_client_and_success_lets_it_in_again() {
    let mut bench = Bench::new();
    for _ in 0..9 {
        bench.wait_until_due();
        bench.visit(Signal::Refused, None);
    }
    assert!(!bench.state.is_blocked(&bench.policy));
    let epoch = bench.state.epoch();
    bench.wait_until_due();
    bench.visit(Signal::Refused, None);
    assert!(bench.state.is_blocked(&bench.policy));
    assert!(bench.state.epoch() > epoch);
    let waits: Vec<_> = (0..7).map(|_| bench.next(Signal::Refused, None)).collect();
    assert_eq!(waits, [60, 120, 240, 480, 960, 1_920, 3_600]);
    let epoch = bench.state.epoch();
    bench.next(Signal::Success, None);
    assert!(!bench.state.is_blocked(&bench.policy));
    assert!(
        bench.state.epoch() > epoch,
        "robots.txt is worth a look again"
    );
}

#[test]
fn robots_txt_ends_no_run_and_is_no_success() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        bench.wait_until_due();
        bench.visit(Signal::Refused, None);
    }
    bench.wait_until_due();
    let received = ResponseRecord::new(bench.now, answer(Signal::Success), false, 0.0);
    bench
        .state
        .record_response(&bench.policy, bench.now, &received);
    assert!(bench.state.is_blocked(&bench.policy));
    assert_eq!(bench.state.backoff.recovery.good_minute, None);
}

#[test]
fn a_pause_that_is_asked_for_elsewhere_does_not_back_off() {
    let mut bench = Bench::new();
    bench.visit(Signal::Neutral, Some(30));
    assert_eq!(
        bench.state.paused_until(bench.now),
        Some(bench.now + seconds(30))
    );
    assert_eq!(bench.state.backoff_level(), 0);
    assert_eq!(bench.next(Signal::Success, None), 30);
}

#[test]
fn the_latency_goes_up_at_once_and_down_by_half_with_pages_alone() {
    let mut bench = Bench::new();
    bench.policy = HostPolicy::new();
    let mut answered_after = |latency: u64, signal, page| {
        bench.state.reserve();
        bench.state.start(bench.now);
        let received = ResponseRecord::new(bench.now, answer(signal), page, 0.0);
        bench.now += seconds(latency);
        bench
            .state
            .record_response(&bench.policy, bench.now, &received);
        bench.state.finish(bench.now);
        let pace = bench.state.pace(&bench.policy, bench.now);
        (pace.delay.as_secs(), pace.reason)
    };
    assert_eq!(
        answered_after(2, Signal::Success, true),
        (10, PaceReason::Latency)
    );
    assert_eq!(
        answered_after(0, Signal::Neutral, true).0,
        10,
        "an error may be cheap"
    );
    assert_eq!(
        answered_after(0, Signal::Success, false).0,
        10,
        "robots.txt may be cheap"
    );
    assert_eq!(answered_after(0, Signal::Success, true).0, 5);
    assert_eq!(
        answered_after(100, Signal::Success, true).0,
        30,
        "never more than max_delay"
    );
}

#[test]
fn with_a_short_delay_a_backoff_learns_the_pace_that_was_too_fast() {
    let mut bench = Bench::new();
    bench.policy = bench
        .policy
        .min_delay(Duration::ZERO)
        .max_in_flight(NonZeroU32::new(8).unwrap());
    for _ in 0..7 {
        bench.visit(Signal::Success, None);
    }
    bench.visit(Signal::Throttled, Some(5));
    assert_eq!(bench.delay(), seconds(1) / 8 * 2);
    let reason = bench.state.pace(&bench.policy, bench.now).reason;
    assert_eq!(reason, PaceReason::Learnt);
}

#[test]
fn an_idle_host_is_a_stranger_after_a_day_and_a_busy_one_is_not_forgotten() {
    let mut bench = Bench::new();
    bench.visit(Signal::Throttled, Some(5));
    bench.now += seconds(5);
    bench.now += seconds(24 * 3_600 - 1);
    assert_eq!(bench.delay(), seconds(2));
    assert!(!bench.state.is_forgettable(&bench.policy, bench.now, true));
    bench.now += seconds(1);
    assert_eq!(bench.delay(), seconds(1));
    assert!(bench.state.is_forgettable(&bench.policy, bench.now, false));
}

#[test]
fn what_is_owed_is_not_forgotten() {
    let mut bench = Bench::new();
    bench.state.reserve();
    bench.state.start(bench.now);
    let forgettable = |bench: &mut Bench| {
        let (policy, now) = (bench.policy.clone(), bench.now);
        bench.state.is_forgettable(&policy, now, true)
    };
    assert!(!forgettable(&mut bench), "under way");
    bench.state.finish(bench.now);
    assert!(!forgettable(&mut bench), "within the delay");
    bench.now += seconds(1);
    assert!(forgettable(&mut bench));
}

#[test]
fn extreme_numbers_neither_overflow_nor_shorten() {
    let mut bench = Bench::new();
    bench.policy = bench
        .policy
        .min_delay(Duration::MAX)
        .max_delay(Duration::MAX)
        .latency_factor(u32::MAX)
        .default_pause(Duration::MAX)
        .default_pause_503(Duration::MAX)
        .jitter(f64::MAX, f64::INFINITY);
    for signal in [
        Signal::Throttled,
        Signal::Unavailable,
        Signal::Failed,
        Signal::Refused,
    ] {
        let answer = HostResponse {
            wait: Some(Duration::MAX),
            ..answer(signal)
        };
        let received = ResponseRecord::new(bench.now, answer, true, 1.0);
        bench.now += seconds(1);
        bench
            .state
            .record_response(&bench.policy, bench.now, &received);
    }
    bench.state.start_without_permit(bench.now);
    let due = bench
        .state
        .due(&bench.policy, bench.now, StartOptions::pace());
    assert!(due > bench.now + seconds(1_000_000_000));
}

#[test]
fn the_tail_of_a_pause_that_another_process_tells_of_is_no_new_pause() {
    let mut bench = Bench::new();
    let end = bench.now + seconds(2);
    bench.state.learn_pause(bench.now, end);
    let epoch = bench.state.epoch();
    bench.now = end + Duration::from_millis(1);
    let tail = end + Duration::from_millis(3);
    bench.state.learn_pause(bench.now, tail);
    assert_eq!(bench.state.paused_until(bench.now), Some(tail));
    assert_eq!(bench.state.epoch(), epoch);
    bench.now = tail;
    bench.state.learn_pause(bench.now, tail + seconds(1));
    assert_eq!(bench.state.epoch(), epoch + 1, "that is one of its own");
}
