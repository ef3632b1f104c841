use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::*;
use crate::decide::host::{
    HostPolicy, HostResponse, HostState, ResponseRecord, Signal, StartOptions,
};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// 5,000 an hour, ten of them at once after idleness, four under way.
fn api() -> ApiQuota {
    let limit = ApiLimit::new(number(5_000), Duration::from_secs(3_600))
        .burst(number(10))
        .max_in_flight(number(4));
    ApiQuota::new(1, limit)
}

/// A host and a clock that the test turns. Instants are told in milliseconds since the start.
struct Bench {
    policy: HostPolicy,
    state: HostState,
    start: Instant,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let start = Instant::now();
        Self {
            policy: HostPolicy::new().latency_factor(0).jitter(0.0, 0.0),
            state: HostState::new(),
            start,
            now: start,
        }
    }

    fn at(&mut self, millis: u64) {
        self.now = self.start + Duration::from_millis(millis);
    }

    fn decide(&mut self, api: ApiQuota) -> Decision {
        self.state
            .decide(&self.policy, self.now, StartOptions::api(api))
    }

    /// Waits for its turn, starts, and ends at once; when that was.
    fn visit(&mut self, api: ApiQuota, signal: Signal, wait: Option<u64>) -> u128 {
        match self.decide(api) {
            Decision::Admit => {}
            Decision::Wait(due) => {
                self.now = due;
                assert_eq!(self.decide(api), Decision::Admit);
            }
            other => panic!("{other:?}"),
        }
        self.state.reserve_api(api);
        self.state.start_api(self.now, api);
        let answer = HostResponse {
            signal,
            wait: wait.map(Duration::from_secs),
            ..HostResponse::failure()
        };
        let received = ResponseRecord::new(self.now, answer, true, 0.0).of_api(Some(api.number));
        self.state
            .record_response(&self.policy, self.now, &received);
        self.state.finish_api(api.number);
        (self.now - self.start).as_millis()
    }

    fn visits(&mut self, api: ApiQuota, times: usize) -> Vec<u128> {
        (0..times)
            .map(|_| self.visit(api, Signal::Success, None))
            .collect()
    }
}

#[test]
fn a_burst_and_then_evenly_spaced() {
    let mut bench = Bench::new();
    let starts = bench.visits(api(), 13);
    assert_eq!(starts[..10], [0; 10]);
    assert_eq!(starts[10..], [720, 1_440, 2_160]);
    // Three tokens later, and a third of one that counts.
    bench.at(2_160 + 3 * 720 + 240);
    let starts = bench.visits(api(), 4);
    assert_eq!(starts, [4_560, 4_560, 4_560, 2_160 + 4 * 720]);
}

#[test]
fn what_does_not_divide_evenly_is_never_faster_than_documented() {
    let mut bench = Bench::new();
    let limit = ApiLimit::new(number(7), Duration::from_secs(3_600));
    let api = ApiQuota::new(1, limit);
    assert_eq!(limit.interval(), Duration::from_nanos(514_285_714_286));
    bench.visits(api, 7_001);
    let exact = Duration::from_secs(3_600 * 1_000);
    let taken = bench.now - bench.start;
    assert!(taken >= exact && taken < exact + Duration::from_micros(10));
}

#[test]
fn permits_are_its_own() {
    let mut bench = Bench::new();
    let api = api();
    for _ in 0..4 {
        assert_eq!(bench.decide(api), Decision::Admit);
        bench.state.reserve_api(api);
        bench.state.start_api(bench.now, api);
    }
    assert_eq!(bench.decide(api), Decision::Full(bench.now));
    let page = bench
        .state
        .decide(&bench.policy, bench.now, StartOptions::pace());
    assert_eq!(page, Decision::Admit, "pages have permits of their own");
    bench.state.finish_api(api.number);
    assert_eq!(bench.decide(api), Decision::Admit);
    assert_eq!(bench.state.api_in_flight(api.number), 3);
    assert_eq!(bench.state.started(), 4);
}

