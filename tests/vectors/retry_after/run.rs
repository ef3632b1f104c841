//! Plays a timeline against the real layers on paused time.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::Clock;
use etiquette_core::store::host::HostStore;
use http::{Method, Request, Response, Uri, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tower::util::BoxCloneSyncService;
use tower::{Layer, Service, ServiceExt};
use tower_etiquette::hosts::GroupBy;
use tower_etiquette::purpose::Session;
use tower_etiquette::{
    BoxError, ConditionalCacheLayer, HostBudgetLayer, HostPolicy, Hosts, Identity, PausedClock,
    Purpose, Refusal, RetryAfterLayer, RobotsLayer, UserAgentLayer, Visit,
};

use super::scenario::{Scenario, Submit};
use super::site::{Arrival, Group, Site};

/// How the layers are put together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrangement {
    /// Outermost first.
    pub(crate) layers: &'static [&'static str],
    pub(crate) shared: bool,
    /// The least and the largest share that may be added to a pause.
    pub(crate) jitter: (f64, f64),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) completed: Vec<Done>,
    pub(crate) refusals: Vec<Refused>,
    pub(crate) backoff_level: HashMap<(String, u64), u32>,
    pub(crate) tracked: HashMap<u64, usize>,
    pub(crate) group: String,
    pub(crate) dns: Value,
    /// Callers that had not come to an end.
    pub(crate) unfinished: usize,
    /// Requests under way and waiting by the hosts' own count, once all callers had come to an end.
    pub(crate) left: (u64, u64),
    /// Processes shared its hosts.
    pub(crate) over_a_store: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) host: String,
    pub(crate) at: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) host: String,
    pub(crate) kind: &'static str,
    pub(crate) at: f64,
    pub(crate) retry_at: Option<f64>,
}

type Reply = Response<UnsyncBoxBody<Bytes, BoxError>>;
type Client = BoxCloneSyncService<Request<Empty<Bytes>>, Reply, BoxError>;

/// The start of all timelines: 2026-11-30 22:00:00.
const WALL: u64 = 1_796_076_000;
/// No row needs longer: three days.
const END: f64 = 3.0 * 86_400.0;

/// Where processes share their hosts.
pub(crate) trait Nodes {
    /// The store as the process sees it.
    fn store(&self, node: u64) -> Arc<dyn HostStore>;
    /// The process dies without a word.
    fn kill(&self, node: u64);
    /// Nobody can reach the store any more.
    fn down(&self);
}

pub(crate) fn play(scenario: &Scenario, arrangement: Arrangement) -> Played {
    play_on(scenario, arrangement, None)
}

/// Plays it with processes that share hosts, if `nodes` are given.
pub(crate) fn play_on(
    scenario: &Scenario,
    arrangement: Arrangement,
    nodes: Option<&dyn Nodes>,
) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing");
    runtime.block_on(Run::new(scenario, arrangement, nodes).play())
}

struct Run<'a> {
    scenario: &'a Scenario,
    arrangement: Arrangement,
    nodes: Option<&'a dyn Nodes>,
    site: Site,
    clock: Arc<PausedClock>,
    start: Instant,
    hosts: Vec<Hosts>,
    notes: Arc<Mutex<Notes>>,
}

#[derive(Default)]
struct Notes {
    completed: Vec<Done>,
    refusals: Vec<Refused>,
}

