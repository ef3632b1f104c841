//! APIs under a key: a limit of their own, beside the budget of the host's pages, under the pauses of the host.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::host::PaceReason;
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, HostStore, HostStoreFuture, LocalView, Outage, SharedView,
};
use etiquette_tests::site::SiteService;
use http::{Request, header};
use http_body_util::Empty;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_etiquette::purpose::{Api, ApiKey, ApiLimit};
use tower_etiquette::{BoxError, Facts, HostPolicy, Hosts, Purpose, Refusal};

use crate::order::stack;
use crate::site::{Client, DELAY, PAUSE, SITE, STEP, arrivals, get, hosts, read};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

fn declare(prefix: &str, limit: ApiLimit) -> Api {
    let docs = "http://site.example/docs";
    Api::new(prefix, ApiKey::header(header::AUTHORIZATION), limit, docs).unwrap()
}

/// 5,000 an hour, ten of them at once after idleness, four under way.
fn api() -> Api {
    let limit = ApiLimit::new(number(5_000), Duration::from_secs(3_600))
        .burst(number(10))
        .max_in_flight(number(4));
    declare(SITE, limit)
}

fn request(api: &Api, path: &str) -> Request<Empty<Bytes>> {
    let request = Request::get(format!("{SITE}{path}"))
        .header(header::AUTHORIZATION, "k")
        .extension(Purpose::Api(api.clone()));
    request.body(Empty::new()).unwrap()
}

/// Asks the API for `path` and reads the answer to its end.
async fn ask(client: &Client, api: &Api, path: &str) -> Result<u16, BoxError> {
    read(client, request(api, path)).await
}

fn spawn(client: &Client, api: &Api, path: impl Into<String>) -> JoinHandle<Result<u16, BoxError>> {
    let (client, api, path) = (client.clone(), api.clone(), path.into());
    tokio::spawn(async move { ask(&client, &api, &path).await })
}

/// When the paths under `prefix` arrived, in milliseconds since the site is there.
fn starts(site: &SiteService, prefix: &str) -> Vec<u128> {
    let arrivals = arrivals(site, prefix).into_iter();
    arrivals.map(|(_, at)| at).collect()
}

const LAYERS: [&[&str]; 3] = [
    &["budget"],
    &["retry_after", "budget"],
    &["budget", "retry_after"],
];

