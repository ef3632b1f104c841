//! What a site sees of an API's requests whatever it answers and its callers do, beside a crawl of the same host.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_tests::client::fetch;
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Script, Site};
use http::{Request, header};
use http_body_util::Empty;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::time::{Instant, sleep_until};
use tower::Layer;
use tower_etiquette::purpose::{Api, ApiKey, ApiLimit};
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts, Purpose, RetryAfterLayer};

use super::EPSILON;

/// One request: when, to which part of the host, for how long the site takes, what it answers, when its caller gives up.
#[derive(Clone, Debug)]
struct Asked {
    at: f64,
    api: bool,
    latency: f64,
    body: f64,
    answer: (u16, Option<u32>),
    give_up: Option<f64>,
}

#[derive(Clone, Debug)]
struct Plan {
    per: u32,
    requests: u32,
    burst: u32,
    at_once: u32,
    retries: bool,
    jump: i64,
    asked: Vec<Asked>,
}

/// A request as the site saw it. Times are seconds from the start.
#[derive(Clone, Debug)]
struct ObservedRequest {
    number: usize,
    api: bool,
    at: f64,
    head: Option<f64>,
    end: Option<f64>,
}

fn quarters(until: u32) -> impl Strategy<Value = f64> {
    (0..until * 4).prop_map(|quarters| f64::from(quarters) / 4.0)
}

fn asked() -> impl Strategy<Value = Asked> {
    let answer = prop_oneof![
        8 => Just((200, None)),
        1 => (0..20_u32).prop_map(|wait| (429, Some(wait))),
        1 => (1..20_u32).prop_map(|wait| (503, Some(wait))),
        1 => Just((403, None)),
        1 => Just((500, None)),
    ];
    (
        quarters(30),
        prop::bool::weighted(0.8),
        quarters(2),
        quarters(2),
        answer,
        prop::option::weighted(0.2, quarters(20)),
    )
        .prop_map(|(at, api, latency, body, answer, give_up)| Asked {
            at,
            api,
            latency,
            body,
            answer,
            give_up,
        })
}

fn plan() -> impl Strategy<Value = Plan> {
    (
        (1..8_u32, 1..6_u32, 1..5_u32, 1..4_u32),
        any::<bool>(),
        -10_000..10_000_i64,
        prop::collection::vec(asked(), 1..40),
    )
        .prop_map(
            |((per, requests, burst, at_once), retries, jump, asked)| Plan {
                per,
                requests,
                burst,
                at_once,
                retries,
                jump,
                asked,
            },
        )
}

