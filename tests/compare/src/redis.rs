//! Budgets that several processes share: ours against the two limiters that most people run on Redis, interleaved in one
//! run on a server of its own.
//!
//! - `ours`: `HostBudgetLayer` over `RedisStore`: delay, permits, pauses, backoff level; one question on the request's path, one
//!   message off it.
//! - `incr`: a counter for each window, `INCR` and `EXPIRE` in one round trip. It keeps a rate on average; twice as much may
//!   pass around the end of a window.
//! - `gcra`: one script that keeps a rate evenly. Neither knows of permits or pauses.
//!
//! A `ping` is what a round trip to this server costs by itself.

use std::convert::Infallible;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::{Request, Response};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tower_etiquette::client::RequestBody;
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
use tower_etiquette_redis::RedisStore;
use tower_layer::Layer;
use tower_service::Service;

const ROUNDS: usize = 5;
/// How long each peer works in a round.
const ROUND: Duration = Duration::from_millis(1_200);
/// Requests under way at once in each node where the rate is measured.
const AT_ONCE: u64 = 64;
const HOSTS: u64 = 10_000;
const MANY: u64 = 100_000;
const LEASE: Duration = Duration::from_millis(200);

const GCRA: &str = "
local now = redis.call('TIME')
now = tonumber(now[1]) * 1000000 + tonumber(now[2])
local delay = tonumber(ARGV[1])
local due = tonumber(redis.call('GET', KEYS[1]) or '0')
if due > now then return due - now end
redis.call('SET', KEYS[1], string.format('%.0f', now + delay), 'PX', math.ceil(delay / 1000) + 1000)
return 0";

type Failed = Box<dyn std::error::Error + Send + Sync>;

