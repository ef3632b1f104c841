//! The robots layer around a site made by hand, on paused time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::robots_txt::{RobotsPolicy, StoredOutcome, StoredRobots};
use etiquette_core::store::{Claim, RobotsKey, RobotsStore, StoreFuture};
use etiquette_tests::client::{Page, fetch, get, identity_builder, refusal};
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Arrival, Script, Site, SiteService};
use http::Request;
use http_body_util::Empty;
use tokio::time::{Instant, advance, timeout};
use tower::{Layer, ServiceExt};
use tower_etiquette::purpose::RobotsScope;
use tower_etiquette::robots::Robots;
use tower_etiquette::{
    BoxError, Clock, Etiquette, HostPolicy, Hosts, Identity, Purpose, RobotsLayer, Session,
};

type Body = Empty<Bytes>;

/// A site with one robots.txt for all of its hosts, which it gives after a while.
#[derive(Clone)]
struct RobotsSite {
    service: SiteService,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    robots: Mutex<String>,
    /// The status of robots.txt, unless it is 200.
    status: Mutex<Option<u16>>,
    /// How long the robots.txt of a host takes; for ever above a day.
    slow: Mutex<Vec<(String, Duration)>>,
    /// The status of pages, unless it is 200.
    pages_status: Mutex<Option<u16>>,
    /// How many requests for robots.txt panic.
    panics: AtomicUsize,
}

impl RobotsSite {
    fn new(robots: &str) -> Self {
        let state = Arc::new(State::default());
        let script = {
            let state = Arc::clone(&state);
            Script::call(move |arrival| state.answer(arrival))
        };
        let site = Self {
            service: Site::builder().otherwise(script).in_process(),
            state,
        };
        site.turn_to(robots);
        site
    }

    fn turn_to(&self, robots: &str) {
        *self.state.robots.lock().unwrap() = robots.to_owned();
    }

    fn slow_down(&self, host: &str, time: Duration) {
        let mut slow = self.state.slow.lock().unwrap();
        slow.push((host.to_owned(), time));
    }

    /// How often a robots.txt was asked for.
    fn robots_fetches(&self) -> usize {
        let log = self.service.log();
        log.entries().len() - log.pages().len()
    }

    /// The URLs of pages that were asked for.
    fn pages(&self) -> Vec<String> {
        let pages = self.service.log().pages().into_iter();
        pages.map(|entry| entry.uri.to_string()).collect()
    }
}

impl State {
    fn answer(&self, arrival: &Arrival) -> Answer {
        if !arrival.is_robots_txt() {
            return Answer::status(self.pages_status.lock().unwrap().unwrap_or(200));
        }
        let slow = self.slow.lock().unwrap();
        let slow = slow.iter().find(|(host, _)| *host == arrival.host);
        let time = slow.map_or(Duration::from_millis(100), |(_, time)| *time);
        let panics = self.panics.load(Ordering::SeqCst) > 0;
        let answer = if panics {
            self.panics.fetch_sub(1, Ordering::SeqCst);
            Answer::panic()
        } else {
            let status = self.status.lock().unwrap().unwrap_or(200);
            Answer::status(status).body(self.robots.lock().unwrap().clone())
        };
        // A panic comes later than the first poll, so that others have joined.
        answer.after(time)
    }
}

fn identity() -> Identity {
    identity_builder()
        .user_token("Example-User")
        .contact("bot@example.com")
        .build()
        .unwrap()
}

fn client(site: &RobotsSite) -> Robots<SiteService> {
    RobotsLayer::with_identity(identity()).layer(site.service.clone())
}

fn page(url: &str) -> Request<Body> {
    let mut request = get(url);
    let name = identity().user_agent(Default::default()).clone();
    request.headers_mut().insert("user-agent", name);
    request
}

