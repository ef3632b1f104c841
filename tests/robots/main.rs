//! The robots layer around a site made by hand, on paused time.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::decide::robots_txt::{RobotsPolicy, StoredOutcome, StoredRobots};
use etiquette_core::store::{Claim, RobotsKey, RobotsStore, StoreFuture};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::{Instant, advance, sleep, timeout};
use tower::{Layer, Service, ServiceExt};
use tower_etiquette::purpose::RobotsScope;
use tower_etiquette::robots::Robots;
use tower_etiquette::{
    BoxError, Clock, Etiquette, HostPolicy, Hosts, Identity, PausedClock, Purpose, Refusal,
    RobotsLayer, Session,
};

type Body = Full<Bytes>;

/// A site with one robots.txt for all of its hosts, which it gives after a while.
#[derive(Clone, Default)]
struct Site(Arc<Inner>);

#[derive(Default)]
struct Inner {
    robots: Mutex<String>,
    status: Mutex<Option<StatusCode>>,
    /// How long a robots.txt of a host takes; for ever above a day.
    slow: Mutex<Vec<(String, Duration)>>,
    readings: AtomicUsize,
    pages: Mutex<Vec<String>>,
    pages_answer: Mutex<StatusCode>,
    panics: AtomicUsize,
}

impl Site {
    fn new(robots: &str) -> Self {
        let site = Self::default();
        site.turn_to(robots);
        site
    }

    fn turn_to(&self, robots: &str) {
        *self.0.robots.lock().unwrap() = robots.to_owned();
    }

    fn readings(&self) -> usize {
        self.0.readings.load(Ordering::SeqCst)
    }

    fn pages(&self) -> Vec<String> {
        self.0.pages.lock().unwrap().clone()
    }
}

impl Service<Request<Body>> for Site {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let site = self.clone();
        Box::pin(async move {
            if request.uri().path() != "/robots.txt" {
                site.0.pages.lock().unwrap().push(request.uri().to_string());
                let mut response = Response::new(Full::default());
                *response.status_mut() = *site.0.pages_answer.lock().unwrap();
                return Ok(response);
            }
            site.0.readings.fetch_add(1, Ordering::SeqCst);
            let host = request.uri().host().unwrap_or_default().to_owned();
            let wait = site
                .0
                .slow
                .lock()
                .unwrap()
                .iter()
                .find(|(h, _)| *h == host)
                .map(|(_, wait)| *wait);
            sleep(wait.unwrap_or(Duration::from_millis(100))).await;
            // Later than the first poll, so that others have joined.
            if site.0.panics.load(Ordering::SeqCst) > 0 {
                site.0.panics.fetch_sub(1, Ordering::SeqCst);
                panic!("on purpose");
            }
            let mut response = Response::new(Full::from(site.0.robots.lock().unwrap().clone()));
            if let Some(status) = *site.0.status.lock().unwrap() {
                *response.status_mut() = status;
            }
            Ok(response)
        })
    }
}

fn identity() -> Identity {
    Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .user_token("Example-User")
        .contact("bot@example.com")
        .build()
        .unwrap()
}

fn client(site: &Site) -> Robots<Site> {
    RobotsLayer::with_identity(identity()).layer(site.clone())
}

fn page(url: &str) -> Request<Body> {
    Request::get(url)
        .header("user-agent", identity().user_agent(Default::default()))
        .body(Full::default())
        .unwrap()
}

async fn ask(client: &Robots<Site>, url: &str) -> Result<Response<Body>, BoxError> {
    client.clone().oneshot(page(url)).await
}

