//! Whether and how the layers let a request wait, in both orders: refusing instead, sending again, letting go.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use etiquette_tests::client::get;
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Site, SiteService};
use http::{Method, Request, Response};
use http_body_util::Empty;
use tokio::time::sleep;
use tower::{Layer, ServiceExt};
use tower_etiquette::hosts::HostSnapshot;
use tower_etiquette::{
    BoxError, BoxedService, Facts, HostBudgetLayer, Hosts, Refusal, RetryAfterLayer,
};

use crate::site::{Client, DELAY, policy};

const LATENCY: Duration = Duration::from_millis(100);

/// A site that gives one answer after the other, each of them at the same latency, and then serves pages.
fn site(answers: Vec<Answer>) -> SiteService {
    let pages = answers.into_iter().chain([Answer::status(200)]);
    let answers: Vec<_> = pages.map(|answer| answer.after(LATENCY)).collect();
    Site::builder().otherwise(answers).in_process()
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
    site: SiteService,
}

impl Order {
    fn stack(
        self,
        answers: Vec<Answer>,
        retry: impl FnOnce(RetryAfterLayer) -> RetryAfterLayer,
        budget: impl FnOnce(HostBudgetLayer) -> HostBudgetLayer,
    ) -> Stack {
        let site = site(answers);
        let clock = paused::clock_at(1_000_000);
        let new = || {
            let hosts = Hosts::builder().policy(policy());
            hosts.clock(Arc::clone(&clock) as _).build()
        };
        let hosts = new();
        let others = if self.shared { hosts.clone() } else { new() };
        let retry = retry(RetryAfterLayer::new(others));
        let budget = budget(HostBudgetLayer::new(hosts.clone()));
        let client = match self.outer {
            "budget" => BoxedService::new(budget.layer(retry.layer(site.clone()))),
            _ => BoxedService::new(retry.layer(budget.layer(site.clone()))),
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
        let before = self.site.log().arrived_at().len();
        let error = self.get().await.unwrap_err();
        assert_eq!(
            self.site.log().arrived_at().len(),
            before,
            "nothing was sent"
        );
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
            vec![Answer::status(200), Answer::retry_after(429, 30)],
            |retry| retry.never_wait().attempts(NonZeroU32::MIN),
            HostBudgetLayer::never_wait,
        );
        assert_eq!(stack.get().await.unwrap(), 200, "{order:?}");
        let refused = stack.refused().await;
        assert_eq!(refused, ("paused", Some(1_100)), "the delay: {order:?}");
        sleep(Duration::from_millis(999)).await;
        assert_eq!(stack.refused().await, refused, "{order:?}");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(stack.get().await.unwrap(), 429, "{order:?}");
        let refused = stack.refused().await;
        assert_eq!(refused, ("paused", Some(31_200)), "the pause: {order:?}");
        sleep(Duration::from_millis(29_999)).await;
        assert_eq!(stack.refused().await, refused, "{order:?}");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(stack.get().await.unwrap(), 200, "{order:?}");
        assert_eq!(
            stack.site.log().arrived_at(),
            [0, 1_100, 31_200],
            "{order:?}"
        );
        assert_eq!(stack.budget.totals().in_flight, 0, "{order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_never_waits_does_not_wait_for_a_permit_either() {
    for order in ORDERS {
        let stack = order.stack(
            vec![Answer::never()],
            RetryAfterLayer::never_wait,
            HostBudgetLayer::never_wait,
        );
        let client = stack.client.clone();
        let request = get("http://a/");
        let hangs = tokio::spawn(client.oneshot(request));
        sleep(Duration::from_secs(5)).await;
        // The delay is over; when the permit comes back nobody knows, but not before a further delay has passed.
        let refused = stack.refused().await;
        assert_eq!(refused, ("paused", Some(6_000)), "{order:?}");
        hangs.abort();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(stack.get().await.unwrap(), 200, "{order:?}");
        assert_eq!(stack.site.log().arrived_at(), [0, 6_000], "{order:?}");
    }
}

/// A budget that refuses below a retry layer that waits, and the other way round: each does what it was refused.
#[tokio::test(start_paused = true)]
async fn each_layer_refuses_for_itself() {
    for order in ORDERS {
        let budget_alone = order.stack(
            vec![Answer::retry_after(429, 30)],
            |retry| retry.attempts(NonZeroU32::MIN),
            HostBudgetLayer::never_wait,
        );
        assert_eq!(budget_alone.get().await.unwrap(), 429, "{order:?}");
        if order.outer == "retry_after" && !order.shared {
            // The retry layer waits for the end of the pause by itself, the budget has nothing to refuse then.
            assert_eq!(budget_alone.get().await.unwrap(), 200, "{order:?}");
            assert_eq!(
                budget_alone.site.log().arrived_at(),
                [0, 30_100],
                "{order:?}"
            );
        } else {
            let refused = budget_alone.refused().await;
            assert_eq!(refused, ("paused", Some(30_100)), "{order:?}");
        }
        let retry_alone = order.stack(
            vec![Answer::retry_after(429, 30)],
            |retry| retry.never_wait().attempts(NonZeroU32::MIN),
            |budget| budget,
        );
        assert_eq!(retry_alone.get().await.unwrap(), 429, "{order:?}");
        if order.outer == "retry_after" && !order.shared {
            let refused = retry_alone.refused().await;
            assert_eq!(refused, ("paused", Some(30_100)), "{order:?}");
        } else {
            // The budget queues: it holds the hosts that the retry layer holds, or comes first.
            assert_eq!(retry_alone.get().await.unwrap(), 200, "{order:?}");
            assert_eq!(
                retry_alone.site.log().arrived_at(),
                [0, 30_100],
                "{order:?}"
            );
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
            vec![Answer::retry_after(503, 7)],
            RetryAfterLayer::never_wait,
            HostBudgetLayer::never_wait,
        );
        let error = stack.get().await.unwrap_err();
        assert_eq!(
            Refusal::find(&*error).unwrap().kind(),
            "paused",
            "{order:?}"
        );
        assert_eq!(stack.site.log().arrived_at(), [0], "{order:?}");
    }
}

/// The first failure costs a delay, the second in a row a pause of 30 s: that is what each attempt waits for.
#[tokio::test(start_paused = true)]
async fn failures_are_sent_again_where_that_is_wanted() {
    for failure in [Answer::hang_up(), Answer::status(500), Answer::status(502)] {
        for order in ORDERS {
            let case = format!("{failure:?} {order:?}");
            let stack = order.stack(
                vec![failure.clone(), failure.clone()],
                |retry| retry.retry_failures(true),
                |budget| budget,
            );
            let outcome = stack.send(Method::GET).await;
            if order.outer == "budget" {
                // A retry below the budget would pass it by: the failure is handed on.
                match outcome {
                    Ok(response) => assert!(response.status().is_server_error(), "{case}"),
                    Err(error) => assert_eq!(error.to_string(), "the site hangs up", "{case}"),
                }
                assert_eq!(stack.site.log().arrived_at(), [0], "{case}");
                continue;
            }
            let response = outcome.unwrap();
            assert_eq!(response.status(), 200, "{case}");
            assert_eq!(Facts::of(&response).unwrap().attempts(), 3, "{case}");
            // 100 ms of latency and a delay; 100 ms again, and the pause.
            assert_eq!(stack.site.log().arrived_at(), [0, 1_100, 31_200], "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_sent_again_three_times_at_most_and_only_if_idempotent() {
    for order in ORDERS {
        for (method, attempts) in [(Method::GET, 3), (Method::DELETE, 3), (Method::POST, 1)] {
            let case = format!("{method} {order:?}");
            let below = order.outer == "budget";
            let stack = order.stack(
                vec![Answer::status(500); 9],
                |retry| retry.retry_failures(true),
                |budget| budget,
            );
            let response = stack.send(method).await.unwrap();
            assert_eq!(response.status(), 500, "{case}");
            let sent = if below { 1 } else { attempts };
            assert_eq!(stack.site.log().arrived_at().len(), sent, "{case}");
        }
        let stack = order.stack(vec![Answer::hang_up(); 9], |retry| retry, |budget| budget);
        assert!(stack.get().await.is_err(), "{order:?}");
        assert_eq!(
            stack.site.log().arrived_at(),
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
            vec![Answer::retry_after(429, 5)],
            |retry| retry.attempts(NonZeroU32::MIN),
            |budget| budget,
        );
        stack.get().await.unwrap();
        assert_eq!(stack.snapshot().pace.delay, 2 * DELAY, "{order:?}");
    }
    // Alone the retry layer counts.
    let hosts = Hosts::new(policy());
    let site = site(vec![]);
    let client: Client = BoxedService::new(RetryAfterLayer::new(hosts.clone()).layer(site.clone()));
    let uri = "http://a/".parse().unwrap();
    for started in 1..=2 {
        let request = get("http://a/");
        client.clone().oneshot(request).await.unwrap();
        let snapshot = hosts.snapshot(&uri).unwrap().unwrap();
        assert_eq!(snapshot.started, started);
    }
}

/// With a delay of nothing the pace at which the site complained is learnt: one request, and not one for each layer.
#[tokio::test(start_paused = true)]
async fn the_pace_that_is_learnt_counts_a_start_once() {
    let hosts = Hosts::new(policy().min_delay(Duration::ZERO));
    let site = site(vec![Answer::retry_after(429, 5)]);
    let budget = HostBudgetLayer::new(hosts.clone()).layer(site.clone());
    let retry = RetryAfterLayer::new(hosts.clone()).attempts(NonZeroU32::MIN);
    let client: Client = BoxedService::new(retry.layer(budget));
    let request = get("http://a/");
    client.oneshot(request).await.unwrap();
    let snapshot = hosts.snapshot(&"http://a/".parse().unwrap());
    let pace = snapshot.unwrap().unwrap().pace;
    assert_eq!(pace.delay, Duration::from_secs(2));
}

/// A pause that only a retry layer below a budget knows of holds what the budget lets go, and does not let it go all at
/// once afterwards.
#[tokio::test(start_paused = true)]
async fn what_is_held_below_a_budget_is_let_go_by_its_delay() {
    let (outer, inner) = (
        Hosts::new(policy().max_in_flight(NonZeroU32::new(3).unwrap())),
        Hosts::new(policy()),
    );
    let site = site(vec![Answer::retry_after(429, 10)]);
    // Another stack learns of the pause: the budget of this one never hears of it.
    let retry = RetryAfterLayer::new(inner).attempts(NonZeroU32::MIN);
    let other: Client = BoxedService::new(retry.clone().layer(site.clone()));
    let request = || get("http://a/");
    let response = other.oneshot(request()).await.unwrap();
    assert_eq!(response.status(), 429);
    let budget = HostBudgetLayer::new(outer.clone());
    let client: Client = BoxedService::new(budget.layer(retry.layer(site.clone())));
    let all: Vec<_> = (0..5)
        .map(|_| tokio::spawn(client.clone().oneshot(request())))
        .collect();
    for one in all {
        assert_eq!(one.await.unwrap().unwrap().status(), 200);
    }
    // Three were under way when the pause ended at 10.1 s, each of them a delay after the one before.
    let expected = [0, 10_100, 11_100, 12_100, 13_100, 14_100];
    assert_eq!(site.log().arrived_at(), expected);
    assert_eq!(outer.totals().in_flight, 0);
}