#[test]
fn neither_takes_what_the_other_waits_for() {
    let mut bench = Bench::new();
    bench.visits(api(), 12);
    let page = bench
        .state
        .decide(&bench.policy, bench.now, StartOptions::pace());
    assert_eq!(page, Decision::Admit, "an API's requests take no delay");
    bench.state.reserve();
    bench.state.start(bench.now);
    bench.state.finish(bench.now);
    let spent = bench.now + millis(720);
    assert_eq!(bench.decide(api()), Decision::Wait(spent));
    bench.at(60_000);
    bench.state.reserve();
    bench.state.start(bench.now);
    bench.state.finish(bench.now);
    assert_eq!(bench.visits(api(), 10), [60_000; 10], "nor pages a token");
}

#[test]
fn a_token_that_is_promised_is_not_given_twice() {
    let mut bench = Bench::new();
    let limit = ApiLimit::new(number(1), Duration::from_secs(1))
        .burst(number(2))
        .max_in_flight(number(9));
    let api = ApiQuota::new(1, limit);
    bench.state.reserve_api(api);
    assert_eq!(bench.decide(api), Decision::Admit);
    bench.state.reserve_api(api);
    assert_eq!(bench.decide(api), Decision::Full(bench.now));
    bench.state.unreserve_api(api.number);
    assert_eq!(bench.decide(api), Decision::Admit, "it was not used");
    bench.state.reserve_api(api);
    bench.state.start_api(bench.now, api);
    bench.state.start_api(bench.now, api);
    let due = bench.now + Duration::from_secs(1);
    assert_eq!(bench.decide(api), Decision::Wait(due));
}

#[test]
fn two_apis_of_a_host_have_a_bucket_each_and_one_pause() {
    let mut bench = Bench::new();
    let other = ApiQuota::new(2, api().limit);
    bench.visits(api(), 10);
    assert_eq!(bench.visits(other, 9), [0; 9]);
    bench.visit(other, Signal::Throttled, Some(5));
    assert_eq!(bench.visit(api(), Signal::Success, None), 7_200);
}

#[test]
fn a_429_pauses_pages_too_and_leaves_no_burst() {
    let mut bench = Bench::new();
    bench.at(60_000);
    bench.visit(api(), Signal::Throttled, Some(30));
    let page = bench
        .state
        .decide(&bench.policy, bench.now, StartOptions::pace());
    assert_eq!(page, Decision::Wait(bench.now + Duration::from_secs(30)));
    // One start in the second before: a second is learnt, and the rate is halved.
    assert_eq!(bench.visits(api(), 3), [90_000, 92_000, 94_000]);
    assert_eq!(pace(&bench.state.backoff, api()).rate, 0.5);
}

#[test]
fn a_page_that_backs_off_slows_the_api_too() {
    let mut bench = Bench::new();
    bench.state.reserve();
    bench.state.start(bench.now);
    let answer = HostResponse {
        signal: Signal::Throttled,
        wait: Some(Duration::from_secs(3)),
        ..HostResponse::failure()
    };
    let received = ResponseRecord::new(bench.now, answer, true, 0.0);
    bench
        .state
        .record_response(&bench.policy, bench.now, &received);
    bench.state.finish(bench.now);
    assert_eq!(bench.visits(api(), 3), [3_000, 5_000, 7_000]);
}

#[test]
fn what_a_start_before_the_backoff_owes_is_the_slower_delay() {
    let mut bench = Bench::new();
    let slow = ApiQuota::new(1, ApiLimit::new(number(1), Duration::from_secs(10)));
    bench.visit(slow, Signal::Throttled, Some(1));
    assert_eq!(bench.visits(slow, 2), [20_000, 40_000]);
}

