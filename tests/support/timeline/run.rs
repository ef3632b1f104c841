//! Plays a timeline against the real layers on paused time.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use etiquette_core::Clock;
use http::Uri;
use serde_json::Value;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, sleep_until};
use tower::{Layer, ServiceExt};
use tower_etiquette::hosts::GroupBy;
use tower_etiquette::{
    ConditionalCacheLayer, HostBudgetLayer, HostPolicy, Hosts, PausedClock, RetryAfterLayer,
    RobotsLayer, UserAgentLayer,
};

use super::arrangement::{Arrangement, Nodes};
use super::caller::{Caller, CallerLog, Client, boxed};
use super::observed::{Group, Observed};
use super::origin::Origin;
use super::scenario::{Scenario, Submit};
use crate::client::identity_builder;
use crate::paused;
use crate::vectors::{number, text, unknown};

/// The start of all timelines: 2026-11-30 22:00:00.
const WALL: u64 = 1_796_076_000;
/// No row needs longer: three days.
const END: f64 = 3.0 * 86_400.0;

/// Plays `scenario` in one process.
///
/// # Errors
/// What of the scenario is not known.
pub fn play(scenario: &Scenario, arrangement: Arrangement) -> Result<Observed, String> {
    play_on(scenario, arrangement, None)
}

/// Plays it with processes that share hosts, if `nodes` are given.
///
/// # Errors
/// What of the scenario is not known.
pub fn play_on(
    scenario: &Scenario,
    arrangement: Arrangement,
    nodes: Option<&dyn Nodes>,
) -> Result<Observed, String> {
    paused::run(async { Run::new(scenario, arrangement, nodes)?.play().await })
}

struct Run<'a> {
    scenario: &'a Scenario,
    arrangement: Arrangement,
    nodes: Option<&'a dyn Nodes>,
    policy: HostPolicy,
    origin: Origin,
    clock: Arc<PausedClock>,
    start: Instant,
    hosts: Vec<Hosts>,
    callers: Arc<Mutex<CallerLog>>,
}