#[test]
fn an_api_is_never_above_its_limit_whatever_happens() {
    let mut runner = TestRunner::new(Config {
        cases: super::cases(1_000),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    });
    let outcome = runner.run(&plan(), |plan| {
        let (arrivals, left) = play(&plan);
        judge(&plan, &arrivals, left)
            .map_err(|why| TestCaseError::fail(format!("{why}, {arrivals:?}")))
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn play(plan: &Plan) -> (Vec<ObservedRequest>, (u64, u64)) {
    paused::run(visit(plan))
}

async fn visit(plan: &Plan) -> (Vec<ObservedRequest>, (u64, u64)) {
    let number = |n| NonZeroU32::new(n).expect("not zero");
    let limit = ApiLimit::new(number(plan.requests), Duration::from_secs(plan.per.into()))
        .burst(number(plan.burst))
        .max_in_flight(number(plan.at_once));
    let key = ApiKey::header(header::AUTHORIZATION);
    let api = Api::new("http://a", key, limit, "http://a/docs").expect("a declaration");
    let start = Instant::now();
    let clock = paused::clock_at(1_000_000);
    let hosts = Hosts::builder()
        .policy(HostPolicy::new().latency_factor(0))
        .clock(Arc::clone(&clock) as _)
        .build();
    let numbers: Arc<Mutex<Vec<usize>>> = Arc::default();
    let script = {
        let (numbers, asked) = (Arc::clone(&numbers), plan.asked.clone());
        Script::call(move |arrival| {
            let number = *arrival.extensions.get::<usize>().expect("is numbered");
            numbers.lock().expect("nobody panics").push(number);
            answer(&asked[number])
        })
    };
    let site = Site::builder().otherwise(script).in_process();
    let attempts = if plan.retries { 3 } else { 1 };
    let client = HostBudgetLayer::new(hosts.clone()).layer(site.clone());
    let retry = RetryAfterLayer::new(hosts.clone()).attempts(number(attempts));
    let client = retry.layer(client);
    let mut tasks = Vec::new();
    let mut order: Vec<usize> = (0..plan.asked.len()).collect();
    order.sort_by(|one, two| plan.asked[*one].at.total_cmp(&plan.asked[*two].at));
    for (index, number) in order.into_iter().enumerate() {
        let asked = &plan.asked[number];
        sleep_until(start + Duration::from_secs_f64(asked.at)).await;
        if index == plan.asked.len() / 2 {
            clock.jump(plan.jump);
        }
        let mut request = Request::get("http://a/").extension(number);
        if asked.api {
            request = request
                .header(header::AUTHORIZATION, "k")
                .extension(Purpose::Api(api.clone()));
        }
        let request = request.body(Empty::<Bytes>::new()).expect("a request");
        let read = fetch(client.clone(), request);
        let give_up = asked.give_up.map(Duration::from_secs_f64);
        tasks.push(tokio::spawn(async move {
            let _ = tokio::time::timeout(give_up.unwrap_or(Duration::MAX), read).await;
        }));
        // So that those of one instant come in their order.
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await.expect("callers do not panic");
    }
    let totals = hosts.totals();
    let numbers = numbers.lock().expect("nobody panics");
    let entries = site.log().entries();
    let seconds = |time: Duration| time.as_secs_f64();
    let seen = entries
        .iter()
        .zip(&*numbers)
        .map(|(entry, &number)| ObservedRequest {
            number,
            api: plan.asked[number].api,
            at: seconds(entry.at),
            head: entry.answered.map(seconds),
            end: entry.ended.map(seconds),
        });
    (seen.collect(), (totals.in_flight, totals.waiting))
}

/// The answer to a request, whose body has no bytes and ends when its time has come.
fn answer(asked: &Asked) -> Answer {
    let answer = match asked.answer {
        (status, Some(wait)) => Answer::retry_after(status, wait.into()),
        (status, None) => Answer::status(status),
    };
    let answer = answer.after(Duration::from_secs_f64(asked.latency));
    let end = Duration::from_secs_f64(asked.body);
    answer.ends_after(end).chunked()
}

fn judge(plan: &Plan, arrivals: &[ObservedRequest], left: (u64, u64)) -> Result<(), String> {
    if left != (0, 0) {
        return Err(format!("{left:?} are left under way and waiting"));
    }
    pauses_hold(plan, arrivals)?;
    let api: Vec<&ObservedRequest> = arrivals.iter().filter(|a| a.api).collect();
    let interval = f64::from(plan.per) / f64::from(plan.requests);
    for (first, one) in api.iter().enumerate() {
        for (last, other) in api.iter().enumerate().skip(first) {
            // So many started within the time from one to the other, both included.
            let started = (last - first + 1) as f64;
            let most = f64::from(plan.burst) + (other.at - one.at + EPSILON) / interval;
            if started > most {
                return Err(format!("{started} starts from {} to {}", one.at, other.at));
            }
        }
        let under_way = api
            .iter()
            .filter(|other| other.at <= one.at && other.end.is_none_or(|end| end > one.at))
            .count();
        let instant = api.iter().filter(|other| other.at == one.at).count();
        // Those that start and end within one instant are not under way together.
        let most = plan.at_once as usize;
        if under_way > most && instant <= most {
            return Err(format!("{under_way} under way at {}", one.at));
        }
    }
    slower_afterwards(plan, arrivals, &api, interval)?;
    let pages: Vec<&ObservedRequest> = arrivals.iter().filter(|a| !a.api).collect();
    for pair in pages.windows(2) {
        let end = pair[0].end.unwrap_or(f64::INFINITY);
        if pair[1].at - end < 1.0 - EPSILON {
            return Err(format!(
                "a page ends at {end}, one starts at {}",
                pair[1].at
            ));
        }
    }
    if !plan.retries {
        for queue in [&api, &pages] {
            let asked = |a: &&ObservedRequest| plan.asked[a.number].at;
            if !queue.iter().map(asked).is_sorted() {
                return Err(String::from("not first come, first served"));
            }
        }
    }
    Ok(())
}

/// The head of an answer that complains, and how long it asks to be left alone.
fn complaints<'a>(
    plan: &'a Plan,
    arrivals: &'a [ObservedRequest],
) -> impl Iterator<Item = (f64, f64)> + 'a {
    arrivals.iter().filter_map(|arrival| {
        let default = match plan.asked[arrival.number].answer {
            (429, wait) => wait.filter(|wait| *wait > 0).unwrap_or(60),
            (503, wait) => wait.filter(|wait| *wait > 0).unwrap_or(30),
            _ => return None,
        };
        Some((arrival.head?, f64::from(default)))
    })
}

fn pauses_hold(plan: &Plan, arrivals: &[ObservedRequest]) -> Result<(), String> {
    for (head, wait) in complaints(plan, arrivals) {
        let leak = arrivals
            .iter()
            .find(|a| a.at > head + 1e-9 && a.at < head + wait - EPSILON);
        if let Some(leak) = leak {
            return Err(format!("the pause from {head} leaks at {}", leak.at));
        }
    }
    Ok(())
}

/// From a complaint to a minute after its pause at least, the API is spaced at half its rate, without a burst.
fn slower_afterwards(
    plan: &Plan,
    arrivals: &[ObservedRequest],
    api: &[&ObservedRequest],
    interval: f64,
) -> Result<(), String> {
    for (head, wait) in complaints(plan, arrivals) {
        let slow: Vec<f64> = api
            .iter()
            .map(|a| a.at)
            .filter(|at| *at > head + 1e-9 && *at < head + wait + 60.0)
            .collect();
        let sooner = slow
            .windows(2)
            .find(|pair| pair[1] - pair[0] < 2.0 * interval - EPSILON);
        if let Some(pair) = sooner {
            return Err(format!("after the pause of {head}: starts at {pair:?}"));
        }
    }
    Ok(())
}