fn refusal(result: Result<Response<Body>, BoxError>) -> Refusal {
    let error = result.expect_err("a refusal");
    Refusal::find(error.as_ref())
        .expect("a refusal of a layer")
        .clone()
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_who_wait_cost_one_reading_though_they_give_up_one_after_another() {
    let site = Site::new("User-agent: *\nDisallow: /closed\n");
    site.0
        .slow
        .lock()
        .unwrap()
        .push(("a.example".to_owned(), Duration::from_secs(20)));
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
        (site.readings(), site.pages().len(), gave_up),
        (1, 100, 9_900)
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_is_no_unreachable_site() {
    let site = Site::new("");
    let client = client(&site);
    assert!(
        timeout(Duration::from_millis(50), ask(&client, "http://a.example/"))
            .await
            .is_err()
    );
    assert!(ask(&client, "http://a.example/").await.is_ok());
    assert_eq!(site.readings(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_slow_origin_delays_no_other() {
    let site = Site::new("");
    site.0
        .slow
        .lock()
        .unwrap()
        .push(("slow.example".to_owned(), Duration::from_secs(25)));
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
    let site = Site::new("");
    site.0
        .slow
        .lock()
        .unwrap()
        .push(("a.example".to_owned(), Duration::from_secs(1 << 30)));
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
    assert_eq!(site.readings(), 1);
    advance(Duration::from_secs(2)).await;
    site.0.slow.lock().unwrap().clear();
    assert!(ask(&client, "http://a.example/").await.is_ok());
    assert_eq!(site.readings(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_names_rule_line_group_and_whom_to_ask() {
    let site = Site::new("# ours\nUser-agent: ExampleBot\nDisallow: /closed\n");
    let client = client(&site);
    let refusal = refusal(ask(&client, "http://a.example/closed/x").await);
    assert_eq!(refusal.kind(), "disallowed");
    assert_eq!(refusal.rule().unwrap().line(), 3);
    assert_eq!(refusal.origin().unwrap().to_string(), "http://a.example");
    let told = refusal.explain().to_string();
    for part in [
        "line 3",
        "/closed",
        "https://www.example.com/bot.html",
        "bot@example.com",
    ] {
        assert!(told.contains(part), "{part:?} is missing in {told:?}");
    }
    assert!(site.pages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_rule_is_not_got_round_by_another_spelling() {
    let site = Site::new("User-agent: *\nDisallow: /closed\n");
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
async fn nothing_is_sent_without_a_name_or_a_permit() {
    let site = Site::new("");
    let client = client(&site);
    let unnamed = Request::get("http://a.example/")
        .body(Full::default())
        .unwrap();
    assert_eq!(
        refusal(client.clone().oneshot(unnamed).await).kind(),
        "unidentified"
    );
    let other = Request::get("http://a.example/")
        .header("user-agent", "OtherBot/1.0")
        .body(Full::default())
        .unwrap();
    assert!(client.clone().oneshot(other).await.is_err());
    assert_eq!(refusal(ask(&client, "/relative").await).kind(), "no_origin");
    let mut elsewhere = page("http://a.example/");
    elsewhere
        .headers_mut()
        .insert("host", "b.example".parse().unwrap());
    assert_eq!(
        refusal(client.clone().oneshot(elsewhere).await).kind(),
        "no_origin"
    );
    let nobody = RobotsLayer::new().layer(site.clone());
    assert_eq!(
        refusal(nobody.oneshot(page("http://a.example/")).await).kind(),
        "no_identity"
    );
    assert_eq!((site.readings(), site.pages().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn forgetting_an_origin_is_reading_it_again() {
    let site = Site::new("User-agent: *\nDisallow: /closed\n");
    let client = RobotsLayer::with_identity(identity())
        .max_origins(2)
        .layer(site.clone());
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
    assert!(site.readings() > 3 && site.readings() <= 9);
    assert!(site.pages().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_read_again_after_its_life_and_not_before() {
    let site = Site::new("User-agent: *\nAllow: /\n");
    let client = client(&site);
    ask(&client, "http://a.example/1").await.unwrap();
    site.turn_to("User-agent: *\nDisallow: /\n");
    advance(Duration::from_secs(3_599)).await;
    ask(&client, "http://a.example/2").await.unwrap();
    assert_eq!(site.readings(), 1);
    advance(Duration::from_secs(1)).await;
    assert_eq!(
        refusal(ask(&client, "http://a.example/3").await).kind(),
        "disallowed"
    );
    assert_eq!((site.readings(), site.pages().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_the_inner_service_meets_the_rules_of_its_start() {
    let site = Site::new("User-agent: *\nAllow: /\n");
    let gate = tower::limit::ConcurrencyLimit::new(site.clone(), 1);
    let client = RobotsLayer::with_identity(identity()).layer(gate.clone());
    client
        .clone()
        .oneshot(page("http://a.example/1"))
        .await
        .unwrap();
    // Somebody else holds the one permit of the inner service.
    let mut held = gate.clone();
    held.ready().await.unwrap();
    let waiting = tokio::spawn(client.clone().oneshot(page("http://a.example/2")));
    tokio::task::yield_now().await;
    site.turn_to("User-agent: *\nDisallow: /\n");
    advance(Duration::from_secs(3_601)).await;
    drop(held);
    assert_eq!(refusal(waiting.await.unwrap()).kind(), "disallowed");
    assert_eq!(site.pages(), ["http://a.example/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_reading_is_an_error_for_all_and_the_next_reads_anew() {
    let site = Site::new("");
    site.0.panics.store(1, Ordering::SeqCst);
    let client = client(&site);
    let (one, two) = tokio::join!(
        ask(&client, "http://a.example/1"),
        ask(&client, "http://a.example/2")
    );
    assert_eq!(refusal(one).kind(), "robots_unreachable");
    assert_eq!(refusal(two).kind(), "robots_unreachable");
    assert!(ask(&client, "http://a.example/3").await.is_ok());
    assert_eq!(site.readings(), 2);
}

#[tokio::test(start_paused = true)]
async fn each_scheme_host_and_port_has_its_own_file() {
    let site = Site::new("");
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
    assert_eq!(site.readings(), 1);
    for url in [
        "https://a.example/",
        "http://a.example:8080/",
        "http://[2001:db8::1]/",
        "http://xn--bcher-kva.example/",
    ] {
        let before = site.readings();
        ask(&client, url).await.unwrap();
        assert_eq!(site.readings(), before + 1, "{url}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_fetch_is_bound_by_a_group_that_names_it() {
    let site =
        Site::new("User-agent: *\nDisallow: /\n\nUser-agent: Example-User\nDisallow: /named\n");
    let session = Session::new();
    let fetch = |url: &str| {
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
    assert!(
        client
            .clone()
            .oneshot(fetch("http://a.example/x"))
            .await
            .is_ok()
    );
    assert_eq!(
        refusal(
            client
                .clone()
                .oneshot(fetch("http://a.example/named"))
                .await
        )
        .kind(),
        "disallowed"
    );
    assert_eq!(
        refusal(ask(&client, "http://a.example/x").await).kind(),
        "disallowed",
        "a crawl obeys *"
    );

    let site = Site::new("User-agent: *\nDisallow: /\n");
    let strict = RobotsLayer::with_identity(identity())
        .scope(RobotsScope::StarAndNamed)
        .layer(site.clone());
    assert_eq!(
        refusal(strict.oneshot(fetch("http://a.example/x")).await).kind(),
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
async fn a_store_spares_the_site_a_reading_after_a_restart_and_in_a_fleet() {
    let clock: Arc<dyn Clock> = Arc::new(PausedClock::new(
        SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30),
    ));
    let site = Site::new("User-agent: *\nDisallow: /closed\n");
    let store = Arc::new(Store::default());
    let process = || {
        let layer = RobotsLayer::with_identity(identity()).clock(Arc::clone(&clock));
        layer
            .store(Arc::clone(&store) as Arc<dyn RobotsStore>)
            .layer(site.clone())
    };
    // Two processes at once: one reads, the other waits for it.
    let (one, two) = (process(), process());
    let (first, second) = tokio::join!(
        ask(&one, "http://a.example/x"),
        ask(&two, "http://a.example/closed")
    );
    assert!(first.is_ok());
    assert_eq!(refusal(second).kind(), "disallowed");
    assert_eq!(site.readings(), 1);
    // A restart half an hour later knows the rules, and how old they are.
    advance(Duration::from_secs(1_800)).await;
    assert_eq!(
        refusal(ask(&process(), "http://a.example/closed").await).kind(),
        "disallowed"
    );
    assert_eq!(site.readings(), 1);
    advance(Duration::from_secs(1_801)).await;
    assert!(ask(&process(), "http://a.example/x").await.is_ok());
    assert_eq!(site.readings(), 2);
    // A store that hangs costs seconds, never a rule.
    store.down.store(true, Ordering::SeqCst);
    assert_eq!(
        refusal(ask(&process(), "http://a.example/closed").await).kind(),
        "disallowed"
    );
    assert_eq!(site.readings(), 3);
}

#[tokio::test(start_paused = true)]
async fn robots_txt_is_read_again_after_a_pause_and_after_a_run_of_blocks() {
    let site = Site::new("User-agent: *\nAllow: /\n");
    let hosts = Hosts::new(HostPolicy::new().jitter(0.0, 0.0));
    let client = Etiquette::new(identity())
        .hosts(hosts)
        .service(site.clone());
    let visit = |n: usize| {
        let request = Request::get(format!("http://a.example/{n}"))
            .body(Full::default())
            .unwrap();
        client.clone().oneshot(request)
    };
    *site.0.pages_answer.lock().unwrap() = StatusCode::FORBIDDEN;
    for n in 0..10 {
        assert_eq!(visit(n).await.unwrap().status(), 403);
    }
    assert_eq!(site.readings(), 1, "the tenth in a row blocks the client");
    let before = Instant::now();
    *site.0.pages_answer.lock().unwrap() = StatusCode::OK;
    assert_eq!(visit(10).await.unwrap().status(), 200);
    assert!(before.elapsed() >= Duration::from_secs(60));
    assert_eq!(site.readings(), 2, "asked again before the next page");
    // The run is over: what the site wishes may have changed with it.
    visit(11).await.unwrap();
    assert_eq!(site.readings(), 3);
    visit(12).await.unwrap();
    assert_eq!(site.readings(), 3);
    *site.0.pages_answer.lock().unwrap() = StatusCode::TOO_MANY_REQUESTS;
    site.turn_to("User-agent: *\nDisallow: /\n");
    let throttled = visit(13).await;
    assert_eq!(
        refused_kind(throttled),
        "disallowed",
        "the retry meets the rules of its start"
    );
    assert_eq!(site.readings(), 4);
}

fn refused_kind<T: std::fmt::Debug>(result: Result<T, BoxError>) -> &'static str {
    let error = result.expect_err("a refusal");
    Refusal::find(error.as_ref())
        .expect("a refusal of a layer")
        .kind()
}

#[tokio::test(start_paused = true)]
async fn unauthorized_closes_by_switch() {
    let site = Site::new("");
    *site.0.status.lock().unwrap() = Some(StatusCode::FORBIDDEN);
    assert!(ask(&client(&site), "http://a.example/").await.is_ok());
    let policy = RobotsPolicy::default().unauthorized_closes(true);
    let strict = RobotsLayer::with_identity(identity())
        .policy(policy)
        .layer(site.clone());
    assert_eq!(
        refusal(ask(&strict, "http://a.example/").await).kind(),
        "robots_unreachable"
    );
}
