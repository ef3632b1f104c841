//! Whether and how the layers let a request wait, in both orders: refusing instead, sending again, letting go.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, header};
use http_body_util::Empty;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_etiquette::hosts::HostSnapshot;
use tower_etiquette::{
    BoxError, BoxedService, Facts, HostBudgetLayer, HostPolicy, Hosts, PausedClock, Refusal,
    RetryAfterLayer,
};

use crate::probe::{Client, DELAY};

const LATENCY: Duration = Duration::from_millis(100);

/// What the site does with one request.
#[derive(Clone, Copy, Debug)]
enum Does {
    Answers(u16),
    AsksToWait(u16, u64),
    Hangs,
    Breaks,
}

/// A site that does one thing after the other, each of them at the same latency, and then serves pages.
#[derive(Clone, Debug)]
struct Site {
    begin: Instant,
    script: Arc<Mutex<Vec<Does>>>,
    arrivals: Arc<Mutex<Vec<u128>>>,
}

impl Site {
    fn new(mut script: Vec<Does>) -> Self {
        script.reverse();
        Self {
            begin: Instant::now(),
            script: Arc::new(Mutex::new(script)),
            arrivals: Arc::default(),
        }
    }

    /// When requests arrived, in milliseconds since the site is there.
    fn arrivals(&self) -> Vec<u128> {
        self.arrivals.lock().unwrap().clone()
    }

    async fn answer(self) -> Result<Response<Empty<Bytes>>, BoxError> {
        let at = self.begin.elapsed().as_millis();
        self.arrivals.lock().unwrap().push(at);
        let does = self.script.lock().unwrap().pop();
        sleep(LATENCY).await;
        let mut response = Response::builder();
        match does.unwrap_or(Does::Answers(200)) {
            Does::Answers(status) => response = response.status(status),
            Does::AsksToWait(status, seconds) => {
                response = response.status(status).header(header::RETRY_AFTER, seconds);
            }
            Does::Hangs => std::future::pending::<()>().await,
            Does::Breaks => return Err("the connection broke".into()),
        }
        Ok(response.body(Empty::new())?)
    }

    fn service(
        &self,
    ) -> impl Service<
        Request<Empty<Bytes>>,
        Response = Response<Empty<Bytes>>,
        Error = BoxError,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + use<> {
        let site = self.clone();
        service_fn(move |_| site.clone().answer())
    }
}

/// The outer layer's name, and whether both hold the same hosts.
#[derive(Clone, Copy, Debug)]
struct Order {
    outer: &'static str,
    shared: bool,
}

const ORDERS: [Order; 4] = [
    Order {
        outer: "retry_after",
        shared: true,
    },
    Order {
        outer: "retry_after",
        shared: false,
    },
    Order {
        outer: "budget",
        shared: true,
    },
    Order {
        outer: "budget",
        shared: false,
    },
];

struct Stack {
    client: Client,
    budget: Hosts,
    site: Site,
}

fn policy() -> HostPolicy {
    HostPolicy::new()
        .min_delay(DELAY)
        .latency_factor(0)
        .jitter(0.0, 0.0)
}

impl Order {
    fn stack(
        self,
        script: Vec<Does>,
        retry: impl FnOnce(RetryAfterLayer) -> RetryAfterLayer,
        budget: impl FnOnce(HostBudgetLayer) -> HostBudgetLayer,
    ) -> Stack {
        let site = Site::new(script);
        let wall = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let clock = Arc::new(PausedClock::new(wall));
        let new = || {
            let hosts = Hosts::builder().policy(policy());
            hosts.clock(Arc::clone(&clock) as _).build()
        };
        let hosts = new();
        let others = if self.shared { hosts.clone() } else { new() };
        let retry = retry(RetryAfterLayer::new(others));
        let budget = budget(HostBudgetLayer::new(hosts.clone()));
        let client = match self.outer {
            "budget" => BoxedService::new(budget.layer(retry.layer(site.service()))),
            _ => BoxedService::new(retry.layer(budget.layer(site.service()))),
        };
        Stack {
            client,
            budget: hosts,
            site,
        }
    }
}

impl Stack {
    async fn send(&self, method: Method) -> Result<Response<()>, BoxError> {
        let request = Request::builder().method(method).uri("http://a/");
        let response = self
            .client
            .clone()
            .oneshot(request.body(Empty::new())?)
            .await?;
        Ok(response.map(drop))
    }

    async fn get(&self) -> Result<u16, BoxError> {
        Ok(self.send(Method::GET).await?.status().as_u16())
    }

    /// The kind of a refusal, and how many milliseconds after the start of the site to come back.
    async fn refused(&self) -> (&'static str, Option<u128>) {
        let before = self.site.arrivals().len();
        let error = self.get().await.unwrap_err();
        assert_eq!(self.site.arrivals().len(), before, "nothing was sent");
        let refusal = Refusal::find(&*error).expect("a refusal");
        let wall = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let retry_at = refusal.retry_at();
        let retry_at = retry_at.map(|at| at.duration_since(wall).unwrap().as_millis());
        (refusal.kind(), retry_at)
    }