enum Event<'a> {
    Submit(&'a Submit),
    Other(&'a Value),
    BackoffLevel(String),
    Tracked,
}

impl<'a> Run<'a> {
    fn new(
        scenario: &'a Scenario,
        arrangement: Arrangement,
        nodes: Option<&'a dyn Nodes>,
    ) -> Result<Self, String> {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(WALL);
        let clock = Arc::new(PausedClock::new(wall));
        clock.jump(scenario.number("client_wall_offset").unwrap_or(0.0) as i64);
        Ok(Self {
            scenario,
            arrangement,
            nodes,
            policy: policy(scenario, arrangement)?,
            origin: Origin::new(scenario, wall)?,
            clock,
            start: Instant::now(),
            hosts: Vec::new(),
            callers: Arc::default(),
        })
    }

    /// What happens, in the order of time.
    fn events(&self) -> Result<Vec<(f64, Event<'a>)>, String> {
        let mut events: Vec<(f64, Event<'_>)> = Vec::new();
        for submit in &self.scenario.submit {
            events.push((submit.at, Event::Submit(submit)));
        }
        for event in &self.scenario.events {
            events.push((number(event, "t")?, Event::Other(event)));
        }
        for expect in &self.scenario.expect {
            let (backoff_level, tracked) = (&expect["backoff_level"], &expect["tracked_hosts"]);
            if backoff_level.is_object() {
                let host = text(backoff_level, "host")?.to_owned();
                let at = number(backoff_level, "at")?;
                events.push((at, Event::BackoffLevel(host)));
            }
            if tracked.is_object() {
                events.push((number(tracked, "at")?, Event::Tracked));
            }
        }
        events.sort_by(|one, two| one.0.total_cmp(&two.0));
        Ok(events)
    }

    async fn play(mut self) -> Result<Observed, String> {
        let events = self.events()?;
        let mut clients: HashMap<u64, Client> = HashMap::new();
        let shared = self.new_hosts(1);
        let mut nodes = HashMap::from([(1, shared)]);
        let mut of_node: HashMap<u64, Vec<AbortHandle>> = HashMap::new();
        let mut tasks: HashMap<Option<String>, Vec<JoinHandle<()>>> = HashMap::new();
        let mut polled_ready = Vec::new();
        let mut backoff_levels = HashMap::new();
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
                        return Err(unknown(format_args!("the event {event}")));
                    }
                }
                Event::BackoffLevel(host) => {
                    let uri: Uri = format!("http://{host}/")
                        .parse()
                        .map_err(|_| unknown(format_args!("the host {host:?}")))?;
                    let most = self
                        .hosts
                        .iter()
                        .filter_map(|hosts| hosts.snapshot(&uri).ok()?);
                    let most = most
                        .map(|snapshot| snapshot.backoff_level)
                        .max()
                        .unwrap_or(0);
                    backoff_levels.insert((host, at as u64), most);
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
        let callers = std::mem::take(&mut *self.callers.lock().unwrap());
        Ok(Observed {
            requests: self.origin.requests(),
            completed: callers.completed,
            refusals: callers.refusals,
            backoff_levels,
            tracked,
            group: self.scenario.config["group"]
                .as_str()
                .unwrap_or("authority")
                .into(),
            dns: self.scenario.config["dns"].clone(),
            unfinished,
            left,
            over_a_store: self.nodes.is_some(),
        })
    }

    fn instant(&self, at: f64) -> Instant {
        self.start + Duration::from_secs_f64(at)
    }

    fn caller(&self, submit: &Submit, group: Group, client: Client) -> Caller {
        Caller {
            client,
            clock: Arc::clone(&self.clock),
            log: Arc::clone(&self.callers),
            start: self.start,
            row: submit.row.clone(),
            host: submit.host.clone(),
            group,
            follow: self.scenario.flag("follow_redirects"),
        }
    }

    fn new_hosts(&mut self, node: u64) -> Hosts {
        let policy = self.policy.clone();
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
            let delay = Duration::from_secs_f64(own["min_delay"].as_f64().unwrap());
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
            // `host`; a scenario with anything else is not read.
            _ => hosts,
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
        let mut client = boxed(self.origin.site.clone());
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
                other => panic!("a test names the layer {other}"),
            };
        }
        if self.scenario.flag("cache") {
            let layer = ConditionalCacheLayer::new().clock(Arc::clone(&self.clock) as _);
            client = boxed(layer.layer(client));
        }
        if self.scenario.flag("robots") {
            client = boxed(RobotsLayer::new().hosts(budget_hosts).layer(client));
        }
        let identity = identity_builder().user_token("ReaderFetch").build();
        let identity = identity.expect("a valid identity");
        boxed(UserAgentLayer::new(identity).layer(client))
    }
}

/// The settings of the row for its hosts.
fn policy(scenario: &Scenario, arrangement: Arrangement) -> Result<HostPolicy, String> {
    let seconds = |key: &str| scenario.seconds(key);
    let max_in_flight = NonZeroU32::new(scenario.required("max_in_flight")? as u32)
        .ok_or_else(|| unknown("max_in_flight is zero"))?;
    let max_wait = scenario.number("max_wait").unwrap_or(3_600.0);
    let (least, most) = arrangement.jitter;
    let mut policy = HostPolicy::new()
        .max_in_flight(max_in_flight)
        .min_delay(seconds("min_delay")?)
        .default_pause(seconds("default_pause")?)
        .default_pause_503(seconds("default_pause_503")?)
        .max_wait(Duration::from_secs_f64(max_wait))
        .max_wait_user(seconds("max_wait_user")?)
        .queue_limit(scenario.required("queue_limit")? as usize)
        .jitter(least, most);
    if !scenario.flag("latency_scaling") {
        policy = policy.latency_factor(0);
    }
    if scenario.number("max_crawl_delay").is_some() {
        policy = policy.max_crawl_delay(seconds("max_crawl_delay")?);
    }
    Ok(policy)
}
