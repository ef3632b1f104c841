use proptest::prelude::*;

use super::*;
use crate::decide::host::{HostPolicy, HostResponse, ResponseRecord, Signal, StartOptions};

const SECOND: Duration = Duration::from_secs(1);

fn start() -> Now {
    Now {
        // Far enough from the clock's beginning for everything below.
        monotonic: Instant::now() + Duration::from_secs(40 * 24 * 3_600),
        wall: SystemTime::UNIX_EPOCH + Duration::from_millis(1_796_076_000_123),
    }
}

fn on(now: Now, span: Duration) -> Now {
    Now {
        monotonic: now.monotonic + span,
        wall: now.wall + span,
    }
}

fn policy() -> HostPolicy {
    HostPolicy::new().jitter(0.0, 0.0)
}

fn answer(signal: Signal, wait: Option<Duration>) -> HostResponse {
    let mut answer = HostResponse::failure();
    answer.signal = signal;
    answer.wait = wait;
    answer
}

/// One request from its start to its end.
fn ask(state: &mut HostState, now: Now, answer: HostResponse) {
    state.reserve();
    state.start(now.monotonic);
    let received = ResponseRecord::new(now.monotonic, answer, true, 0.0);
    state.record_response(&policy(), now.monotonic, &received);
    state.finish(now.monotonic);
}

fn throttled(now: Now, wait: u64) -> HostState {
    let mut state = HostState::new();
    let wait = Some(Duration::from_secs(wait));
    ask(&mut state, now, answer(Signal::Throttled, wait));
    state
}

/// As if the process had been killed when `written` was synced and started again at `now`.
fn restarted(state: &mut HostState, written: Now, now: Now) -> HostState {
    let record = state.to_record(written).unwrap();
    let record = HostRecord::decode(&record.encode()).unwrap();
    let mut next = HostState::new();
    next.recall(&record, now);
    next
}

fn left(state: &mut HostState, now: Now) -> Duration {
    state.due(&policy(), now.monotonic, StartOptions::pace()) - now.monotonic
}

#[test]
fn the_pause_goes_on_where_it_was() {
    let now = start();
    let mut state = throttled(now, 60);
    let soon = on(now, 20 * SECOND);
    let mut next = restarted(&mut state, now, soon);
    assert_eq!(left(&mut next, soon), 40 * SECOND);
    let over = on(now, 60 * SECOND);
    let mut next = restarted(&mut state, now, over);
    assert_eq!(left(&mut next, over), Duration::ZERO);
    // Slower afterwards, as without the restart.
    let delay = |state: &mut HostState| state.delay(&policy(), over.monotonic);
    assert_eq!(delay(&mut next), 2 * SECOND);
    assert_eq!(delay(&mut next), delay(&mut state));
}

#[test]
fn a_clock_set_back_never_shortens_and_never_adds_more_than_the_pause_was() {
    let now = start();
    let mut state = throttled(now, 60);
    for (passed, back, expected) in [(30, 10, 40), (30, 30, 60), (30, 5_000, 60), (90, 50, 20)] {
        let mut then = on(now, passed * SECOND);
        then.wall -= back * SECOND;
        let mut next = restarted(&mut state, now, then);
        assert_eq!(left(&mut next, then), expected * SECOND, "{passed} {back}");
        let record = state.to_record(now).unwrap();
        assert_eq!(record.is_from_the_future(then.wall), back > passed);
    }
}

#[test]
fn a_clock_set_forward_counts_as_time() {
    let now = start();
    let mut state = throttled(now, 60);
    let mut then = on(now, 10 * SECOND);
    then.wall += 20 * SECOND;
    let mut next = restarted(&mut state, now, then);
    assert_eq!(left(&mut next, then), 30 * SECOND);
    then.wall += Duration::from_secs(3_600);
    let mut next = restarted(&mut state, now, then);
    assert_eq!(left(&mut next, then), Duration::ZERO);
    assert_eq!(next.backoff.level, 1);
}

#[test]
fn recovery_needs_successes_after_a_restart_too() {
    let now = start();
    let mut state = throttled(now, 60);
    let later = on(now, Duration::from_secs(5 * 3_600 + 600));
    let mut next = restarted(&mut state, now, later);
    assert_eq!((next.backoff.level, next.backoff.rate), (1, 0.5));
    next.apply_recovery(later.monotonic);
    assert_eq!(
        (next.backoff.level, next.backoff.rate),
        (1, 0.5),
        "time alone"
    );
    ask(&mut next, later, answer(Signal::Success, None));
    next.apply_recovery(on(later, 61 * SECOND).monotonic);
    assert_eq!((next.backoff.level, next.backoff.rate), (1, 0.6));
}