#[tokio::test(start_paused = true)]
async fn an_api_keeps_its_limit_and_pages_theirs() {
    for layers in LAYERS {
        let (client, site) = stack(layers, &hosts());
        let apis: Vec<_> = (0..12)
            .map(|n| spawn(&client, &api(), format!("/api/{n}")))
            .collect();
        for n in 0..3 {
            assert_eq!(get(&client, &format!("/page/{n}")).await.unwrap(), 200);
        }
        for api in apis {
            assert_eq!(api.await.unwrap().unwrap(), 200);
        }
        // Four at once, each of them two steps long, until the ten tokens are spent.
        let expected = [0, 0, 0, 0, 80, 80, 80, 80, 160, 160, 720, 1_440];
        assert_eq!(starts(&site, "/api/"), expected, "{layers:?}");
        // First come, first served, among the requests to the API.
        let order = arrivals(&site, "/api/").into_iter();
        let order: Vec<_> = order.map(|(path, _)| path).collect();
        let expected: Vec<_> = (0..12).map(|n| format!("/api/{n}")).collect();
        assert_eq!(order, expected, "{layers:?}");
        let page = (DELAY + 2 * STEP).as_millis();
        assert_eq!(starts(&site, "/page/"), [0, page, 2 * page]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_of_the_api_pauses_the_host_and_slows_the_api() {
    let (client, site) = stack(&["budget"], &hosts());
    assert_eq!(ask(&client, &api(), "/busy").await.unwrap(), 429);
    let apis: Vec<_> = (0..3)
        .map(|n| spawn(&client, &api(), format!("/api/{n}")))
        .collect();
    let page = get(&client, "/page").await.unwrap();
    assert_eq!(page, 200);
    for api in apis {
        api.await.unwrap().unwrap();
    }
    let back = (STEP + PAUSE).as_millis();
    assert_eq!(starts(&site, "/page"), [back]);
    // One start in the second before the complaint: that second is the delay now, at half the rate, and no burst.
    let spaced = [back, back + 2_000, back + 4_000];
    assert_eq!(starts(&site, "/api/"), spaced);
}

#[tokio::test(start_paused = true)]
async fn a_429_of_a_page_holds_the_api() {
    let (client, site) = stack(&["budget"], &hosts());
    let page = tokio::spawn({
        let client = client.clone();
        async move { get(&client, "/busy").await.unwrap() }
    });
    sleep(STEP + STEP / 4).await;
    assert_eq!(ask(&client, &api(), "/api/0").await.unwrap(), 200);
    assert_eq!(page.await.unwrap(), 429);
    assert_eq!(starts(&site, "/api/"), [(STEP + PAUSE).as_millis()]);
}

#[tokio::test(start_paused = true)]
async fn the_retry_of_an_api_request_takes_a_token_too() {
    let (client, site) = stack(&["retry_after", "budget"], &hosts());
    let busy = spawn(&client, &api(), "/busy");
    sleep(2 * STEP).await;
    let next = spawn(&client, &api(), "/api/0");
    assert_eq!(busy.await.unwrap().unwrap(), 200);
    assert_eq!(next.await.unwrap().unwrap(), 200);
    let back = (STEP + PAUSE).as_millis();
    let mut all = starts(&site, "/");
    all.sort_unstable();
    assert_eq!(all, [0, back, back + 2_000]);
}

#[tokio::test(start_paused = true)]
async fn without_its_key_a_request_is_paced_as_a_page() {
    let (client, site) = stack(&["budget"], &hosts());
    for _ in 0..3 {
        let mut bare = request(&api(), "/api/0");
        bare.headers_mut().remove(header::AUTHORIZATION);
        read(&client, bare).await.unwrap();
    }
    let page = (DELAY + 2 * STEP).as_millis();
    assert_eq!(starts(&site, "/api/"), [0, page, 2 * page]);
}

#[tokio::test(start_paused = true)]
async fn whatever_is_dropped_gives_its_permit_back() {
    let limit = ApiLimit::new(number(1), Duration::from_secs(1)).burst(number(3));
    let api = declare(SITE, limit);
    let hosts = hosts();
    let (client, site) = stack(&["budget"], &hosts);
    // The permit is the body's.
    let held = client.clone().oneshot(request(&api, "/api/0")).await;
    let held = held.unwrap();
    assert_eq!(
        Facts::of(&held).unwrap().pace().unwrap().reason,
        PaceReason::ApiLimit
    );
    let cancelled = spawn(&client, &api, "/api/1");
    let waiting = spawn(&client, &api, "/api/2");
    sleep(Duration::from_millis(460)).await;
    assert_eq!(hosts.totals().waiting, 2);
    cancelled.abort();
    drop(held);
    // It comes before the one that is under way then, and is dropped without an answer.
    sleep(Duration::from_millis(10)).await;
    waiting.abort();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(ask(&client, &api, "/api/3").await.unwrap(), 200);
    assert_eq!(ask(&client, &api, "/api/4").await.unwrap(), 200);
    // Three tokens were taken at 0, 500 and 520, the fourth comes a second after the bucket was begun.
    assert_eq!(starts(&site, "/api/"), [0, 500, 520, 1_000]);
    let totals = hosts.totals();
    assert_eq!((totals.in_flight, totals.waiting), (0, 0));
    sleep(Duration::from_secs(10)).await;
    assert_eq!(hosts.totals().hosts, 0, "a full bucket is forgotten");
}

#[tokio::test(start_paused = true)]
async fn the_queue_of_an_api_is_bounded_and_refuses_what_comes_too_late() {
    let limit = ApiLimit::new(number(1), Duration::from_secs(60)).burst(number(2));
    let api = declare(SITE, limit);
    let policy = HostPolicy::new().queue_limit(2).latency_factor(0);
    let (client, _) = stack(&["budget"], &Hosts::new(policy.clone()));
    let begin = Instant::now();
    let tasks: Vec<_> = (0..4)
        .map(|n| spawn(&client, &api, format!("/api/{n}")))
        .collect();
    let mut came = Vec::new();
    for task in tasks {
        let kind = |error: BoxError| Refusal::find(&*error).unwrap().kind();
        came.push((task.await.unwrap()).map_err(kind));
    }
    // One starts, two wait: for a permit, and for a token.
    assert_eq!(came, [Ok(200), Ok(200), Ok(200), Err("queue_full")]);
    assert_eq!(begin.elapsed(), Duration::from_secs(60) + 2 * STEP);

    // At 60, 120 and 180 s the next tokens come; the second and third are too late for those who may wait 100 s.
    let (client, _) = stack(
        &["budget"],
        &Hosts::new(policy.queue_limit(9).max_wait(Duration::from_secs(100))),
    );
    let begin = Instant::now();
    let tasks: Vec<_> = (0..5)
        .map(|n| spawn(&client, &api, format!("/api/{n}")))
        .collect();
    let mut refused = Vec::new();
    for task in tasks {
        if let Err(error) = task.await.unwrap() {
            assert!(Refusal::find(&*error).unwrap().retry_at().is_some());
            refused.push(begin.elapsed());
        }
    }
    assert_eq!(refused.len(), 2);
    assert!(refused[0] <= Duration::from_secs(60) + 2 * STEP);
}

#[tokio::test(start_paused = true)]
async fn too_many_apis_of_one_host_are_refused_and_idle_ones_make_room() {
    let limit = ApiLimit::new(number(1), Duration::from_secs(60));
    let (client, _) = stack(&["budget"], &hosts());
    let named = |n: u32| (declare(&format!("{SITE}/v{n}/"), limit), format!("/v{n}/"));
    for n in 0..16 {
        let (api, path) = named(n);
        assert_eq!(ask(&client, &api, &path).await.unwrap(), 200);
    }
    let (api, path) = named(16);
    let error = ask(&client, &api, &path).await.unwrap_err();
    assert_eq!(Refusal::find(&*error).unwrap().kind(), "hosts_full");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(ask(&client, &api, &path).await.unwrap(), 200);
}

/// A store that grants everything and records under which policy it was asked.
#[derive(Debug, Default)]
struct RecordingStore(Mutex<Vec<HostPolicy>>);

impl HostStore for RecordingStore {
    fn acquire<'a>(
        &'a self,
        seen: LocalView<'a>,
        ask: AcquireRequest,
    ) -> HostStoreFuture<'a, Acquired> {
        assert_eq!(ask.options.api, None, "a store knows no limits of APIs");
        self.0.lock().unwrap().push(seen.policy.clone());
        Box::pin(async { Ok(Acquired::Granted(SharedView::default())) })
    }

    fn report<'a>(&'a self, _: LocalView<'a>, _: HostReport) -> HostStoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn outage(&self) -> Outage {
        Outage::new(Duration::MAX, 2)
    }
}

