//! The timelines of Retry-After and budgets, played by processes that share a real server: those that speak of a store, and
//! with a store those that do not. Time is the test's own, for the server's script too, so that instants are exact.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use etiquette_core::store::StoreFailed;
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, HostStore, HostStoreFuture, LocalView, Outage,
};
use etiquette_tests::timeline::{self, Arrangement, Nodes, Scenario};
use etiquette_tests::vectors::{Report, Vectors};
use tokio::runtime::{Handle, Runtime};
use tokio::time::Instant;
use tower_etiquette_redis::{Builder, RedisStore};

use crate::server::Server;

const RETRY_OVER_BUDGET: &[&str] = &["retry_after", "budget"];
const BUDGET: &[&str] = &["budget"];

#[test]
fn timelines_on_a_shared_server() {
    let Some(server) = Server::given_or_started() else {
        return;
    };
    let file = "scenarios.json";
    let mut report = Report::new("retry_after on a shared server");
    for document in Vectors::from_env().documents("retry_after/scenarios.json") {
        for row in document["scenarios"].as_array().expect("a list") {
            if !timeline::is_wanted(row["id"].as_str().unwrap_or_default()) {
                continue;
            }
            let scenario = match Scenario::read(row, &document["defaults"]) {
                Ok(scenario) => scenario,
                Err(why) => {
                    report.play(file, row, |_| Err(why));
                    continue;
                }
            };
            if let Some(why) = left_out(&scenario) {
                report.left_out(file, &scenario.id, why);
                continue;
            }
            report.play(file, row, |_| {
                let arrangements = [(RETRY_OVER_BUDGET, (0.0, 0.1)), (BUDGET, (0.1, 0.1))];
                arrangements.into_iter().try_for_each(|(layers, jitter)| {
                    let arrangement = Arrangement {
                        layers,
                        shared: true,
                        jitter,
                    };
                    let nodes = Fleet::new(&server, &scenario);
                    timeline::play_on(&scenario, arrangement, Some(&nodes))
                        .and_then(|observed| timeline::check(&scenario, &observed, arrangement))
                        .map_err(|why| format!("{arrangement:?}: {why}"))
                })
            });
        }
    }
    report.finish();
}

/// Rows that a store cannot change, or that it would only make slow.
fn left_out(scenario: &Scenario) -> Option<&'static str> {
    let config = &scenario.config;
    let requests: u64 = scenario.submit.iter().map(|submit| submit.n).sum();
    let events = scenario.submit.len();
    if config["store"].is_string() {
        None
    } else if config["layers"].is_array() {
        Some("fixes the layers, each with hosts of its own")
    } else if requests > 1_200 || events > 1_200 {
        Some("tests size")
    } else {
        None
    }
}

/// Processes that share a server.
struct Fleet {
    /// The store's own runtime: the timeline's has no network, and its time stands still during a call.
    runtime: Runtime,
    url: String,
    namespace: String,
    lease: Duration,
    nodes: u32,
    clock: Arc<AtomicI64>,
    down: Arc<AtomicBool>,
    /// The beginning of the timeline: its first process is made then.
    start: OnceLock<Instant>,
    made: Mutex<HashMap<u64, Arc<Node>>>,
}

/// The present of the script when a timeline begins: 2026-11-30 22:00:00.
const PRESENT: i64 = 1_796_076_000_000_000;

impl Fleet {
    fn new(server: &Server, scenario: &Scenario) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let fleet = Self {
            runtime,
            url: server.url(),
            namespace: format!(
                "{}:{}",
                server.namespace(),
                NEXT.fetch_add(1, Ordering::Relaxed)
            ),
            lease: Duration::from_secs_f64(scenario.number("lease").unwrap_or(10.0)),
            nodes: scenario.number("nodes").unwrap_or(2.0) as u32,
            // The server has been in use for an hour.
            clock: Arc::new(AtomicI64::new(PRESENT - 3_600_000_000)),
            down: Arc::default(),
            start: OnceLock::new(),
            made: Mutex::default(),
        };
        let connected = fleet.runtime.block_on(fleet.builder().connect());
        connected.expect("the server runs");
        fleet.clock.store(PRESENT, Ordering::SeqCst);
        fleet
    }

    fn builder(&self) -> Builder {
        RedisStore::builder(&self.url)
            .namespace(&self.namespace)
            .lease(self.lease)
            .nodes(self.nodes)
            .hold(Duration::from_secs(10))
            .timeout(Duration::from_secs(20))
            .script_clock(Arc::clone(&self.clock))
    }
}

impl Nodes for Fleet {
    fn store(&self, node: u64) -> Arc<dyn HostStore> {
        let mut made = self.made.lock().unwrap();
        let node = made.entry(node).or_insert_with(|| {
            Arc::new(Node {
                store: self.builder().build().expect("a valid address"),
                runtime: self.runtime.handle().clone(),
                clock: Arc::clone(&self.clock),
                down: Arc::clone(&self.down),
                dead: AtomicBool::new(false),
                start: *self.start.get_or_init(Instant::now),
            })
        });
        Arc::clone(node) as _
    }

    fn kill(&self, node: u64) {
        if let Some(node) = self.made.lock().unwrap().get(&node) {
            node.dead.store(true, Ordering::SeqCst);
        }
    }

    fn down(&self) {
        self.down.store(true, Ordering::SeqCst);
    }
}

/// A store whose calls take no time on the timeline's clock.
#[derive(Debug)]
struct Node {
    store: RedisStore,
    runtime: Handle,
    clock: Arc<AtomicI64>,
    down: Arc<AtomicBool>,
    dead: AtomicBool,
    start: Instant,
}

impl Node {
    /// Waits for the server; the timeline's clock stands still meanwhile.
    fn wait<T: Send>(
        &self,
        call: impl Future<Output = Result<T, StoreFailed>> + Send,
    ) -> Result<T, StoreFailed> {
        if self.down.load(Ordering::SeqCst) || self.dead.load(Ordering::SeqCst) {
            return Err(StoreFailed::new("be reached", "it is down"));
        }
        std::thread::scope(|scope| {
            let call = scope.spawn(|| self.runtime.block_on(call));
            call.join().expect("a call does not panic")
        })
    }

    /// Makes the script's present that of the timeline.
    fn set_clock(&self) {
        let past = self.start.elapsed().as_micros() as i64;
        self.clock.store(PRESENT + past, Ordering::SeqCst);
    }
}

impl HostStore for Node {
    fn acquire<'a>(
        &'a self,
        seen: LocalView<'a>,
        ask: AcquireRequest,
    ) -> HostStoreFuture<'a, Acquired> {
        self.set_clock();
        let answer = self.wait(self.store.acquire(seen, ask));
        Box::pin(std::future::ready(answer))
    }

    fn report<'a>(&'a self, seen: LocalView<'a>, report: HostReport) -> HostStoreFuture<'a, ()> {
        self.set_clock();
        let answer = self.wait(self.store.report(seen, report));
        Box::pin(std::future::ready(answer))
    }

    fn lease(&self) -> Duration {
        self.store.lease()
    }

    fn outage(&self) -> Outage {
        self.store.outage()
    }
}