#[test]
fn what_is_over_needs_no_record() {
    let now = start();
    let mut state = HostState::new();
    ask(&mut state, now, answer(Signal::Success, None));
    assert_eq!(state.to_record(now), None);
    // A pause without backoff is kept to its end.
    let wait = Some(60 * SECOND);
    ask(&mut state, now, answer(Signal::Neutral, wait));
    let record = state.to_record(now).unwrap();
    assert_eq!(record.over_at(), now.wall + 60 * SECOND);
    assert_eq!(state.to_record(on(now, 60 * SECOND)), None);
    // A backoff level for a day after its pause.
    let mut state = throttled(now, 60);
    let record = state.to_record(now).unwrap();
    assert_eq!(record.paused_until(), now.wall + 60 * SECOND);
    let day = Duration::from_secs(24 * 3_600);
    assert!(record.over_at() >= now.wall + day + 60 * SECOND);
    assert!(state.to_record(on(now, day)).is_some());
    assert_eq!(state.to_record(on(now, day + 60 * SECOND)), None);
}

#[test]
fn the_mark_differs_when_there_is_something_to_write() {
    let now = start();
    let mut state = throttled(now, 60);
    let first = state.mark(now.monotonic);
    assert_eq!(state.mark(now.monotonic), first);
    let over = on(now, 60 * SECOND);
    let paused_no_more = state.mark(over.monotonic);
    assert_ne!(paused_no_more, first);
    ask(&mut state, over, answer(Signal::Success, None));
    assert_eq!(state.mark(over.monotonic), paused_no_more, "nothing yet");
    assert_ne!(
        state.mark(on(over, 61 * SECOND).monotonic),
        paused_no_more,
        "a minute well"
    );
    // It is written at least once in each hour in which it is asked.
    let mut state = throttled(now, 60);
    let hour = on(over, Duration::from_secs(3_700));
    let before = state.mark(hour.monotonic);
    assert_eq!(before, paused_no_more);
    ask(&mut state, hour, answer(Signal::Neutral, None));
    assert_ne!(state.mark(hour.monotonic), before);
}

#[test]
fn nothing_that_is_cut_or_longer_or_senseless_is_read() {
    let now = start();
    let whole = throttled(now, 60).to_record(now).unwrap().encode();
    for end in 0..whole.len() {
        assert!(HostRecord::decode(&whole[..end]).is_none(), "{end}");
    }
    assert!(HostRecord::decode(&[&whole[..], b"x"].concat()).is_none());
    let rate_at = 1 + 4 * 12;
    for rate in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        let mut odd = whole.clone();
        odd[rate_at..rate_at + 8].copy_from_slice(&rate.to_bits().to_be_bytes());
        assert!(HostRecord::decode(&odd).is_none(), "{rate}");
    }
}

fn happening() -> impl Strategy<Value = (u64, HostResponse)> {
    let signal = prop_oneof![
        Just(Signal::Success),
        Just(Signal::Neutral),
        Just(Signal::Throttled),
        Just(Signal::Unavailable),
        Just(Signal::Failed),
        Just(Signal::Refused),
    ];
    let wait = prop::option::of((1..100_000_u64).prop_map(Duration::from_secs));
    (0..5_000_u64, signal, wait).prop_map(|(after, signal, wait)| (after, answer(signal, wait)))
}

proptest! {
    #[test]
    fn no_restart_brings_a_start_forward(
        happenings in prop::collection::vec(happening(), 1..30),
        down in 0..200_000_u64,
        back in 0..300_000_u64,
    ) {
        let mut now = start();
        let mut state = HostState::new();
        for (after, answer) in happenings {
            now = on(now, Duration::from_secs(after));
            ask(&mut state, now, answer);
        }
        let Some(record) = state.to_record(now) else {
            return Ok(());
        };
        let mut then = on(now, Duration::from_secs(down));
        then.wall -= Duration::from_secs(back);
        let mut next = HostState::new();
        next.recall(&record, then);
        let own = left(&mut state, then);
        let other = left(&mut next, then);
        // The end of the last body is not kept; it was that of the last start here.
        prop_assert!(other >= own, "{other:?} after a restart, {own:?} without");
        prop_assert!(state.backoff.rate >= next.backoff.rate && state.backoff.level <= next.backoff.level);
        let longest = record.pause.max(Duration::from_secs(3_600));
        prop_assert!(other <= longest, "{other:?} of {longest:?}");
    }

    #[test]
    fn no_bytes_break_the_reader(bytes: Vec<u8>, place in 0_usize..200, byte: u8) {
        let _ = HostRecord::decode(&bytes);
        let now = start();
        let mut damaged = throttled(now, 60).to_record(now).unwrap().encode();
        let place = place % damaged.len();
        damaged[place] = byte;
        if let Some(record) = HostRecord::decode(&damaged) {
            let mut state = HostState::new();
            state.recall(&record, now);
            let _ = state.due(&policy(), now.monotonic, StartOptions::pace());
            let _ = (record.over_at(), state.to_record(now));
        }
    }
}