async fn ask(client: &Robots<SiteService>, url: &str) -> Result<Page, BoxError> {
    fetch(client.clone(), page(url)).await
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_who_wait_cost_one_request_though_they_give_up_one_after_another() {
    let site = RobotsSite::new("User-agent: *\nDisallow: /closed\n");
    site.slow_down("a.example", Duration::from_secs(20));
    let client = client(&site);
    let tasks: Vec<_> = (0..10_000u64)
        .map(|i| {
            let client = client.clone();
            // All but the last hundred give up before the answer is there.
            let patience = if i < 9_900 {
                Duration::from_millis(1 + 2 * i)
            } else {
                Duration::from_secs(60)
            };
            tokio::spawn(
                async move { timeout(patience, ask(&client, "http://a.example/open")).await },
            )
        })
        .collect();
    let mut gave_up = 0;
    for task in tasks {
        match task.await.unwrap() {
            Err(_elapsed) => gave_up += 1,
            Ok(result) => assert!(result.is_ok()),
        }
    }
    assert_eq!(
        (site.robots_fetches(), site.pages().len(), gave_up),
        (1, 100, 9_900)
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_is_no_unreachable_site() {
    let site = RobotsSite::new("");
    let client = client(&site);
    assert!(
        timeout(Duration::from_millis(50), ask(&client, "http://a.example/"))
            .await
            .is_err()
    );
    assert!(ask(&client, "http://a.example/").await.is_ok());
    assert_eq!(site.robots_fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_origin_delays_no_other() {
    let site = RobotsSite::new("");
    site.slow_down("slow.example", Duration::from_secs(25));
    let client = client(&site);
    let start = Instant::now();
    let slow = tokio::spawn({
        let client = client.clone();
        async move { ask(&client, "http://slow.example/").await }
    });
    tokio::task::yield_now().await;
    ask(&client, "http://fast.example/").await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(100));
    slow.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(25));
}

#[tokio::test(start_paused = true)]
async fn a_site_that_never_answers_is_closed_until_a_later_try() {
    let site = RobotsSite::new("");
    site.slow_down("a.example", Duration::from_secs(1 << 30));
    let client = client(&site);
    let start = Instant::now();
    let first = refusal(ask(&client, "http://a.example/").await);
    assert_eq!(start.elapsed(), Duration::from_secs(30));
    assert_eq!(first.kind(), "robots_unreachable");
    assert!(first.retry_at().is_some());
    // Within the back-off nothing is asked.
    advance(Duration::from_secs(59)).await;
    assert_eq!(
        refusal(ask(&client, "http://a.example/").await).kind(),
        "robots_unreachable"
    );
    assert_eq!(site.robots_fetches(), 1);
    advance(Duration::from_secs(2)).await;
    site.state.slow.lock().unwrap().clear();
    assert!(ask(&client, "http://a.example/").await.is_ok());
    assert_eq!(site.robots_fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_rule_line_group_and_whom_to_ask() {
    let site = RobotsSite::new("# ours\nUser-agent: ExampleBot\nDisallow: /closed\n");
    let client = client(&site);
    let refusal = refusal(ask(&client, "http://a.example/closed/x").await);
    assert_eq!(refusal.kind(), "disallowed");
    assert_eq!(refusal.rule().unwrap().line(), 3);
    assert_eq!(refusal.origin().unwrap().to_string(), "http://a.example");
    let text = refusal.explain().to_string();
    for part in [
        "line 3",
        "/closed",
        "https://www.example.com/bot.html",
        "bot@example.com",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
    assert!(site.pages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_not_got_round_by_another_spelling() {
    let site = RobotsSite::new("User-agent: *\nDisallow: /closed\n");
    let client = client(&site);
    for path in [
        "/closed",
        "/%63losed",
        "/open/../closed",
        "/open/%2e%2E/closed",
        "/./closed?x",
        "/open/../closed?q=/..",
    ] {
        let url = format!("http://a.example{path}");
        assert_eq!(
            refusal(ask(&client, &url).await).kind(),
            "disallowed",
            "{path}"
        );
    }
    assert!(
        ask(&client, "http://a.example/closed/../open")
            .await
            .is_err(),
        "as it is spelt it is closed"
    );
    assert!(ask(&client, "http://a.example/open/../other").await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_a_name_or_an_origin() {
    let site = RobotsSite::new("");
    let client = client(&site);
    let unnamed = get("http://a.example/");
    assert_eq!(
        refusal(fetch(client.clone(), unnamed).await).kind(),
        "unidentified"
    );
    let mut other = get("http://a.example/");
    let name = "OtherBot/1.0".parse().unwrap();
    other.headers_mut().insert("user-agent", name);
    assert!(client.clone().oneshot(other).await.is_err());
    assert_eq!(refusal(ask(&client, "/relative").await).kind(), "no_origin");
    let mut elsewhere = page("http://a.example/");
    elsewhere
        .headers_mut()
        .insert("host", "b.example".parse().unwrap());
    assert_eq!(
        refusal(fetch(client.clone(), elsewhere).await).kind(),
        "no_origin"
    );
    let nobody = RobotsLayer::new().layer(site.service.clone());
    assert_eq!(
        refusal(fetch(nobody, page("http://a.example/")).await).kind(),
        "no_identity"
    );
    assert_eq!((site.robots_fetches(), site.pages().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_was_forgotten_is_asked_again() {
    let site = RobotsSite::new("User-agent: *\nDisallow: /closed\n");
    let client = RobotsLayer::with_identity(identity())
        .max_origins(2)
        .layer(site.service.clone());
    for round in 0..3 {
        for host in ["a", "b", "c"] {
            let url = format!("http://{host}.example/closed");
            assert_eq!(
                refusal(ask(&client, &url).await).kind(),
                "disallowed",
                "{host} in round {round}"
            );
        }
    }
    assert!(site.robots_fetches() > 3 && site.robots_fetches() <= 9);
    assert!(site.pages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_fetched_again_after_its_life_and_not_before() {
    let site = RobotsSite::new("User-agent: *\nAllow: /\n");
    let client = client(&site);
    ask(&client, "http://a.example/1").await.unwrap();
    site.turn_to("User-agent: *\nDisallow: /\n");
    advance(Duration::from_secs(3_599)).await;
    ask(&client, "http://a.example/2").await.unwrap();
    assert_eq!(site.robots_fetches(), 1);
    advance(Duration::from_secs(1)).await;
    assert_eq!(
        refusal(ask(&client, "http://a.example/3").await).kind(),
        "disallowed"
    );
    assert_eq!((site.robots_fetches(), site.pages().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_the_inner_service_meets_the_rules_of_its_start() {
    let site = RobotsSite::new("User-agent: *\nAllow: /\n");
    let gate = tower::limit::ConcurrencyLimit::new(site.service.clone(), 1);
    let client = RobotsLayer::with_identity(identity()).layer(gate.clone());
    client
        .clone()
        .oneshot(page("http://a.example/1"))
        .await
        .unwrap();
    // Somebody else holds the one permit of the inner service.
    let mut held = gate.clone();
    ServiceExt::<Request<Body>>::ready(&mut held).await.unwrap();
    let waiting = tokio::spawn(fetch(client.clone(), page("http://a.example/2")));
    tokio::task::yield_now().await;
    site.turn_to("User-agent: *\nDisallow: /\n");
    advance(Duration::from_secs(3_601)).await;
    drop(held);
    assert_eq!(refusal(waiting.await.unwrap()).kind(), "disallowed");
    assert_eq!(site.pages(), ["http://a.example/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_on_the_way_is_an_error_for_all_and_the_next_asks_anew() {
    let site = RobotsSite::new("");
    site.state.panics.store(1, Ordering::SeqCst);
    let client = client(&site);
    let (one, two) = tokio::join!(
        ask(&client, "http://a.example/1"),
        ask(&client, "http://a.example/2")
    );
    assert_eq!(refusal(one).kind(), "robots_unreachable");
    assert_eq!(refusal(two).kind(), "robots_unreachable");
    assert!(ask(&client, "http://a.example/3").await.is_ok());
    assert_eq!(site.robots_fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_scheme_host_and_port_has_its_own_file() {
    let site = RobotsSite::new("");
    let client = client(&site);
    let one = [
        "http://a.example/",
        "http://A.EXAMPLE./",
        "http://a.example:80/x",
        "http://user@a.example/",
    ];
    for url in one {
        ask(&client, url).await.unwrap();
    }
    assert_eq!(site.robots_fetches(), 1);
    for url in [
        "https://a.example/",
        "http://a.example:8080/",
        "http://[2001:db8::1]/",
        "http://xn--bcher-kva.example/",
    ] {
        let before = site.robots_fetches();
        ask(&client, url).await.unwrap();
        assert_eq!(site.robots_fetches(), before + 1, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_fetch_is_bound_by_a_group_that_names_it() {
    let site = RobotsSite::new(
        "User-agent: *\nDisallow: /\n\nUser-agent: Example-User\nDisallow: /named\n",
    );
    let session = Session::new();
    let for_a_person = |url: &str| {
        let mut request = page(url);
        let user_agent = identity()
            .user_agent(tower_etiquette::purpose::PurposeKind::UserFetch)
            .clone();
        request.headers_mut().insert("user-agent", user_agent);
        let grant = session.grant(&url.parse().unwrap()).unwrap();
        request.extensions_mut().insert(Purpose::UserFetch(grant));
        request
    };
    let client = client(&site);
    let fetched = fetch(client.clone(), for_a_person("http://a.example/x"));
    assert!(fetched.await.is_ok());
    assert_eq!(
        refusal(fetch(client.clone(), for_a_person("http://a.example/named")).await).kind(),
        "disallowed"
    );
    assert_eq!(
        refusal(ask(&client, "http://a.example/x").await).kind(),
        "disallowed",
        "a crawl obeys *"
    );

    let site = RobotsSite::new("User-agent: *\nDisallow: /\n");
    let strict = RobotsLayer::with_identity(identity())
        .scope(RobotsScope::StarAndNamed)
        .layer(site.service.clone());
    assert_eq!(
        refusal(fetch(strict, for_a_person("http://a.example/x")).await).kind(),
        "disallowed"
    );
}

/// The encoded record and the bytes of the file.
type Stored = (Vec<u8>, Option<Bytes>);

/// A store in memory that several layers share, as processes share a server.
#[derive(Debug, Default)]
struct Store {
    records: Mutex<HashMap<RobotsKey, Stored>>,
    claimed: Mutex<bool>,
    down: AtomicBool,
}

impl RobotsStore for Store {
    fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
        let found = self.records.lock().unwrap().get(key).cloned();
        let found = found.map(|(lines, bytes)| StoredRobots::decode(&lines, bytes));
        Box::pin(async move {
            if self.down.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            Ok(found)
        })
    }

    fn save<'a>(&'a self, key: &'a RobotsKey, record: StoredRobots) -> StoreFuture<'a, ()> {
        let mut records = self.records.lock().unwrap();
        let old = records.get(key).and_then(|(_, bytes)| bytes.clone());
        let bytes = match record.copy.as_ref().map(|copy| &copy.outcome) {
            Some(StoredOutcome::Rules(new)) => new.clone().or(old),
            _ => None,
        };
        records.insert(key.clone(), (record.encode(), bytes));
        *self.claimed.lock().unwrap() = false;
        Box::pin(std::future::ready(Ok(())))
    }

    fn claim<'a>(&'a self, _: &'a RobotsKey) -> StoreFuture<'a, Claim> {
        let taken = std::mem::replace(&mut *self.claimed.lock().unwrap(), true);
        let claim = if taken {
            Claim::Taken(Duration::from_millis(50))
        } else {
            Claim::Granted
        };
        Box::pin(std::future::ready(Ok(claim)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_spares_the_site_a_request_after_a_restart_and_in_a_fleet() {
    let clock: Arc<dyn Clock> = paused::clock_at(1 << 30);
    let site = RobotsSite::new("User-agent: *\nDisallow: /closed\n");
    let store = Arc::new(Store::default());
    let process = || {
        let layer = RobotsLayer::with_identity(identity()).clock(Arc::clone(&clock));
        layer
            .store(Arc::clone(&store) as Arc<dyn RobotsStore>)
            .layer(site.service.clone())
    };
    // Two processes at once: one asks, the other waits for it.
    let (one, two) = (process(), process());
    let (first, second) = tokio::join!(
        ask(&one, "http://a.example/x"),
        ask(&two, "http://a.example/closed")
    );
    assert!(first.is_ok());
    assert_eq!(refusal(second).kind(), "disallowed");
    assert_eq!(site.robots_fetches(), 1);
    // A restart half an hour later knows the rules, and how old they are.
    advance(Duration::from_secs(1_800)).await;
    assert_eq!(
        refusal(ask(&process(), "http://a.example/closed").await).kind(),
        "disallowed"
    );
    assert_eq!(site.robots_fetches(), 1);
    advance(Duration::from_secs(1_801)).await;
    assert!(ask(&process(), "http://a.example/x").await.is_ok());
    assert_eq!(site.robots_fetches(), 2);
    // A store that hangs costs seconds, never a rule.
    store.down.store(true, Ordering::SeqCst);
    assert_eq!(
        refusal(ask(&process(), "http://a.example/closed").await).kind(),
        "disallowed"
    );
    assert_eq!(site.robots_fetches(), 3);
}

#[tokio::test(start_paused = true)]
async fn robots_txt_is_fetched_again_after_a_pause_and_after_a_run_of_blocks() {
    let site = RobotsSite::new("User-agent: *\nAllow: /\n");
    let hosts = Hosts::new(HostPolicy::new().jitter(0.0, 0.0));
    let client = Etiquette::new(identity())
        .hosts(hosts)
        .service(site.service.clone());
    let visit = |n: usize| {
        let request = get(&format!("http://a.example/{n}"));
        fetch(client.clone(), request)
    };
    *site.state.pages_status.lock().unwrap() = Some(403);
    for n in 0..10 {
        assert_eq!(visit(n).await.unwrap().status, 403);
    }
    assert_eq!(
        site.robots_fetches(),
        1,
        "the tenth in a row blocks the client"
    );
    let before = Instant::now();
    *site.state.pages_status.lock().unwrap() = None;
    assert_eq!(visit(10).await.unwrap().status, 200);
    assert!(before.elapsed() >= Duration::from_secs(60));
    assert_eq!(site.robots_fetches(), 2, "asked again before the next page");
    // The run is over: what the site wishes may have changed with it.
    visit(11).await.unwrap();
    assert_eq!(site.robots_fetches(), 3);
    visit(12).await.unwrap();
    assert_eq!(site.robots_fetches(), 3);
    *site.state.pages_status.lock().unwrap() = Some(429);
    site.turn_to("User-agent: *\nDisallow: /\n");
    let throttled = visit(13).await;
    assert_eq!(
        refusal(throttled).kind(),
        "disallowed",
        "the retry meets the rules of its start"
    );
    assert_eq!(site.robots_fetches(), 4);
}

#[tokio::test(start_paused = true)]
async fn unauthorized_closes_by_switch() {
    let site = RobotsSite::new("");
    *site.state.status.lock().unwrap() = Some(403);
    assert!(ask(&client(&site), "http://a.example/").await.is_ok());
    let policy = RobotsPolicy::default().unauthorized_closes(true);
    let strict = RobotsLayer::with_identity(identity())
        .policy(policy)
        .layer(site.service.clone());
    assert_eq!(
        refusal(ask(&strict, "http://a.example/").await).kind(),
        "robots_unreachable"
    );
}
