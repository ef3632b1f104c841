//! Worker processes that share a budget while they are killed and the server is restarted, stopped and emptied; the
//! sites' logs decide whether the promises held.
//!
//! The test runs for 10 s. `ETIQUETTE_FAULTS=60 cargo test -p etiquette-tests --test redis faults` runs it longer.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use etiquette_tests::site::{Answer, Script, Site};
use etiquette_tests::{process, promises};
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, Service, ServiceExt};
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
use tower_etiquette_redis::RedisStore;

use crate::server::{Server, signal};

const WORKERS: usize = 4;
const SITES: usize = 20;
const DELAY: Duration = Duration::from_millis(250);
const LEASE: Duration = Duration::from_millis(1_500);

/// Not a test by itself: what a worker process runs.
#[test]
fn worker() {
    let Ok(task) = std::env::var("ETIQUETTE_WORKER") else {
        return;
    };
    let mut words = task.split(' ').map(str::to_owned);
    let (server, seconds) = (words.next().unwrap(), words.next().unwrap());
    let delay = Duration::from_millis(words.next().unwrap().parse().unwrap());
    let deadline = Instant::now() + Duration::from_secs_f64(seconds.parse().unwrap());
    let sites: Vec<String> = words.collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async move {
        let store = RedisStore::builder(server)
            .lease(LEASE)
            .nodes(WORKERS as u32)
            // Outages here are shorter: nobody goes on alone.
            .hold(Duration::from_secs(60))
            .build()
            .unwrap();
        let policy = HostPolicy::new()
            .min_delay(delay)
            .latency_factor(0)
            .jitter(0.0, 0.0)
            .max_wait(Duration::from_secs(100));
        let hosts = Hosts::builder()
            .policy(policy)
            .store(Arc::new(store))
            .build();
        let http = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
        let client = HostBudgetLayer::new(hosts).layer(http);
        let visits = sites.into_iter().map(|site| {
            let mut client = client.clone();
            async move {
                while Instant::now() < deadline {
                    let request = Request::get(&site).body(Empty::new()).unwrap();
                    if let Ok(response) = client.ready().await.unwrap().call(request).await {
                        let _ = response.into_body().collect().await;
                    }
                }
            }
        });
        let mut tasks = tokio::task::JoinSet::new();
        for visit in visits {
            tasks.spawn(visit);
        }
        let rest = deadline.saturating_duration_since(Instant::now());
        let _ = tokio::time::timeout(rest, tasks.join_all()).await;
    });
    // Without a farewell: requests under way are cut as by a kill.
    std::process::exit(0);
}

/// Worker processes, ended with the test.
struct Workers(Vec<Child>);