#[tokio::test(start_paused = true)]
async fn where_hosts_are_shared_the_stricter_of_budget_and_limit_holds() {
    let store = Arc::new(RecordingStore::default());
    let policy = HostPolicy::new().latency_factor(0).max_in_flight(number(3));
    let hosts = Hosts::builder()
        .policy(policy)
        .store(Arc::clone(&store) as Arc<dyn HostStore>)
        .build();
    let limit = ApiLimit::new(number(60), Duration::from_secs(3_600))
        .burst(number(10))
        .max_in_flight(number(2));
    let api = declare(SITE, limit);
    let (client, site) = stack(&["budget"], &hosts);
    assert_eq!(get(&client, "/page").await.unwrap(), 200);
    for n in 0..2 {
        let path = format!("/api/{n}");
        assert_eq!(ask(&client, &api, &path).await.unwrap(), 200);
    }
    assert_eq!(starts(&site, "/api/"), [60_000, 120_000]);
    let asked = store.0.lock().unwrap();
    let asked: Vec<_> = asked
        .iter()
        .map(|p| (p.get_min_delay(), p.get_max_in_flight()))
        .collect();
    let (page, api) = (
        (Duration::from_secs(1), number(3)),
        (Duration::from_secs(60), number(2)),
    );
    assert_eq!(asked, [page, api, api]);
}
