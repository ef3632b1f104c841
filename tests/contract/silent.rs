//! A request that its caller does not poll any more holds nobody up, and keeps its position.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tower_etiquette::{BoxError, HostPolicy, Hosts};

use crate::order::wrap;
use crate::site::{Client, DELAY, STEP, arrivals, get, hosts, site};

type Visit = Pin<Box<dyn Future<Output = Result<u16, BoxError>> + Send>>;

fn visit(client: &Client, path: &str) -> Visit {
    let (client, path) = (client.clone(), path.to_owned());
    Box::pin(async move { get(&client, &path).await })
}

/// Polls it once and no more, as a `select!` does whose other branch goes on for long.
fn begin(client: &Client, path: &str) -> Visit {
    let mut visit = visit(client, path);
    let mut task = Context::from_waker(Waker::noop());
    assert!(visit.as_mut().poll(&mut task).is_pending(), "{path} waits");
    visit
}

/// A page, its answer and its body.
const PAGE: u128 = 2 * STEP.as_millis();

#[tokio::test(start_paused = true)]
async fn whoever_waits_behind_it_goes_on() {
    let (hosts, site) = (hosts(), site());
    let client = wrap("budget", &hosts, site.clone());
    get(&client, "/0").await.unwrap();
    let silent = begin(&client, "/silent");
    let behind = [visit(&client, "/1"), visit(&client, "/2")].map(tokio::spawn);
    for task in behind {
        assert_eq!(task.await.unwrap().unwrap(), 200);
    }
    // Its turn came after the delay. Half a second later it is called, and passed after as long again.
    let due = PAGE + DELAY.as_millis();
    let first = due + 1_000;
    let second = first + due;
    let expected = [("/0", 0), ("/1", first), ("/2", second)];
    assert_eq!(arrivals(&site, "/"), expected.map(|(p, at)| (p.into(), at)));
    assert_eq!(hosts.totals().waiting, 1, "it has kept its position");
    let last = tokio::spawn(visit(&client, "/3"));
    tokio::task::yield_now().await;
    assert_eq!(silent.await.unwrap(), 200);
    assert_eq!(last.await.unwrap().unwrap(), 200);
    let order: Vec<_> = arrivals(&site, "/").into_iter().map(|s| s.0).collect();
    assert_eq!(order, ["/0", "/1", "/2", "/silent", "/3"]);
    assert_eq!(hosts.totals().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn many_in_front_are_passed_one_after_the_other() {
    let (hosts, site) = (hosts(), site());
    let client = wrap("budget", &hosts, site.clone());
    get(&client, "/0").await.unwrap();
    let silent: Vec<_> = (0..3)
        .map(|n| begin(&client, &format!("/silent/{n}")))
        .collect();
    let behind = tokio::spawn(visit(&client, "/1"));
    assert_eq!(behind.await.unwrap().unwrap(), 200);
    // The others are called when the one before them was passed.
    let at = PAGE + DELAY.as_millis() + 1_000 + 2 * 500;
    assert_eq!(arrivals(&site, "/")[1], (String::from("/1"), at));
    drop(silent);
    assert_eq!(hosts.totals().waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_is_given_back_goes_to_somebody_who_is_there() {
    for layer in ["budget", "retry_after"] {
        let (hosts, site) = (hosts(), site());
        let client = wrap(layer, &hosts, site.clone());
        let busy = tokio::spawn(visit(&client, "/busy"));
        sleep(STEP + STEP / 4).await;
        let silent = begin(&client, "/silent");
        let behind = tokio::spawn(visit(&client, "/1"));
        busy.await.unwrap().unwrap();
        behind.await.unwrap().unwrap();
        let all = arrivals(&site, "/");
        let at = all.iter().find(|(path, _)| path == "/1").unwrap().1;
        assert!(at >= (STEP + Duration::from_secs(5)).as_millis(), "{all:?}");
        assert!(at <= (STEP + Duration::from_secs(9)).as_millis(), "{all:?}");
        drop(silent);
        assert_eq!(hosts.totals().waiting, 0);
    }
}

/// Those behind it are refused in time, too.
#[tokio::test(start_paused = true)]
async fn deadlines_behind_it_hold() {
    let policy = HostPolicy::new()
        .latency_factor(0)
        .max_wait(Duration::from_secs(3));
    let (hosts, site) = (Hosts::new(policy), site());
    let client = wrap("budget", &hosts, site.clone());
    let held = tower::ServiceExt::oneshot(
        client.clone(),
        http::Request::get("http://site.example/0")
            .body(http_body_util::Empty::new())
            .unwrap(),
    );
    let held = held.await.unwrap();
    let start = Instant::now();
    let silent = begin(&client, "/silent");
    let behind = tokio::spawn(visit(&client, "/1"));
    let error = behind.await.unwrap().unwrap_err();
    let refusal = tower_etiquette::Refusal::find(&*error).unwrap();
    assert_eq!(refusal.kind(), "paused");
    // It could still start at its deadline; whoever is not polled then is called and passed as anywhere else.
    assert_eq!(start.elapsed(), Duration::from_millis(3_001 + 1_000));
    drop((held, silent));
    assert_eq!(hosts.totals().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn one_task_polls_a_queue_and_ends_with_it() {
    let (hosts, site) = (hosts(), site());
    let client = wrap("budget", &hosts, site.clone());
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    get(&client, "/0").await.unwrap();
    let one = begin(&client, "/1");
    assert_eq!(tasks(), 0, "nobody waits behind it");
    let others: Vec<_> = (2..50).map(|n| begin(&client, &format!("/{n}"))).collect();
    assert_eq!(tasks(), 1);
    drop(others);
    tokio::task::yield_now().await;
    assert_eq!(tasks(), 0);
    drop(one);
}

#[derive(Default)]
struct Called(AtomicBool);

impl Wake for Called {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The task that polls the queue belongs to the runtime of whoever waited second. When that ends, others start one of their
/// own.
#[test]
fn a_runtime_that_ends_stops_no_other_one_s_queue() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let (first, second) = (runtime(), runtime());
    let policy = HostPolicy::new().latency_factor(0);
    let hosts = Hosts::new(policy);
    let client = wrap("budget", &hosts, site());
    let called = Arc::new(Called::default());
    let waker = Waker::from(Arc::clone(&called));
    let mut behind = visit(&client, "/1");
    let kept = first.block_on(async {
        get(&client, "/0").await.unwrap();
        let silent = begin(&client, "/silent");
        let mut task = Context::from_waker(&waker);
        assert!(behind.as_mut().poll(&mut task).is_pending());
        Some(silent)
    });
    drop(first);
    assert!(
        called.0.load(Ordering::SeqCst),
        "it has to poll its queue itself"
    );
    let outcome =
        second.block_on(async { tokio::time::timeout(Duration::from_secs(60), behind).await });
    assert_eq!(outcome.expect("does not hang").unwrap(), 200);
    drop(kept);
}