impl Workers {
    fn start(task: &str) -> Child {
        process::test("faults::worker")
            .env("ETIQUETTE_WORKER", task)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

async fn site(n: usize, script: impl Into<Script>) -> Site {
    let address = IpAddr::V4(Ipv4Addr::new(127, 0, 1, n as u8 + 1));
    let site = Site::builder().listen(address).otherwise(script).start();
    site.await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults() {
    let seconds: u64 = std::env::var("ETIQUETTE_FAULTS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(10);
    let Some(mut server) = Server::start(&[]) else {
        return;
    };
    let page = || {
        Answer::html("page")
            .after(Duration::from_millis(10))
            .trickle(Duration::from_millis(20))
    };
    let mut sites = Vec::new();
    for n in 0..SITES {
        let count = AtomicU32::new(0);
        sites.push(
            site(
                n,
                // A pause is shorter than a lease: it holds even when the one who heard of it dies at once.
                Script::call(move |_| match count.fetch_add(1, Ordering::Relaxed) {
                    8 => Answer::too_many(1),
                    _ => page(),
                }),
            )
            .await,
        );
    }
    let urls: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let task = |left: Duration| {
        format!(
            "{} {} {} {}",
            server.url(),
            left.as_secs_f64(),
            DELAY.as_millis(),
            urls.join(" ")
        )
    };
    let long = task(Duration::from_secs(seconds));
    let mut workers = Workers((0..WORKERS).map(|_| Workers::start(&long)).collect());
    let mut dice = 0x9E37_79B9_u32;
    let mut round = 0;
    while Instant::now() + Duration::from_secs(1) < end {
        tokio::time::sleep(Duration::from_millis(900)).await;
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let victim = (dice >> 16) as usize % WORKERS;
        let left = end.saturating_duration_since(Instant::now());
        let task = |left: Duration| {
            format!(
                "{} {} {} {}",
                server.url(),
                left.as_secs_f64(),
                DELAY.as_millis(),
                urls.join(" ")
            )
        };
        match round % 6 {
            0 | 3 => {
                signal(workers.0[victim].id(), "KILL");
                let _ = workers.0[victim].wait();
                workers.0[victim] = Workers::start(&task(left));
            }
            1 => {
                server.signal("STOP");
                tokio::time::sleep(Duration::from_millis(700)).await;
                server.signal("CONT");
            }
            2 => {
                let mut behind = server.connection();
                let _: () = redis::cmd("FLUSHALL").query(&mut behind).unwrap();
            }
            4 => {
                server.kill();
                tokio::time::sleep(Duration::from_millis(200)).await;
                server.launch();
            }
            _ => {}
        }
        round += 1;
    }
    for worker in &mut workers.0 {
        let _ = worker.wait();
    }
    let mut requests = 0;
    for site in &sites {
        let log = site.log().entries();
        requests += log.len();
        let most = promises::most_at_once(&log);
        assert!(most <= 1, "{most} at once at {}", site.url("/"));
        // A connection that its client gave up is noticed a moment later.
        promises::smallest_delay(&log, DELAY - Duration::from_millis(5)).expect_kept();
        let pause = promises::pause_kept(&log, Duration::ZERO);
        if log.iter().any(|entry| entry.pause().is_some()) {
            pause.expect_kept();
        }
    }
    println!("{requests} requests to {SITES} sites in {seconds} s under {round} faults");
    assert!(requests > SITES * 2, "{requests} requests are no proof");
}

/// Four processes share a host: every delay is kept, at least 90 % of the rate is used, and a 429 stops all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_use_one_budget_and_stop_together() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let delay = Duration::from_millis(500);
    let count = AtomicU32::new(0);
    let site = site(
        100,
        Script::call(move |_| match count.fetch_add(1, Ordering::Relaxed) {
            10 => Answer::too_many(2),
            _ => Answer::html("page"),
        }),
    )
    .await;
    let seconds = 12.0 + LEASE.as_secs_f64();
    let task = format!(
        "{} {seconds} {} {}",
        server.url(),
        delay.as_millis(),
        site.url("/")
    );
    let mut workers = Workers((0..WORKERS).map(|_| Workers::start(&task)).collect());
    for worker in &mut workers.0 {
        let _ = worker.wait();
    }
    let log = site.log().entries();
    let until_pause: Vec<_> = log.iter().take(11).cloned().collect();
    assert_eq!(until_pause.len(), 11, "only {} requests", log.len());
    promises::smallest_delay(&log, delay).expect_kept();
    promises::pause_kept(&log, Duration::ZERO).expect_kept();
    let took = until_pause[10].at - until_pause[0].at;
    let used = delay.as_secs_f64() * 10.0 / took.as_secs_f64();
    println!("four processes use {:.1} % of the rate", used * 100.0);
    assert!(
        used >= 0.9,
        "only {:.1} % of the rate is used",
        used * 100.0
    );
}

/// A worker dies while it holds the only permit: until then it keeps it, however long the body takes, and then the permit
/// comes back by itself when its lease is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_permit_of_a_killed_process_comes_back_within_the_lease() {
    use etiquette_core::decide::host::StartOptions;
    use etiquette_core::store::host::{AcquireRequest, Acquired, HostStore, LeaseId, LocalView};

    let Some(server) = Server::start(&[]) else {
        return;
    };
    let endless = Answer::html("page").trickle(Duration::from_secs(60));
    let site = site(110, endless).await;
    let task = format!("{} 60 0 {}", server.url(), site.url("/"));
    let mut workers = Workers(vec![Workers::start(&task)]);
    let deadline = Instant::now() + Duration::from_secs(20);
    while site.log().entries().is_empty() {
        assert!(Instant::now() < deadline, "the worker asks nobody");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let store = RedisStore::builder(server.url())
        .lease(LEASE)
        .build()
        .unwrap();
    let policy = HostPolicy::new()
        .min_delay(Duration::ZERO)
        .latency_factor(0);
    let host = site.address().ip().to_string();
    let ask = async |number| {
        let ask = AcquireRequest::new(LeaseId(number), StartOptions::pace());
        let answer = store
            .acquire(LocalView::new(&host, &policy), ask)
            .await
            .unwrap();
        matches!(answer, Acquired::Granted(_))
    };
    let alive = Instant::now();
    while alive.elapsed() < LEASE * 2 {
        assert!(!ask(0).await, "it is in use");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    signal(workers.0[0].id(), "KILL");
    let _ = workers.0[0].wait();
    let killed = Instant::now();
    while !ask(1).await {
        assert!(
            killed.elapsed() < LEASE * 2,
            "the permit is lost for longer than its lease"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = killed.elapsed();
    println!("the permit came back {took:?} after the death, the lease is {LEASE:?}");
    // It was renewed a third of a lease ago at most.
    assert!(took >= LEASE / 2, "{took:?}: it was given away too early");
}