#[test]
fn complaints_for_ever_see_one_request_an_hour() {
    for crawl_delay in [None, Some(Duration::from_secs(300))] {
        let mut bench = Bench::new();
        bench.state.crawl_delay(1, crawl_delay, bench.now);
        let starts: Vec<_> = (0..60)
            .map(|_| bench.visit(api(), Signal::Throttled, Some(5)))
            .collect();
        assert!(starts[59] - starts[58] >= 3_600_000, "{starts:?}");
        let mut bench = Bench::new();
        bench.state.crawl_delay(1, crawl_delay, bench.now);
        let starts: Vec<_> = (0..60)
            .map(|_| bench.visit(api(), Signal::Refused, None))
            .collect();
        assert!(starts[59] - starts[58] >= 3_600_000, "{starts:?}");
    }
}

#[test]
fn an_api_that_works_does_not_let_refused_pages_in_again() {
    let mut bench = Bench::new();
    for _ in 0..10 {
        let due = bench
            .state
            .due(&bench.policy, bench.now, StartOptions::pace());
        bench.now = due;
        bench.state.reserve();
        bench.state.start(bench.now);
        let answer = HostResponse {
            signal: Signal::Refused,
            ..HostResponse::failure()
        };
        let received = ResponseRecord::new(bench.now, answer, true, 0.0);
        bench
            .state
            .record_response(&bench.policy, bench.now, &received);
        bench.state.finish(bench.now);
        bench.visit(api(), Signal::Success, None);
    }
    assert!(bench.state.is_blocked(&bench.policy));
}

#[test]
fn the_burst_is_back_with_the_full_rate() {
    let mut bench = Bench::new();
    bench.visit(api(), Signal::Throttled, Some(1));
    bench.at(600_000);
    bench.visit(api(), Signal::Success, None);
    bench.at(2_400_000);
    assert_eq!(bench.visits(api(), 10), [2_400_000; 10]);
    assert_eq!(bench.visit(api(), Signal::Success, None), 2_400_720);
}

#[test]
fn a_bucket_that_is_full_is_forgotten() {
    let mut bench = Bench::new();
    let page = |bench: &mut Bench| {
        bench.state.reserve();
        bench.state.start(bench.now);
        bench.state.finish(bench.now);
    };
    page(&mut bench);
    bench.visits(api(), 3);
    bench.at(2_159);
    assert!(!bench.state.is_forgettable(&bench.policy, bench.now, true));
    assert_eq!(bench.state.pack(bench.start, bench.now), None);
    bench.at(2_160);
    assert!(!bench.state.owes_api(bench.now, 1, false));
    assert!(bench.state.pack(bench.start, bench.now).is_some());
    assert!(bench.state.is_forgettable(&bench.policy, bench.now, false));
    let mut bench = Bench::new();
    bench.visit(api(), Signal::Failed, None);
    bench.at(3_600_000);
    assert!(
        bench.state.owes_api(bench.now, 1, false),
        "a failure is known"
    );
    assert!(!bench.state.owes_api(bench.now, 1, true));
}

#[test]
fn what_idleness_saved_shortens_the_wait_of_those_behind() {
    let mut bench = Bench::new();
    assert_eq!(bench.state.saved_up(bench.now, api()), millis(9 * 720));
    bench.visits(api(), 4);
    assert_eq!(bench.state.saved_up(bench.now, api()), millis(5 * 720));
    bench.state.reserve_api(api());
    assert_eq!(bench.state.saved_up(bench.now, api()), millis(4 * 720));
    bench.visits(api(), 1);
    bench.at(1_000_000);
    assert_eq!(bench.state.saved_up(bench.now, api()), millis(8 * 720));
}

#[test]
fn the_stricter_of_policy_and_limit() {
    let policy = HostPolicy::new().max_in_flight(number(8));
    let within = policy.within(api().limit);
    assert_eq!(within.get_max_in_flight(), number(4));
    assert_eq!(within.get_min_delay(), Duration::from_secs(1));
    let slow = ApiLimit::new(number(60), Duration::from_secs(3_600));
    let within = HostPolicy::new().within(slow);
    assert_eq!(within.get_max_in_flight(), number(1));
    assert_eq!(within.get_min_delay(), Duration::from_secs(60));
}