    fn snapshot(&self) -> HostSnapshot {
        let uri = "http://a/".parse().unwrap();
        self.budget.snapshot(&uri).unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn who_never_waits_is_told_when_to_come_back() {
    for order in ORDERS {
        let stack = order.stack(
            vec![Does::Answers(200), Does::AsksToWait(429, 30)],
            |retry| retry.never_wait().attempts(NonZeroU32::MIN),
            HostBudgetLayer::never_wait,
        );
        assert_eq!(stack.get().await.unwrap(), 200, "{order:?}");
        let told = stack.refused().await;
        assert_eq!(told, ("paused", Some(1_100)), "the delay: {order:?}");
        sleep(Duration::from_millis(999)).await;
        assert_eq!(stack.refused().await, told, "{order:?}");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(stack.get().await.unwrap(), 429, "{order:?}");
        let told = stack.refused().await;
        assert_eq!(told, ("paused", Some(31_200)), "the pause: {order:?}");
        sleep(Duration::from_millis(29_999)).await;
        assert_eq!(stack.refused().await, told, "{order:?}");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(stack.get().await.unwrap(), 200, "{order:?}");
        assert_eq!(stack.site.arrivals(), [0, 1_100, 31_200], "{order:?}");
        assert_eq!(stack.budget.totals().in_flight, 0, "{order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_never_waits_does_not_wait_for_a_permit_either() {
    for order in ORDERS {
        let stack = order.stack(
            vec![Does::Hangs],
            RetryAfterLayer::never_wait,
            HostBudgetLayer::never_wait,
        );
        let client = stack.client.clone();
        let request = Request::get("http://a/").body(Empty::new()).unwrap();
        let hangs = tokio::spawn(client.oneshot(request));
        sleep(Duration::from_secs(5)).await;
        // The delay is over; when the permit comes back nobody knows, but not before a further delay has passed.
        let told = stack.refused().await;
        assert_eq!(told, ("paused", Some(6_000)), "{order:?}");
        hangs.abort();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(stack.get().await.unwrap(), 200, "{order:?}");
        assert_eq!(stack.site.arrivals(), [0, 6_000], "{order:?}");
    }
}

/// A budget that refuses below a retry layer that waits, and the other way round: each does what it was told.
#[tokio::test(start_paused = true)]
async fn each_layer_refuses_for_itself() {
    for order in ORDERS {
        let budget_alone = order.stack(
            vec![Does::AsksToWait(429, 30)],
            |retry| retry.attempts(NonZeroU32::MIN),
            HostBudgetLayer::never_wait,
        );
        assert_eq!(budget_alone.get().await.unwrap(), 429, "{order:?}");
        if order.outer == "retry_after" && !order.shared {
            // The retry layer waits for the end of the pause by itself, the budget has nothing to refuse then.
            assert_eq!(budget_alone.get().await.unwrap(), 200, "{order:?}");
            assert_eq!(budget_alone.site.arrivals(), [0, 30_100], "{order:?}");
        } else {
            let told = budget_alone.refused().await;
            assert_eq!(told, ("paused", Some(30_100)), "{order:?}");
        }
        let retry_alone = order.stack(
            vec![Does::AsksToWait(429, 30)],
            |retry| retry.never_wait().attempts(NonZeroU32::MIN),
            |budget| budget,
        );
        assert_eq!(retry_alone.get().await.unwrap(), 429, "{order:?}");
        if order.outer == "retry_after" && !order.shared {
            let told = retry_alone.refused().await;
            assert_eq!(told, ("paused", Some(30_100)), "{order:?}");
        } else {
            // The budget queues: it holds the hosts that the retry layer holds, or comes first.
            assert_eq!(retry_alone.get().await.unwrap(), 200, "{order:?}");
            assert_eq!(retry_alone.site.arrivals(), [0, 30_100], "{order:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_may_not_wait_hands_the_refusal_on() {
    for shared in [true, false] {
        let order = Order {
            outer: "retry_after",
            shared,
        };
        let stack = order.stack(
            vec![Does::AsksToWait(503, 7)],
            RetryAfterLayer::never_wait,
            HostBudgetLayer::never_wait,
        );
        let error = stack.get().await.unwrap_err();
        assert_eq!(
            Refusal::find(&*error).unwrap().kind(),
            "paused",
            "{order:?}"
        );
        assert_eq!(stack.site.arrivals(), [0], "{order:?}");
    }
}

/// The first failure costs a delay, the second in a row a pause of 30 s: that is what each attempt waits for.
#[tokio::test(start_paused = true)]
async fn failures_are_sent_again_where_that_is_wanted() {
    for failure in [Does::Breaks, Does::Answers(500), Does::Answers(502)] {
        for order in ORDERS {
            let told = format!("{failure:?} {order:?}");
            let stack = order.stack(
                vec![failure, failure],
                |retry| retry.retry_failures(true),
                |budget| budget,
            );
            let outcome = stack.send(Method::GET).await;
            if order.outer == "budget" {
                // A retry below the budget would pass it by: the failure is handed on.
                match outcome {
                    Ok(response) => assert!(response.status().is_server_error(), "{told}"),
                    Err(error) => assert_eq!(error.to_string(), "the connection broke", "{told}"),
                }
                assert_eq!(stack.site.arrivals(), [0], "{told}");
                continue;
            }
            let response = outcome.unwrap();
            assert_eq!(response.status(), 200, "{told}");
            assert_eq!(Facts::of(&response).unwrap().attempts(), 3, "{told}");
            // 100 ms of latency and a delay; 100 ms again, and the pause.
            assert_eq!(stack.site.arrivals(), [0, 1_100, 31_200], "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_sent_again_three_times_at_most_and_only_if_idempotent() {
    for order in ORDERS {
        for (method, attempts) in [(Method::GET, 3), (Method::DELETE, 3), (Method::POST, 1)] {
            let told = format!("{method} {order:?}");
            let below = order.outer == "budget";
            let stack = order.stack(
                vec![Does::Answers(500); 9],
                |retry| retry.retry_failures(true),
                |budget| budget,
            );
            let response = stack.send(method).await.unwrap();
            assert_eq!(response.status(), 500, "{told}");
            let sent = if below { 1 } else { attempts };
            assert_eq!(stack.site.arrivals().len(), sent, "{told}");
        }
        let stack = order.stack(vec![Does::Breaks; 9], |retry| retry, |budget| budget);
        assert!(stack.get().await.is_err(), "{order:?}");
        assert_eq!(
            stack.site.arrivals(),
            [0],
            "not without being asked: {order:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_is_counted_once() {
    for order in ORDERS {
        let stack = order.stack(vec![], |retry| retry, |budget| budget);
        for started in 1..=3 {
            stack.get().await.unwrap();
            assert_eq!(stack.snapshot().started, started, "{order:?}");
        }
        // Both layers had stamped the start before they knew of each other.
        let stack = order.stack(
            vec![Does::AsksToWait(429, 5)],
            |retry| retry.attempts(NonZeroU32::MIN),
            |budget| budget,
        );
        stack.get().await.unwrap();
        assert_eq!(stack.snapshot().pace.delay, 2 * DELAY, "{order:?}");
    }
    // Alone the retry layer counts.
    let hosts = Hosts::new(policy());
    let site = Site::new(vec![]);
    let client: Client =
        BoxedService::new(RetryAfterLayer::new(hosts.clone()).layer(site.service()));
    let uri = "http://a/".parse().unwrap();
    for started in 1..=2 {
        let request = Request::get("http://a/").body(Empty::new()).unwrap();
        client.clone().oneshot(request).await.unwrap();
        let snapshot = hosts.snapshot(&uri).unwrap().unwrap();
        assert_eq!(snapshot.started, started);
    }
}

/// With a delay of nothing the pace at which the site complained is learnt: one request, and not one for each layer.
#[tokio::test(start_paused = true)]
async fn the_pace_that_is_learnt_counts_a_start_once() {
    let hosts = Hosts::new(policy().min_delay(Duration::ZERO));
    let site = Site::new(vec![Does::AsksToWait(429, 5)]);
    let budget = HostBudgetLayer::new(hosts.clone()).layer(site.service());
    let retry = RetryAfterLayer::new(hosts.clone()).attempts(NonZeroU32::MIN);
    let client: Client = BoxedService::new(retry.layer(budget));
    let request = Request::get("http://a/").body(Empty::new()).unwrap();
    client.oneshot(request).await.unwrap();
    let snapshot = hosts.snapshot(&"http://a/".parse().unwrap());
    let pace = snapshot.unwrap().unwrap().pace;
    assert_eq!(pace.delay, Duration::from_secs(2));
}

/// A pause that only a retry layer below a budget knows of holds what the budget lets go, and does not let it go in one
/// heap afterwards.
#[tokio::test(start_paused = true)]
async fn what_is_held_below_a_budget_is_let_go_by_its_delay() {
    let (outer, inner) = (
        Hosts::new(policy().max_in_flight(NonZeroU32::new(3).unwrap())),
        Hosts::new(policy()),
    );
    let site = Site::new(vec![Does::AsksToWait(429, 10)]);
    // Another stack learns of the pause: the budget of this one never hears of it.
    let retry = RetryAfterLayer::new(inner).attempts(NonZeroU32::MIN);
    let other: Client = BoxedService::new(retry.clone().layer(site.service()));
    let request = || Request::get("http://a/").body(Empty::new()).unwrap();
    let response = other.oneshot(request()).await.unwrap();
    assert_eq!(response.status(), 429);
    let budget = HostBudgetLayer::new(outer.clone());
    let client: Client = BoxedService::new(budget.layer(retry.layer(site.service())));
    let all: Vec<_> = (0..5)
        .map(|_| tokio::spawn(client.clone().oneshot(request())))
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap().unwrap().status(), 200);
    }
    // Three were under way when the pause ended at 10.1 s, each of them a delay after the one before.
    let expected = [0, 10_100, 11_100, 12_100, 13_100, 14_100];
    assert_eq!(site.arrivals(), expected);
    assert_eq!(outer.totals().in_flight, 0);
}
