//! What holds for a host whatever its site answers and its callers do: random timelines on the real layers.
//!
//! 1,000 cases; `ETIQUETTE_CASES=100000` plays as many as it says.

mod api;
#[path = "../compare/src/scale/sim.rs"]
mod sim;

use etiquette_tests::timeline::{Arrangement, Observed, ObservedRequest, Scenario, play};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// Timers have a resolution of one millisecond.
const EPSILON: f64 = 0.003;

const LAYERS: &[&[&str]] = &[
    &["retry_after", "budget"],
    &["budget", "retry_after"],
    &["budget"],
];

#[test]
fn never_sooner_whatever_happens() {
    let mut runner = TestRunner::new(Config {
        cases: cases(1_000),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    });
    let outcome = runner.run(&(timeline(), arrangement()), |(row, arrangement)| {
        let scenario = Scenario::read(&row, &defaults()).map_err(TestCaseError::fail)?;
        let observed = play(&scenario, arrangement).map_err(TestCaseError::fail)?;
        judge(&scenario, &observed)
            .map_err(|why| TestCaseError::fail(format!("{why}, {observed:?}")))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// How many cases are played, unless the environment says otherwise.
fn cases(usual: u32) -> u32 {
    std::env::var("ETIQUETTE_CASES")
        .map(|cases| cases.parse().expect("ETIQUETTE_CASES is a number"))
        .unwrap_or(usual)
}

/// A million with `cargo run --release -p compare -- scale`.
#[test]
fn ten_thousand_hosts_are_owed_nothing() {
    let findings = sim::simulate(10_000);
    assert_eq!(findings.violations, 0, "{findings:?}");
    assert!(findings.used >= 0.98, "{findings:?}");
    let last_delay = findings.last_delay.expect("some sites complain for ever");
    assert!(last_delay.as_secs() >= 3_600, "{findings:?}");
    assert!(
        findings.most_remembered <= 10_000 && findings.days > 0.5,
        "{findings:?}"
    );
    assert!(findings.requests >= 100_000 && findings.first.is_none());
}

fn defaults() -> Value {
    json!({
        "max_in_flight": 1, "min_delay": 1.0, "default_pause": 60, "default_pause_503": 30, "latency": 0.1, "body_time": 0,
        "queue_limit": 40, "latency_scaling": false, "max_wait_user": 10,
    })
}

fn arrangement() -> impl Strategy<Value = Arrangement> {
    let jitter = prop_oneof![Just((0.0, 0.0)), Just((0.1, 0.1)), Just((0.0, 0.1))];
    (0..LAYERS.len(), any::<bool>(), jitter).prop_map(|(layers, shared, jitter)| Arrangement {
        layers: LAYERS[layers],
        shared,
        jitter,
    })
}

/// Quarters of a second, so that many things happen at one instant.
fn moment(until: u32) -> impl Strategy<Value = f64> {
    (0..until * 4).prop_map(|quarters| f64::from(quarters) / 4.0)
}

fn timeline() -> impl Strategy<Value = Value> {
    let config = (
        1..4_u32,
        prop_oneof![Just(0.0), Just(0.25), Just(1.0), Just(3.0)],
        prop_oneof![Just(5), Just(60), Just(3_600)],
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(max_in_flight, min_delay, max_wait, scaling, retry)| {
            json!({
                "max_in_flight": max_in_flight, "min_delay": min_delay, "max_wait": max_wait, "latency_scaling": scaling,
                "auto_retry": retry,
            })
        });
    (
        config,
        prop::collection::vec(submission(), 1..10),
        prop::collection::vec(rule(), 0..8),
        prop::collection::vec(event(), 0..4),
    )
        .prop_map(|(config, submit, origin, events)| {
            json!({
                "id": "random", "config": config, "submit": submit, "origin": origin, "events": events,
                "expect": [],
            })
        })
}

fn host() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("a"), 1 => Just("b")]
}

fn submission() -> impl Strategy<Value = Value> {
    let body = prop_oneof![
        6 => Just(0),
        1 => Just(1),
        1 => Just(2),
    ];
    (moment(60), 1..7_u32, host(), 0..4_u32, body, moment(30)).prop_map(
        |(t, n, host, id, body, until)| {
            let mut row = json!({"t": t, "n": n, "host": host, "id": format!("{id}")});
            if body > 0 {
                row["drop_body_at"] = json!(t + until);
                row["hold_body"] = json!(body == 2);
            }
            row
        },
    )
}

fn rule() -> impl Strategy<Value = Value> {
    let status = prop_oneof![
        1 => Just(200),
        1 => Just(301),
        1 => Just(403),
        1 => Just(404),
        3 => Just(429),
        1 => Just(500),
        2 => Just(503),
    ];
    (
        host(),
        prop::collection::vec(1..25_u32, 1..6),
        status,
        prop::option::of(0..40_u32),
        moment(3),
        moment(3),
        prop::option::weighted(0.1, Just("connect")),
    )
        .prop_map(|(host, arrival, status, wait, latency, body_time, error)| {
            let mut rule = json!({
                "host": host, "arrival": arrival, "status": status, "latency": latency,
                "body_time": body_time,
            });
            if let Some(wait) = wait {
                rule["headers"] = json!({"retry-after": wait.to_string()});
            }
            if let Some(error) = error {
                rule["error"] = json!(error);
            }
            rule
        })
}

fn event() -> impl Strategy<Value = Value> {
    prop_oneof![
        (moment(80), 0..4_u32).prop_map(|(t, id)| json!({"t": t, "cancel": format!("{id}")})),
        (moment(80), -10_000..10_000_i64)
            .prop_map(|(t, seconds)| json!({"t": t, "wall_jump": seconds})),
    ]
}

fn judge(scenario: &Scenario, observed: &Observed) -> Result<(), String> {
    if observed.unfinished > 0 {
        return Err(format!("{} requests hang", observed.unfinished));
    }
    if observed.left != (0, 0) {
        return Err(format!(
            "{:?} are left under way and waiting",
            observed.left
        ));
    }
    for host in ["a", "b"] {
        let arrivals: Vec<_> = observed
            .requests
            .iter()
            .filter(|a| a.host == host)
            .collect();
        pauses_hold(scenario, &arrivals)?;
        delays_hold(scenario, &arrivals)?;
        permits_hold(scenario, &arrivals)?;
        slower_afterwards(scenario, &arrivals)?;
        first_come_first_served(scenario, &arrivals)?;
    }
    Ok(())
}

/// The wait that an answer asks for, if it asks its host to be left alone.
fn asked(
    scenario: &Scenario,
    arrivals: &[&ObservedRequest],
    index: usize,
) -> Option<(f64, f64, u64)> {
    let arrival = arrivals[index];
    let head = arrival.head?;
    let number = index as u64 + 1;
    let rule = scenario.origin.iter().find(|rule| {
        let numbers = rule["arrival"].as_array().expect("rules have numbers");
        rule["host"] == arrival.host.as_str() && numbers.iter().any(|n| *n == number)
    })?;
    let status = u64::from(arrival.status);
    let wait: f64 = rule["headers"]["retry-after"]
        .as_str()
        .map_or(0.0, |wait| wait.parse().expect("a number"));
    let wait = match status {
        429 if wait == 0.0 => 60.0,
        503 if wait == 0.0 => 30.0,
        _ => wait,
    };
    (status >= 300 && wait > 0.0).then_some((head, wait, status))
}

fn pauses_hold(scenario: &Scenario, arrivals: &[&ObservedRequest]) -> Result<(), String> {
    for index in 0..arrivals.len() {
        let Some((head, wait, status)) = asked(scenario, arrivals, index) else {
            continue;
        };
        let leak = arrivals
            .iter()
            .find(|a| a.at > head + 1e-9 && a.at < head + wait - EPSILON);
        if let Some(leak) = leak {
            return Err(format!(
                "{status} at {head} asks for {wait}, arrival at {}",
                leak.at
            ));
        }
    }
    Ok(())
}

fn delays_hold(scenario: &Scenario, arrivals: &[&ObservedRequest]) -> Result<(), String> {
    let delay = scenario.number("min_delay").expect("a delay");
    let one_permit = scenario.number("max_in_flight") == Some(1.0);
    for pair in arrivals.windows(2) {
        if pair[1].at - pair[0].at < delay - EPSILON {
            return Err(format!("starts at {} and {}", pair[0].at, pair[1].at));
        }
        let end = pair[0].end.unwrap_or(f64::INFINITY);
        if one_permit && pair[1].at - end < delay - EPSILON {
            return Err(format!("end at {end}, start at {}", pair[1].at));
        }
    }
    Ok(())
}

fn permits_hold(scenario: &Scenario, arrivals: &[&ObservedRequest]) -> Result<(), String> {
    let permits = scenario.number("max_in_flight").expect("a number") as usize;
    for arrival in arrivals {
        let under_way = arrivals
            .iter()
            .filter(|other| {
                other.at <= arrival.at && other.end.is_none_or(|end| end > arrival.at)
                    || std::ptr::eq(**other, *arrival)
            })
            .count();
        // Those that start and end within one instant are not under way together.
        let instant = arrivals.iter().filter(|a| a.at == arrival.at).count();
        if under_way > permits && instant <= 1 {
            return Err(format!("{under_way} under way at {}", arrival.at));
        }
    }
    Ok(())
}

/// From a 429 or 503 to a minute after its pause at least, the delay is twice the configured one.
fn slower_afterwards(scenario: &Scenario, arrivals: &[&ObservedRequest]) -> Result<(), String> {
    let delay = scenario.number("min_delay").expect("a delay");
    for index in 0..arrivals.len() {
        let Some((head, wait, 429 | 503)) = asked(scenario, arrivals, index) else {
            continue;
        };
        let slow: Vec<f64> = arrivals
            .iter()
            .map(|a| a.at)
            .filter(|at| *at > head + 1e-9 && *at < head + wait + 60.0)
            .collect();
        if let Some(pair) = slow
            .windows(2)
            .find(|pair| pair[1] - pair[0] < 2.0 * delay - EPSILON)
        {
            return Err(format!("after the pause of {head}: starts at {pair:?}"));
        }
    }
    Ok(())
}

fn first_come_first_served(
    scenario: &Scenario,
    arrivals: &[&ObservedRequest],
) -> Result<(), String> {
    if scenario.flag("auto_retry") {
        // A retry comes a second time.
        return Ok(());
    }
    let serials: Vec<_> = arrivals
        .iter()
        .filter_map(|a| a.group.as_ref())
        .map(|g| g.serial)
        .collect();
    if serials.is_sorted() {
        Ok(())
    } else {
        Err(format!("the order of arrival is {serials:?}"))
    }
}
