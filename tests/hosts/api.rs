//! What a site sees of an API's requests whatever it answers and its callers do, beside a crawl of the same host.

use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower::{Layer, ServiceExt, service_fn};
use tower_etiquette::purpose::{Api, ApiKey, ApiLimit};
use tower_etiquette::{
    BoxError, HostBudgetLayer, HostPolicy, Hosts, PausedClock, Purpose, RetryAfterLayer,
};

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

#[derive(Clone, Debug)]
struct Arrival {
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

fn play(plan: &Plan) -> (Vec<Arrival>, (u64, u64)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing");
    runtime.block_on(visit(plan))
}

async fn visit(plan: &Plan) -> (Vec<Arrival>, (u64, u64)) {
    let number = |n| NonZeroU32::new(n).expect("not zero");
    let limit = ApiLimit::new(number(plan.requests), Duration::from_secs(plan.per.into()))
        .burst(number(plan.burst))
        .max_in_flight(number(plan.at_once));
    let key = ApiKey::header(header::AUTHORIZATION);
    let api = Api::new("http://a", key, limit, "http://a/docs").expect("a declaration");
    let start = Instant::now();
    let clock = Arc::new(PausedClock::new(std::time::SystemTime::UNIX_EPOCH));
    clock.jump(1_000_000);
    let hosts = Hosts::builder()
        .policy(HostPolicy::new().latency_factor(0))
        .clock(Arc::clone(&clock) as _)
        .build();
    let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
    let site = {
        let (arrivals, asked) = (Arc::clone(&arrivals), Arc::new(plan.asked.clone()));
        service_fn(move |request: Request<Empty<Bytes>>| {
            let number = *request.extensions().get::<usize>().expect("is numbered");
            let asked = asked[number].clone();
            answer(start, Arc::clone(&arrivals), number, asked)
        })
    };
    let attempts = if plan.retries { 3 } else { 1 };
    let client = HostBudgetLayer::new(hosts.clone()).layer(site);
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
        let request = request.body(Empty::new()).expect("a request");
        let visit = client.clone().oneshot(request);
        let read = async move {
            if let Ok(response) = visit.await {
                let _ = response.into_body().collect().await;
            }
        };
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
    let seen = arrivals.lock().expect("nobody panics").clone();
    (seen, (totals.in_flight, totals.waiting))
}

async fn answer(
    start: Instant,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
    number: usize,
    asked: Asked,
) -> Result<Response<Late>, BoxError> {
    let index = {
        let mut arrivals = arrivals.lock().expect("nobody panics");
        arrivals.push(Arrival {
            number,
            api: asked.api,
            at: start.elapsed().as_secs_f64(),
            head: None,
            end: None,
        });
        arrivals.len() - 1
    };
    let ending = Ending(start, Arc::clone(&arrivals), index);
    sleep(Duration::from_secs_f64(asked.latency)).await;
    arrivals.lock().expect("nobody panics")[index].head = Some(start.elapsed().as_secs_f64());
    let (status, wait) = asked.answer;
    let mut response = Response::builder().status(status);
    if let Some(wait) = wait {
        response = response.header(header::RETRY_AFTER, wait);
    }
    let body = Late {
        sleep: Box::pin(sleep(Duration::from_secs_f64(asked.body))),
        ending: Some(ending),
    };
    Ok(response.body(body)?)
}

/// Writes the end down, however it comes.
struct Ending(Instant, Arc<Mutex<Vec<Arrival>>>, usize);

impl Drop for Ending {
    fn drop(&mut self) {
        let end = self.0.elapsed().as_secs_f64();
        if let Ok(mut arrivals) = self.1.lock() {
            arrivals[self.2].end = Some(end);
        }
    }
}

/// A body that ends when its time has come.
struct Late {
    sleep: Pin<Box<Sleep>>,
    ending: Option<Ending>,
}

impl Body for Late {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        std::task::ready!(self.sleep.as_mut().poll(task));
        self.ending = None;
        Poll::Ready(None)
    }
}

fn judge(plan: &Plan, arrivals: &[Arrival], left: (u64, u64)) -> Result<(), String> {
    if left != (0, 0) {
        return Err(format!("{left:?} are left under way and waiting"));
    }
    pauses_hold(plan, arrivals)?;
    let api: Vec<&Arrival> = arrivals.iter().filter(|a| a.api).collect();
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
    let pages: Vec<&Arrival> = arrivals.iter().filter(|a| !a.api).collect();
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
        for line in [&api, &pages] {
            let asked = |a: &&Arrival| plan.asked[a.number].at;
            if !line.iter().map(asked).is_sorted() {
                return Err(String::from("not first come, first served"));
            }
        }
    }
    Ok(())
}

/// The head of an answer that complains, and how long it asks to be left alone.
fn complaints<'a>(
    plan: &'a Plan,
    arrivals: &'a [Arrival],
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

fn pauses_hold(plan: &Plan, arrivals: &[Arrival]) -> Result<(), String> {
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
    arrivals: &[Arrival],
    api: &[&Arrival],
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