enum Event<'a> {
    Submit(&'a Submit),
    Other(&'a Value),
    BackoffLevel(String),
    Tracked,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, arrangement: Arrangement, nodes: Option<&'a dyn Nodes>) -> Self {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(WALL);
        let clock = Arc::new(PausedClock::new(wall));
        clock.jump(scenario.number("client_wall_offset").unwrap_or(0.0) as i64);
        let site = Site::new(
            wall,
            scenario.origin.clone(),
            scenario.number("latency").unwrap(),
            scenario.number("body_time").unwrap(),
        );
        Self {
            scenario,
            arrangement,
            nodes,
            site,
            clock,
            start: Instant::now(),
            hosts: Vec::new(),
            notes: Arc::default(),
        }
    }

    async fn play(mut self) -> Played {
        let mut events: Vec<(f64, Event<'_>)> = Vec::new();
        for submit in &self.scenario.submit {
            events.push((submit.at, Event::Submit(submit)));
        }
        for event in &self.scenario.events {
            events.push((event["t"].as_f64().unwrap(), Event::Other(event)));
        }
        for expect in &self.scenario.expect {
            let (backoff_level, tracked) = (&expect["strikes"], &expect["tracked_hosts"]);
            if backoff_level.is_object() {
                let host = backoff_level["host"].as_str().unwrap().to_owned();
                events.push((
                    backoff_level["at"].as_f64().unwrap(),
                    Event::BackoffLevel(host),
                ));
            }
            if tracked.is_object() {
                events.push((tracked["at"].as_f64().unwrap(), Event::Tracked));
            }
        }
        events.sort_by(|one, two| one.0.total_cmp(&two.0));

        let mut clients: HashMap<u64, Client> = HashMap::new();
        let shared = self.new_hosts(1);
        let mut nodes = HashMap::from([(1, shared)]);
        let mut of_node: HashMap<u64, Vec<tokio::task::AbortHandle>> = HashMap::new();
        let mut tasks: HashMap<Option<String>, Vec<tokio::task::JoinHandle<()>>> = HashMap::new();
        let mut polled_ready = Vec::new();
        let mut backoff_level = HashMap::new();
        let mut tracked = HashMap::new();
        let mut serial = 0;
        for (at, event) in events {
            sleep_until(self.instant(at)).await;
            match event {
                Event::Submit(submit) => {
                    let stack = submit.row["stack"].as_u64().unwrap_or(0);
                    let node = submit.row["node"].as_u64().unwrap_or(1);
                    let shared = nodes
                        .entry(node)
                        .or_insert_with(|| self.new_hosts(node))
                        .clone();
                    let client = &*clients
                        .entry(stack * 1_000 + node)
                        .or_insert_with(|| self.client(&shared, node));
                    let id = submit.row["id"].as_str().map(str::to_owned);
                    for _ in 0..submit.n {
                        if submit.row["ready_only"].as_bool() == Some(true) {
                            let mut client = client.clone();
                            client.ready().await.expect("the layers are always ready");
                            polled_ready.push(client);
                            continue;
                        }
                        let group = Group {
                            id: id.clone(),
                            serial,
                            hop: 0,
                        };
                        serial += 1;
                        let caller = self.caller(submit, group, client.clone());
                        let task = tokio::spawn(caller.call());
                        of_node.entry(node).or_default().push(task.abort_handle());
                        tasks.entry(id.clone()).or_default().push(task);
                    }
                }
                Event::Other(event) => {
                    if let Some(id) = event["cancel"].as_str() {
                        for task in tasks.get(&Some(id.into())).into_iter().flatten() {
                            task.abort();
                        }
                    } else if let Some(seconds) = event["wall_jump"].as_i64() {
                        self.clock.jump(seconds);
                    } else if let (Some(node), Some(nodes)) =
                        (event["kill_node"].as_u64(), self.nodes)
                    {
                        nodes.kill(node);
                        for task in of_node.remove(&node).into_iter().flatten() {
                            task.abort();
                        }
                    } else if let ("down", Some(nodes)) =
                        (event["store"].as_str().unwrap_or_default(), self.nodes)
                    {
                        nodes.down();
                    } else {
                        panic!("{}: unknown event {event}", self.scenario.id);
                    }
                }
                Event::BackoffLevel(host) => {
                    let uri: Uri = format!("http://{host}/").parse().unwrap();
                    let most = self
                        .hosts
                        .iter()
                        .filter_map(|hosts| hosts.snapshot(&uri).ok()?);
                    let most = most
                        .map(|snapshot| snapshot.backoff_level)
                        .max()
                        .unwrap_or(0);
                    backoff_level.insert((host, at as u64), most);
                }
                Event::Tracked => {
                    let most = self.hosts.iter().map(|hosts| hosts.totals().hosts).max();
                    tracked.insert(at as u64, most.unwrap_or(0));
                }
            }
        }
        let mut tasks: Vec<_> = tasks.into_values().flatten().collect();
        let all = async {
            for task in &mut tasks {
                // A cancelled or panicked caller is part of the row.
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout_at(self.instant(END), all).await;
        let unfinished = tasks.iter().filter(|task| !task.is_finished()).count();
        let left = self
            .hosts
            .iter()
            .map(Hosts::totals)
            .fold((0, 0), |sum, totals| {
                (sum.0 + totals.in_flight, sum.1 + totals.waiting)
            });
        let notes = std::mem::take(&mut *self.notes.lock().unwrap());
        Played {
            arrivals: self.site.arrivals(),
            completed: notes.completed,
            refusals: notes.refusals,
            backoff_level,
            tracked,
            group: self.scenario.config["group"]
                .as_str()
                .unwrap_or("authority")
                .into(),
            dns: self.scenario.config["dns"].clone(),
            unfinished,
            left,
            over_a_store: self.nodes.is_some(),
        }
    }

    fn instant(&self, at: f64) -> Instant {
        self.start + Duration::from_secs_f64(at)
    }

    fn caller(&self, submit: &Submit, group: Group, client: Client) -> Caller {
        Caller {
            client,
            site: self.site.clone(),
            clock: Arc::clone(&self.clock),
            notes: Arc::clone(&self.notes),
            start: self.start,
            row: submit.row.clone(),
            host: submit.host.clone(),
            group,
            follow: self.scenario.flag("follow_redirects"),
        }
    }

    fn policy(&self) -> HostPolicy {
        let config = |key: &str| self.scenario.number(key);
        let seconds = |key: &str| Duration::from_secs_f64(config(key).unwrap());
        let max_in_flight =
            NonZeroU32::new(config("cap").unwrap() as u32).expect("cap is not zero");
        let (least, most) = self.arrangement.jitter;
        let mut policy = HostPolicy::new()
            .max_in_flight(max_in_flight)
            .min_delay(seconds("min_gap"))
            .default_pause(seconds("default_pause"))
            .default_pause_503(seconds("default_pause_503"))
            .max_wait(Duration::from_secs_f64(
                config("max_wait").unwrap_or(3_600.0),
            ))
            .max_wait_user(seconds("max_wait_user"))
            .queue_limit(config("queue_per_host").unwrap() as usize)
            .jitter(least, most);
        if !self.scenario.flag("latency_scaling") {
            policy = policy.latency_factor(0);
        }
        if let Some(longest) = config("max_crawl_delay") {
            policy = policy.max_crawl_delay(Duration::from_secs_f64(longest));
        }
        policy
    }

    fn new_hosts(&mut self, node: u64) -> Hosts {
        let policy = self.policy();
        let mut hosts = Hosts::builder()
            .policy(policy.clone())
            .clock(self.clock_of(node));
        if let Some(nodes) = self.nodes {
            hosts = hosts.store(nodes.store(node));
        }
        for (host, own) in self.scenario.config["override"]
            .as_object()
            .into_iter()
            .flatten()
        {
            let delay = Duration::from_secs_f64(own["min_gap"].as_f64().unwrap());
            hosts = hosts.host(host, policy.clone().min_delay(delay));
        }
        if let Some(most) = self.scenario.number("max_hosts") {
            hosts = hosts.max_hosts(most as usize);
        }
        let dns = self.scenario.config["dns"].clone();
        hosts = match self.scenario.config["group"].as_str() {
            Some("authority") => hosts.group_by(GroupBy::Authority),
            Some("registrable_domain") => hosts.group_by(GroupBy::RegistrableDomain),
            Some("ip") => hosts.group_by(GroupBy::function(move |origin| {
                dns[origin.host()].as_str().unwrap().into()
            })),
            Some("host") | None => hosts,
            Some(other) => panic!("unknown grouping {other}"),
        };
        let hosts = hosts.build();
        self.hosts.push(hosts.clone());
        hosts
    }

    /// The wall clocks of processes may differ.
    fn clock_of(&self, node: u64) -> Arc<dyn Clock> {
        match self.scenario.config["node_wall_offset"][node.to_string()].as_i64() {
            Some(seconds) => {
                let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(WALL);
                let clock = PausedClock::new(wall);
                clock.jump(seconds);
                Arc::new(clock)
            }
            None => Arc::clone(&self.clock) as _,
        }
    }

    fn client(&mut self, shared: &Hosts, node: u64) -> Client {
        let mut client = boxed(self.site.clone());
        let mut budget_hosts = shared.clone();
        for layer in self.arrangement.layers.iter().rev() {
            let hosts = if self.arrangement.shared {
                shared.clone()
            } else {
                self.new_hosts(node)
            };
            client = match *layer {
                "budget" => {
                    budget_hosts = hosts.clone();
                    boxed(HostBudgetLayer::new(hosts).layer(client))
                }
                "retry_after" => {
                    let attempts = if self.scenario.flag("auto_retry") {
                        3
                    } else {
                        1
                    };
                    let layer =
                        RetryAfterLayer::new(hosts).attempts(NonZeroU32::new(attempts).unwrap());
                    boxed(layer.layer(client))
                }
                other => panic!("unknown layer {other}"),
            };
        }
        if self.scenario.flag("cache") {
            let layer = ConditionalCacheLayer::new().clock(Arc::clone(&self.clock) as _);
            client = boxed(layer.layer(client));
        }
        if self.scenario.flag("robots") {
            client = boxed(RobotsLayer::new().hosts(budget_hosts).layer(client));
        }
        boxed(UserAgentLayer::new(identity()).layer(client))
    }
}

fn identity() -> Identity {
    Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .user_token("ReaderFetch")
        .build()
        .expect("a valid identity")
}

fn boxed<S, B>(service: S) -> Client
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(
        service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into),
    )
}

/// One request and what its caller does with the answer.
struct Caller {
    client: Client,
    site: Site,
    clock: Arc<PausedClock>,
    notes: Arc<Mutex<Notes>>,
    start: Instant,
    row: Value,
    host: String,
    group: Group,
    follow: bool,
}

impl Caller {
    async fn call(mut self) {
        let scheme = self.row["scheme"].as_str().unwrap_or("http");
        let path = self.row["path"].as_str().unwrap_or("/");
        let mut uri: Uri = format!("{scheme}://{}{path}", self.host).parse().unwrap();
        let method: Method = self.row["method"]
            .as_str()
            .unwrap_or("GET")
            .parse()
            .unwrap();
        let visit = Visit::new();
        let session = Session::new();
        let grant = (self.row["mode"] == "user").then(|| session.grant(&uri).unwrap());
        loop {
            let mut request = Request::new(Empty::new());
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            visit.attach(&mut request);
            request.extensions_mut().insert(self.group.clone());
            if let Some(grant) = &grant {
                request
                    .extensions_mut()
                    .insert(Purpose::UserFetch(grant.clone()));
            }
            let response = match self.client.ready().await.unwrap().call(request).await {
                Ok(response) => response,
                Err(error) => return self.failed(&*error),
            };
            let target = response.headers().get(header::LOCATION);
            if let (true, Some(target)) = (self.follow, target) {
                let target = target.to_str().unwrap();
                uri = if target.starts_with('/') {
                    let authority = uri.authority().unwrap();
                    format!("{scheme}://{authority}{target}").parse().unwrap()
                } else {
                    target.parse().unwrap()
                };
                self.group.hop += 1;
                self.host = uri.authority().unwrap().to_string();
                drop(response);
                continue;
            }
            return self.read(response).await;
        }
    }

    async fn read(self, response: Reply) {
        let drop_at = self.row["drop_body_at"].as_f64();
        let hold = self.row["hold_body"].as_bool() == Some(true);
        let keep = self.row["hold_response"].as_bool() == Some(true);
        if keep {
            // The head is all there is: the answer is complete when it arrives.
            self.completed();
            std::future::pending::<()>().await;
            drop(response);
            return;
        }
        let drop_at = drop_at.map(|at| self.start + Duration::from_secs_f64(at));
        if hold {
            match drop_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
            return;
        }
        let read = collect(response.into_body());
        let outcome = match drop_at {
            Some(at) => tokio::time::timeout_at(at, read).await.unwrap_or(Err(())),
            None => read.await,
        };
        if outcome.is_ok() {
            self.completed();
        }
    }

    fn completed(&self) {
        let done = Done {
            host: super::scenario::normal(&self.host, "http"),
            at: self.site.now(),
        };
        self.notes.lock().unwrap().completed.push(done);
    }

    fn failed(&self, error: &(dyn std::error::Error + 'static)) {
        let Some(refusal) = Refusal::find(error) else {
            return;
        };
        let now = self.site.now();
        let wall = self.clock.now().wall;
        let retry_at = refusal.retry_at().map(|at| match at.duration_since(wall) {
            Ok(ahead) => now + ahead.as_secs_f64(),
            Err(ago) => now - ago.duration().as_secs_f64(),
        });
        self.notes.lock().unwrap().refusals.push(Refused {
            host: super::scenario::normal(&self.host, "http"),
            kind: refusal.kind(),
            at: now,
            retry_at,
        });
    }
}

async fn collect(body: UnsyncBoxBody<Bytes, BoxError>) -> Result<(), ()> {
    let mut body = Pin::from(Box::new(body));
    while let Some(frame) = body.as_mut().frame().await {
        frame.map_err(|_| ())?;
    }
    Ok(())
}