pub(crate) fn run(as_json: bool) -> ExitCode {
    let Some(server) = Server::start() else {
        println!("skipped: neither redis-server nor valkey-server is on PATH");
        return ExitCode::SUCCESS;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let rows = runtime
        .map_err(Failed::from)
        .and_then(|runtime| runtime.block_on(measure(&server)));
    match rows {
        Ok(rows) => {
            for row in rows {
                say(&row, as_json);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("redis: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(row: &Value, as_json: bool) {
    if as_json {
        println!("{row}");
        return;
    }
    let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let nodes = row["nodes"]
        .as_u64()
        .map_or(String::new(), |n| n.to_string());
    println!(
        "{:12} {:>2} {:6} {:>12.1} {}",
        text("case"),
        nodes,
        text("peer"),
        row["value"].as_f64().unwrap_or_default(),
        text("unit")
    );
}

/// One way to ask whether a request may start.
#[derive(Clone, Copy, PartialEq)]
enum Peer {
    Ping,
    Incr,
    Gcra,
    Ours,
}

const PEERS: [Peer; 4] = [Peer::Ping, Peer::Incr, Peer::Gcra, Peer::Ours];

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Incr => "incr",
            Self::Gcra => "gcra",
            Self::Ours => "ours",
        }
    }
}

/// A process: a connection, and what it knows.
#[derive(Clone)]
struct Node {
    connection: MultiplexedConnection,
    gcra: redis::Script,
    /// What GCRA keeps between two requests to a host.
    delay: Duration,
    client: tower_etiquette::host_budget::HostBudget<Instantly>,
}

/// A site that answers at once.
#[derive(Clone, Debug)]
struct Instantly;

impl Service<Request<RequestBody>> for Instantly {
    type Response = Response<RequestBody>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        std::future::ready(Ok(Response::new(RequestBody::default())))
    }
}

impl Node {
    async fn new(server: &Server) -> Result<Self, Failed> {
        let connection = redis::Client::open(server.url())?
            .get_multiplexed_async_connection()
            .await?;
        let store = RedisStore::builder(server.url())
            .lease(LEASE)
            .timeout(Duration::from_secs(10))
            .connect()
            .await?;
        // Without a delay every start is allowed: what is measured is the work and not the wait.
        let policy = HostPolicy::new()
            .min_delay(Duration::ZERO)
            .latency_factor(0);
        let hosts = Hosts::builder()
            .policy(policy)
            .max_hosts(2 * MANY as usize)
            .store(Arc::new(store))
            .build();
        Ok(Self {
            connection,
            gcra: redis::Script::new(GCRA),
            delay: Duration::ZERO,
            client: HostBudgetLayer::new(hosts).layer(Instantly),
        })
    }

    /// One request to a host.
    async fn ask(&mut self, peer: Peer, host: u64) -> Result<(), Failed> {
        match peer {
            Peer::Ping => {
                let _: String = redis::cmd("PING").query_async(&mut self.connection).await?;
            }
            Peer::Incr => {
                // A new key for each window, as such limiters have it; one window is as good as another here.
                let key = format!("limit:incr:site-{host}.example:1796076000");
                let _: (u64,) = redis::pipe()
                    .incr(&key, 1)
                    .expire(&key, 600)
                    .ignore()
                    .query_async(&mut self.connection)
                    .await?;
            }
            Peer::Gcra => {
                let mut call = self.gcra.key(format!("limit:gcra:site-{host}.example"));
                let call = call.arg(self.delay.as_micros() as u64);
                let _: i64 = call.invoke_async(&mut self.connection).await?;
            }
            Peer::Ours => {
                let request = Request::get(format!("http://site-{host}.example/"));
                let request = request.body(RequestBody::default())?;
                let mut client = self.client.clone();
                client.call(request).await?;
            }
        }
        Ok(())
    }
}

async fn measure(server: &Server) -> Result<Vec<Value>, Failed> {
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(Node::new(server).await?);
    }
    tokio::time::sleep(LEASE).await;
    let mut rows = Vec::new();
    for count in [1, 4] {
        let nodes = &nodes[..count];
        let mut found: [Vec<(f64, f64)>; 4] = Default::default();
        let mut rates: [Vec<f64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            for (at, peer) in PEERS.into_iter().enumerate() {
                found[at].push(latency(nodes, peer).await?);
                rates[at].push(rate(nodes, peer).await?);
            }
        }
        for (at, peer) in PEERS.into_iter().enumerate() {
            let half = median(found[at].iter().map(|(half, _)| *half));
            let slow = median(found[at].iter().map(|(_, slow)| *slow));
            let rate = median(rates[at].iter().copied());
            for (case, value, unit) in [
                ("latency p50", half, "us"),
                ("latency p99", slow, "us"),
                ("rate", rate, "1/s"),
            ] {
                rows.push(json!({
                    "case": case, "nodes": count, "peer": peer.name(), "value": value, "unit": unit,
                }));
            }
        }
    }
    for peer in PEERS {
        let trips = round_trips(server, &mut nodes[0], peer).await?;
        rows.push(json!({
            "case": "round trips", "nodes": 1, "peer": peer.name(), "value": trips, "unit": "per request",
        }));
    }
    for peer in [Peer::Incr, Peer::Gcra, Peer::Ours] {
        let bytes = memory(server, peer).await?;
        rows.push(json!({
            "case": "memory", "nodes": 1, "peer": peer.name(), "value": bytes, "unit": "bytes per host",
        }));
    }
    Ok(rows)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// What one request after the other takes in each node, in microseconds: the median, and what one in a hundred exceeds.
async fn latency(nodes: &[Node], peer: Peer) -> Result<(f64, f64), Failed> {
    let end = Instant::now() + ROUND;
    let mut work = tokio::task::JoinSet::new();
    for (number, node) in nodes.iter().enumerate() {
        let mut node = node.clone();
        work.spawn(async move {
            let mut took = Vec::new();
            let mut host = number as u64 * HOSTS;
            while Instant::now() < end {
                let begin = Instant::now();
                node.ask(peer, host).await?;
                took.push(begin.elapsed().as_secs_f64() * 1e6);
                host = number as u64 * HOSTS + (host + 1) % HOSTS;
            }
            Ok::<_, Failed>(took)
        });
    }
    let mut all = Vec::new();
    while let Some(took) = work.join_next().await {
        all.extend(took??);
    }
    all.sort_by(f64::total_cmp);
    let at = |share: f64| all.get((all.len() as f64 * share) as usize);
    Ok((
        at(0.5).copied().unwrap_or_default(),
        at(0.99).copied().unwrap_or_default(),
    ))
}

/// How many requests all nodes together get through in a second.
async fn rate(nodes: &[Node], peer: Peer) -> Result<f64, Failed> {
    let begin = Instant::now();
    let end = begin + ROUND;
    let done = Arc::new(AtomicU64::new(0));
    let mut work = tokio::task::JoinSet::new();
    for (number, node) in nodes.iter().enumerate() {
        for task in 0..AT_ONCE {
            let (mut node, done) = (node.clone(), Arc::clone(&done));
            work.spawn(async move {
                // Nobody waits for another one's host.
                let hosts = HOSTS / AT_ONCE;
                let first = number as u64 * HOSTS + task * hosts;
                let mut at = 0;
                while Instant::now() < end {
                    node.ask(peer, first + at % hosts).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                    at += 1;
                }
                Ok::<_, Failed>(())
            });
        }
    }
    while let Some(ended) = work.join_next().await {
        ended??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64())
}

/// How often the server reads from its clients for one request, when nobody else asks.
async fn round_trips(server: &Server, node: &mut Node, peer: Peer) -> Result<f64, Failed> {
    const REQUESTS: u64 = 500;
    // What is written off the path is written by then, before and after.
    let settled = Duration::from_millis(100);
    tokio::time::sleep(settled).await;
    let before = server
        .number(node, "stats", "total_reads_processed")
        .await?;
    for host in 0..REQUESTS {
        node.ask(peer, host).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(settled).await;
    let after = server
        .number(node, "stats", "total_reads_processed")
        .await?;
    // One of them asked for the number itself.
    Ok((after - before - 1.0) / REQUESTS as f64)
}

/// What the server keeps for a host that was asked once, in bytes.
async fn memory(server: &Server, peer: Peer) -> Result<f64, Failed> {
    let mut node = Node::new(server).await?;
    let _: () = redis::cmd("FLUSHALL")
        .query_async(&mut node.connection)
        .await?;
    // Its memory of who is known is new too.
    node = Node::new(server).await?;
    // A host that owes nothing any more is not kept.
    node.delay = Duration::from_secs(600);
    tokio::time::sleep(LEASE).await;
    let before = server.number(&mut node, "memory", "used_memory").await?;
    let mut work = tokio::task::JoinSet::new();
    for task in 0..AT_ONCE {
        let mut node = node.clone();
        work.spawn(async move {
            let mut host = task;
            while host < MANY {
                node.ask(peer, host).await?;
                host += AT_ONCE;
            }
            Ok::<_, Failed>(())
        });
    }
    while let Some(ended) = work.join_next().await {
        ended??;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = server.number(&mut node, "memory", "used_memory").await?;
    Ok((after - before) / MANY as f64)
}

/// A server of its own on a free port, gone with the run.
struct Server {
    port: u16,
    folder: PathBuf,
    process: Child,
}

impl Server {
    fn start() -> Option<Self> {
        let folder = std::env::temp_dir().join(format!("compare-redis-{}", std::process::id()));
        std::fs::create_dir_all(&folder).ok()?;
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|listener| listener.local_addr())
            .ok()?
            .port();
        let process = ["redis-server", "valkey-server"]
            .into_iter()
            .find_map(|name| {
                Command::new(name)
                    .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
                    .args(["--save", "", "--appendonly", "no", "--dir"])
                    .arg(&folder)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .ok()
            })?;
        let server = Self {
            port,
            folder,
            process,
        };
        let end = Instant::now() + Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > end {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// A number that the server counts.
    async fn number(&self, node: &mut Node, section: &str, name: &str) -> Result<f64, Failed> {
        let info: String = redis::cmd("INFO")
            .arg(section)
            .query_async(&mut node.connection)
            .await?;
        let value = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        Ok(value
            .ok_or("the server does not count it")?
            .trim()
            .parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
