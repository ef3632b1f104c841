//! What a restart may not forget: on paused time, with a wall clock that can be turned.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::host::HostRecord;
use etiquette_core::store::StoreFailed;
use etiquette_core::store::journal::{HostJournal, HostJournalFuture};
use etiquette_tests::client::{self, fetch, identity_builder};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Script, Site, SiteService};
use http::Request;
use http_body_util::{BodyExt, Empty};
use tokio::sync::Semaphore;
use tokio::time::{Instant, advance, sleep};
use tower::ServiceExt;
use tower_etiquette::disk::DiskStore;
use tower_etiquette::{
    Clock, Etiquette, Facts, HostBudgetLayer, HostPolicy, Hosts, PausedClock, Purpose, Refusal,
    RetryAfterLayer, Session,
};
use tower_layer::Layer;

/// A status, and the Retry-After with it.
type Given = (u16, Option<u64>);

const SECOND: Duration = Duration::from_secs(1);

/// A site that gives these answers one after the other, whatever it is asked for, and then 200.
fn site(given: &[Given]) -> SiteService {
    let given: Mutex<VecDeque<Given>> = Mutex::new(given.iter().copied().collect());
    let script = Script::call(move |arrival| {
        let next = given.lock().unwrap().pop_front();
        let answer = match next.unwrap_or((200, None)) {
            (status, Some(wait)) => Answer::retry_after(status, wait),
            (status, None) => Answer::status(status),
        };
        let body = match arrival.is_robots_txt() {
            true => "User-agent: *\n",
            false => "page",
        };
        answer.etag("\"a\"").body(body)
    });
    Site::builder().otherwise(script).in_process()
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    client::get(&format!("http://site.example{path}"))
}

fn clock() -> Arc<PausedClock> {
    paused::clock_at(1_784_550_000)
}

fn policy() -> HostPolicy {
    HostPolicy::new().jitter(0.0, 0.0)
}

/// Hosts as a new process has them.
fn hosts(journal: impl HostJournal, clock: &Arc<PausedClock>) -> Hosts {
    Hosts::builder()
        .policy(policy().max_wait(Duration::from_secs(3_600)))
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .journal(Arc::new(journal))
        .build()
}

/// Asks once through a budget alone; the status.
async fn ask(site: &SiteService, hosts: &Hosts) -> u16 {
    let budget = HostBudgetLayer::new(hosts.clone()).layer(site.clone());
    fetch(budget, get("/page")).await.unwrap().status
}

#[tokio::test(start_paused = true)]
async fn the_first_request_after_a_restart_waits_for_the_end_of_the_pause() {
    // How long the process is away, how far the wall clock jumps meanwhile, and when the first request may leave,
    // counted from the 429.
    for (away, jump, expected) in [
        (0, 0, 60),
        (20, 0, 60),
        (59, 0, 60),
        (60, 0, 60),
        (100, 0, 100),
        // Set back: later, and by no more than the pause was.
        (20, -10, 70),
        (20, -20, 80),
        (20, -86_400, 80),
        (100, -70, 130),
        // Set forward: nothing tells it from time that has passed.
        (20, 30, 30),
        (20, 86_400, 20),
    ] {
        let (folder, clock) = (TempFolder::new(), clock());
        let site = site(&[(429, Some(60))]);
        let first = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
        assert_eq!(ask(&site, &first).await, 429);
        drop(first);
        advance(Duration::from_secs(away)).await;
        clock.jump(jump);
        let second = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
        assert_eq!(ask(&site, &second).await, 200);
        let at = site.log().entries()[1].at;
        // Timers have a resolution of a millisecond.
        assert!(
            at >= expected * SECOND && at <= expected * SECOND + Duration::from_millis(2),
            "away {away}, jump {jump}: {at:?}"
        );
        // Slower afterwards, as without the restart.
        assert_eq!(ask(&site, &second).await, 200);
        let seen = site.log().entries();
        assert!(seen[2].at - seen[1].at >= 2 * SECOND, "{seen:?}");
    }
}

/// A clock that was set back before the restart is believed from then on: each further restart counts on.
#[tokio::test(start_paused = true)]
async fn a_clock_set_back_does_not_begin_the_pause_with_each_restart() {
    let (folder, clock) = (TempFolder::new(), clock());
    let site = site(&[(429, Some(60))]);
    ask(
        &site,
        &hosts(DiskStore::open(folder.path()).unwrap(), &clock),
    )
    .await;
    clock.jump(-86_400);
    for _ in 0..5 {
        advance(10 * SECOND).await;
        let store = DiskStore::open(folder.path()).unwrap();
        let hosts = hosts(store.clone(), &clock);
        // The record is written anew on the way; what is asked for behind it is synced after it.
        store.keep("other.example", None).await.unwrap();
        drop((hosts, store));
    }
    let last = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
    assert_eq!(ask(&site, &last).await, 200);
    let at = site.log().entries()[1].at;
    assert!(at >= 70 * SECOND && at <= 71 * SECOND, "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_pause_is_kept() {
    let refused = vec![(403, None); 10];
    for (answers, expected) in [
        (vec![(429, Some(60))], 60),
        (vec![(429, None)], 60),
        (vec![(503, Some(50))], 50),
        (vec![(503, None)], 30),
        (vec![(404, Some(40))], 40),
        // The second failure in a row, and the tenth refusal.
        (vec![(500, None), (500, None)], 30),
        (refused, 60),
    ] {
        let (folder, clock) = (TempFolder::new(), clock());
        let site = site(&answers);
        let first = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
        for (status, _) in &answers {
            assert_eq!(ask(&site, &first).await, *status);
        }
        drop(first);
        let second = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
        assert_eq!(ask(&site, &second).await, 200);
        let seen = site.log().entries();
        let waited = seen[answers.len()].at - seen[answers.len() - 1].at;
        assert!(
            waited >= expected * SECOND && waited <= (expected + 1) * SECOND,
            "{answers:?}: {waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn backoff_is_kept_until_it_is_forgiven_and_then_forgotten() {
    let (folder, clock) = (TempFolder::new(), clock());
    let site = site(&[(429, Some(1)), (200, None), (429, Some(1))]);
    let first = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
    for _ in 0..3 {
        ask(&site, &first).await;
    }
    drop(first);
    let uri = "http://site.example/".parse().unwrap();
    let backoff_level = |hosts: &Hosts| {
        hosts
            .snapshot(&uri)
            .unwrap()
            .map_or(0, |host| host.backoff_level)
    };
    let mut left = 2;
    for _ in 0..100 {
        let hosts = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
        assert!(
            backoff_level(&hosts) <= left,
            "{} of {left}",
            backoff_level(&hosts)
        );
        for _ in 0..4 {
            ask(&site, &hosts).await;
            sleep(Duration::from_secs(60)).await;
        }
        left = backoff_level(&hosts);
    }
    assert_eq!(left, 0);
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(store.hosts(), 0, "{:?}", store.records());
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_left_alone_for_two_days_is_forgotten() {
    let (folder, clock) = (TempFolder::new(), clock());
    let site = site(&[(429, Some(60))]);
    ask(
        &site,
        &hosts(DiskStore::open(folder.path()).unwrap(), &clock),
    )
    .await;
    advance(Duration::from_secs(23 * 3_600)).await;
    let store = DiskStore::open(folder.path()).unwrap();
    drop(hosts(store.clone(), &clock));
    assert_eq!(store.hosts(), 1);
    advance(Duration::from_secs(25 * 3_600)).await;
    drop(hosts(store.clone(), &clock));
    store.keep("other.example", None).await.unwrap();
    drop(store);
    assert_eq!(DiskStore::open(folder.path()).unwrap().hosts(), 0);
}

/// The whole stack, as `crawl --cache` has it.
fn stack(folder: &TempFolder, clock: &Arc<PausedClock>) -> Etiquette<DiskStore> {
    let identity = identity_builder().user_token("Example-Reader").build();
    let hosts = Hosts::builder()
        .policy(policy().max_wait(Duration::from_secs(3_600)))
        .clock(Arc::clone(clock) as Arc<dyn Clock>)
        .build();
    Etiquette::new(identity.unwrap())
        .hosts(hosts)
        .keep_in(DiskStore::open(folder.path()).unwrap())
        .retry_after(|layer| layer.attempts(std::num::NonZeroU32::MIN))
}

#[tokio::test(start_paused = true)]
async fn the_whole_stack_sends_nothing_before_the_end_of_a_pause_from_before() {
    // Whether robots.txt or the page is answered so.
    for (answers, paused_at) in [
        (&[(200, None), (429, Some(60))][..], 1),
        (&[(200, None), (503, Some(60))][..], 1),
        (&[(429, Some(60))][..], 0),
        (&[(503, Some(60))][..], 0),
    ] {
        let (folder, clock) = (TempFolder::new(), clock());
        let site = site(answers);
        let client = stack(&folder, &clock).service(site.clone());
        // A robots.txt that cannot be fetched ends in a refusal; the process may end before.
        drop(tokio::time::timeout(5 * SECOND, client.oneshot(get("/page"))).await);
        let before = site.log().entries();
        assert_eq!(before.len(), paused_at + 1, "{before:?}");
        let client = stack(&folder, &clock).service(site.clone());
        let mut tries = 0;
        let response = loop {
            match client.clone().oneshot(get("/page")).await {
                Ok(response) => break response,
                // Closed by a 503 of robots.txt: not before the time that it names.
                Err(error) => {
                    let refusal = Refusal::find(&*error).unwrap();
                    let left = refusal.retry_at().unwrap().duration_since(clock.now().wall);
                    sleep(left.unwrap()).await;
                }
            }
            tries += 1;
            assert!(tries < 3);
        };
        assert_eq!(response.status(), 200);
        let after = site.log().entries().split_off(before.len());
        let waited = after[0].at - before[paused_at].at;
        assert!(
            waited >= 60 * SECOND && waited <= 61 * SECOND,
            "{answers:?}: {waited:?}"
        );
        // Read again after a pause, also by the next process.
        let paths: Vec<&str> = after.iter().map(|entry| entry.path()).collect();
        assert_eq!(paths, ["/robots.txt", "/page"]);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_pause_the_next_process_has_robots_txt_and_responses() {
    let (folder, clock) = (TempFolder::new(), clock());
    let site = site(&[]);
    for run in 0..2 {
        let client = stack(&folder, &clock).service(site.clone());
        let response = client.oneshot(get("/page")).await.unwrap();
        let status = Facts::of(&response).and_then(Facts::cache_status).unwrap();
        assert_eq!(status.is_from_store(), run == 1);
        response.into_body().collect().await.unwrap();
    }
    assert_eq!(site.log().targets(), ["/robots.txt", "/page", "/page"]);
}

#[tokio::test(start_paused = true)]
async fn of_a_person_s_page_only_the_host_is_kept() {
    let (folder, clock) = (TempFolder::new(), clock());
    let site = site(&[(200, None), (429, Some(60))]);
    let client = stack(&folder, &clock).service(site.clone());
    let mut request = get("/a-private-path?and=query");
    let grant = Session::new().grant(request.uri()).unwrap();
    request.extensions_mut().insert(Purpose::UserFetch(grant));
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(response.status(), 429);
    drop(response);
    let bytes = std::fs::read(folder.join("etiquette.redb")).unwrap();
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    assert!(holds(b"site.example"));
    assert!(!holds(b"a-private-path") && !holds(b"and=query"));
    // The pause holds for the next process all the same.
    let client = stack(&folder, &clock).service(site.clone());
    let waiting = tokio::time::timeout(55 * SECOND, client.oneshot(get("/page")));
    assert!(waiting.await.is_err());
    assert_eq!(site.log().entries().len(), 2);
}

/// A journal that syncs when it may, or fails.
#[derive(Clone, Debug)]
struct Slow {
    may: Arc<Semaphore>,
    fails: bool,
    asked: Arc<AtomicUsize>,
}

impl Slow {
    fn new(may: usize, fails: bool) -> Self {
        Self {
            may: Arc::new(Semaphore::new(may)),
            fails,
            asked: Arc::default(),
        }
    }
}

impl HostJournal for Slow {
    fn records(&self) -> Vec<(String, Option<HostRecord>)> {
        // One that cannot be read.
        vec![("unknown.example".to_owned(), None)]
    }

    fn keep(&self, host: &str, _: Option<HostRecord>) -> HostJournalFuture {
        if host == "unknown.example" {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.asked.fetch_add(1, Ordering::SeqCst);
        let (may, fails) = (Arc::clone(&self.may), self.fails);
        Box::pin(async move {
            may.acquire().await.unwrap().forget();
            match fails {
                true => Err(StoreFailed::new("keep", "the disk is full")),
                false => Ok(()),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_hears_of_a_pause_that_a_crash_could_undo() {
    let journal = Slow::new(0, false);
    let hosts = hosts(journal.clone(), &clock());
    let site = site(&[(429, Some(60)), (200, None)]);
    for layers in ["budget", "retry-after"] {
        let site = site.clone();
        let answer = match layers {
            "budget" => {
                let client = HostBudgetLayer::new(hosts.clone()).layer(site.clone());
                tokio::spawn(async move { client.oneshot(get("/")).await.unwrap().status() })
            }
            _ => {
                let layer = RetryAfterLayer::new(
                    Hosts::builder().journal(Arc::new(journal.clone())).build(),
                );
                let client = layer
                    .attempts(std::num::NonZeroU32::MIN)
                    .layer(self::site(&[(503, Some(60))]));
                tokio::spawn(async move { client.oneshot(get("/")).await.unwrap().status() })
            }
        };
        sleep(SECOND).await;
        assert!(!answer.is_finished(), "{layers}");
        journal.may.add_permits(1);
        assert!(answer.await.unwrap().as_u16() > 400, "{layers}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_fails_costs_no_request_and_no_pause() {
    let (journal, clock) = (Slow::new(100, true), clock());
    let hosts = hosts(journal.clone(), &clock);
    let site = site(&[(429, Some(60))]);
    let began = Instant::now();
    assert_eq!(ask(&site, &hosts).await, 429);
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(ask(&site, &hosts).await, 200);
    assert!(site.log().entries()[1].at >= 60 * SECOND);
    // It is asked again with each answer until it takes it.
    assert_eq!(journal.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_hangs_holds_an_answer_for_five_seconds() {
    let hosts = hosts(Slow::new(0, false), &clock());
    let site = site(&[(429, Some(60))]);
    let began = Instant::now();
    assert_eq!(ask(&site, &hosts).await, 429);
    let held = began.elapsed();
    assert!(held >= 5 * SECOND && held <= 6 * SECOND, "{held:?}");
    // A host whose record cannot be read counts as one that asked for a pause.
    let uri = "http://unknown.example/".parse().unwrap();
    let unknown = hosts.snapshot(&uri).unwrap().unwrap();
    assert_eq!(unknown.backoff_level, 1);
    let now = hosts.clock().now();
    let left = unknown
        .paused_until
        .unwrap()
        .duration_since(now.wall)
        .unwrap();
    assert_eq!(left, 60 * SECOND - held);
}

#[tokio::test(start_paused = true)]
async fn callers_with_a_queue_of_their_own_wait_for_the_journal() {
    let (folder, clock) = (TempFolder::new(), clock());
    let first = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
    let origin = tower_etiquette::Origin::of(get("/").uri()).unwrap();
    let mut start = first.try_start(&origin).unwrap();
    start.answered(
        http::StatusCode::TOO_MANY_REQUESTS,
        &[(http::header::RETRY_AFTER, "60".parse().unwrap())]
            .into_iter()
            .collect(),
    );
    start.kept().await;
    drop(start);
    drop(first);
    let second = hosts(DiskStore::open(folder.path()).unwrap(), &clock);
    let refused = second.try_start(&origin).unwrap_err();
    let retry_at = refused.retry_at().unwrap();
    assert_eq!(retry_at, clock.now().wall + 60 * SECOND);
    assert!(matches!(refused, Refusal::Host(_)));
}

#[tokio::test]
async fn a_record_that_was_changed_on_the_disk_is_not_believed() {
    let (folder, clock) = (TempFolder::new(), Arc::new(tower_etiquette::TokioClock));
    let site = site(&[(429, Some(3_600))]);
    let store = DiskStore::open(folder.path()).unwrap();
    let client = HostBudgetLayer::new(
        Hosts::builder()
            .policy(policy())
            .journal(Arc::new(store.clone()))
            .build(),
    )
    .layer(site.clone());
    assert_eq!(client.oneshot(get("/")).await.unwrap().status(), 429);
    let record = store.records()[0].1.clone().unwrap().encode();
    drop(store);
    let file = folder.join("etiquette.redb");
    let mut bytes = std::fs::read(&file).unwrap();
    let offsets: Vec<usize> = (0..bytes.len() - record.len())
        .filter(|&at| bytes[at..].starts_with(&record))
        .collect();
    assert!(!offsets.is_empty());
    for at in offsets {
        // In the middle of the pause.
        bytes[at + 20] ^= 0x40;
    }
    std::fs::write(&file, bytes).unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(store.records(), [("site.example".to_owned(), None)]);
    let hosts = Hosts::builder()
        .policy(policy())
        .clock(clock)
        .journal(Arc::new(store.clone()))
        .build();
    let host = hosts.snapshot(get("/").uri()).unwrap().unwrap();
    assert!(host.paused_until.is_some() && host.backoff_level == 1);
    // It is written anew, so that the next restart does not begin again.
    store.keep("other.example", None).await.unwrap();
    assert!(store.records()[0].1.is_some());
}
