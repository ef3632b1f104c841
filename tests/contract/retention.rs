//! What a person asked for leaves no trace: stores that record each write see host names and robots.txt files, and nothing
//! of a page. A validator goes with the session that it came in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::decide::robots_txt::StoredRobots;
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, HostStore, HostStoreFuture, LocalView, Outage, SharedView,
};
use etiquette_core::store::{
    ResponseKey, ResponseStore, RobotsKey, RobotsStore, StoreFailed, StoreFuture, Variant,
};
use etiquette_tests::client::{fetch, get, identity_builder};
use etiquette_tests::site::{Answer, Entry, Script, Site, SiteService};
use http::{Method, Request};
use http_body_util::Empty;
use tower_etiquette::conditional_cache::MemoryStore;
use tower_etiquette::{BoxedService, Etiquette, HostPolicy, Hosts, Purpose, Refusal, Session};

/// What was written to a store.
type Writes = Arc<Mutex<Vec<String>>>;

/// A store of responses that records each write.
#[derive(Clone, Debug)]
struct Responses {
    inner: MemoryStore,
    writes: Writes,
}

impl Responses {
    fn record(&self, what: String) {
        self.writes.lock().unwrap().push(what);
    }
}

impl ResponseStore for Responses {
    async fn get(&self, key: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
        self.inner.get(key).await
    }

    async fn body(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
    ) -> Result<Option<Bytes>, StoreFailed> {
        self.inner.body(key, head).await
    }

    async fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) -> Result<(), StoreFailed> {
        self.record(format!("put {key:?} {head:?} {body:?}"));
        self.inner.put(key, head, body, replaced).await
    }

    async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        self.record(format!("update {key:?} {head:?}"));
        self.inner.update(key, old, head).await
    }

    async fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> Result<(), StoreFailed> {
        self.record(format!("remove {key:?} {which:?}"));
        self.inner.remove(key, which).await
    }
}

/// A store of robots.txt files that records each write.
#[derive(Debug)]
struct Files {
    kept: Mutex<HashMap<RobotsKey, StoredRobots>>,
    writes: Writes,
}

impl RobotsStore for Files {
    fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
        let found = self.kept.lock().unwrap().get(key).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn save<'a>(&'a self, key: &'a RobotsKey, record: StoredRobots) -> StoreFuture<'a, ()> {
        self.writes
            .lock()
            .unwrap()
            .push(format!("save {key:?} {record:?}"));
        self.kept.lock().unwrap().insert(key.clone(), record);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A store of hosts that admits everything and records what it hears.
#[derive(Debug)]
struct Table(Writes);

impl Table {
    fn record(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl HostStore for Table {
    fn acquire<'a>(
        &'a self,
        seen: LocalView<'a>,
        ask: AcquireRequest,
    ) -> HostStoreFuture<'a, Acquired> {
        self.record(format!("acquire {seen:?} {ask:?}"));
        Box::pin(std::future::ready(Ok(Acquired::Granted(
            SharedView::default(),
        ))))
    }

    fn report<'a>(&'a self, seen: LocalView<'a>, news: HostReport) -> HostStoreFuture<'a, ()> {
        self.record(format!("tell {seen:?} {news:?}"));
        Box::pin(std::future::ready(Ok(())))
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn outage(&self) -> Outage {
        Outage::new(Duration::MAX, 1)
    }
}

/// Header fields of an answer.
type Fields<'a> = &'a [(&'static str, &'static str)];

/// The site, the client, and the stores between them.
pub(crate) struct Fixture {
    pub(crate) client: BoxedService<Empty<Bytes>>,
    answer: Arc<Mutex<Answer>>,
    site: SiteService,
    responses: Writes,
    files: Writes,
    hosts: Writes,
}

/// How long the site takes to answer.
const STEP: Duration = Duration::from_millis(20);

/// Where everything that belongs to the page has the word "secret" in it.
pub(crate) const PAGE: &str = "http://site.example/secret/path?secret=query";

impl Fixture {
    pub(crate) fn new() -> Self {
        let answer = Arc::new(Mutex::new(Answer::status(200)));
        let script = {
            let answer = Arc::clone(&answer);
            Script::call(move |_| {
                let mut next = answer.lock().unwrap();
                let answer = next.clone();
                // Busy once.
                if matches!(answer.get_status(), 429 | 503) {
                    *next = next.clone().with_status(200);
                }
                answer
            })
        };
        let rules = Answer::text("User-agent: *\nDisallow: /elsewhere\n").etag("\"robots\"");
        let site = Site::builder()
            .at("/robots.txt", rules.after(STEP))
            .otherwise(script)
            .in_process();
        let [responses, files, hosts] = [(); 3].map(|()| Writes::default());
        let policy = HostPolicy::new()
            .min_delay(Duration::from_millis(10))
            .latency_factor(0);
        let shared = Hosts::builder()
            .policy(policy)
            .store(Arc::new(Table(Arc::clone(&hosts))))
            .build();
        let identity = identity_builder().user_token("Example-User").build();
        let store = Responses {
            inner: MemoryStore::new(1 << 20),
            writes: Arc::clone(&responses),
        };
        let rules = Files {
            kept: Mutex::default(),
            writes: Arc::clone(&files),
        };
        let client = Etiquette::new(identity.unwrap())
            .hosts(shared)
            .robots(|robots| robots.store(Arc::new(rules)))
            .cache(|cache| cache.store(store))
            .boxed(site.clone());
        Self {
            client,
            answer,
            site,
            responses,
            files,
            hosts,
        }
    }

    pub(crate) fn serve(&self, status: u16, fields: &[(&'static str, &'static str)]) {
        let mut answer = Answer::status(status).body("a secret body").after(STEP);
        for (name, value) in fields {
            answer = answer.header(name, value);
        }
        *self.answer.lock().unwrap() = answer;
    }

    /// The requests for the page.
    pub(crate) fn pages(&self) -> Vec<Entry> {
        let mut pages = self.site.log().pages();
        pages.retain(|entry| entry.uri == PAGE);
        pages
    }

    async fn send(&self, mut request: Request<Empty<Bytes>>, purpose: Purpose) -> u16 {
        request.extensions_mut().insert(purpose);
        let page = fetch(self.client.clone(), request).await;
        let page = page.unwrap_or_else(|error| {
            let refusal = Refusal::find(&*error).map(|refusal| refusal.explain().to_string());
            panic!("{refusal:?} after {:?}", self.answer.lock().unwrap())
        });
        // Whatever is still on its way to a store has arrived by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        page.status
    }

    /// A page that a person asked for, with this field on the request.
    async fn fetch(&self, session: &Session, method: &Method, field: Option<(&str, &str)>) -> u16 {
        let grant = session.grant(&PAGE.parse().unwrap()).unwrap();
        let mut request = Request::builder().method(method.clone()).uri(PAGE);
        if let Some((name, value)) = field {
            request = request.header(name, value);
        }
        let request = request.body(Empty::new()).unwrap();
        self.send(request, Purpose::UserFetch(grant)).await
    }

    pub(crate) async fn crawl(&self) -> u16 {
        self.send(get(PAGE), Purpose::Crawl).await
    }

    /// Whether the last request for the page was conditional.
    fn conditional(&self) -> bool {
        self.pages().last().is_some_and(Entry::is_conditional)
    }

    pub(crate) fn nothing_was_kept(&self, what: &str) {
        assert_eq!(*self.responses.lock().unwrap(), [""; 0], "{what}");
        for writes in [&self.files, &self.hosts] {
            let writes = writes.lock().unwrap();
            assert!(!writes.is_empty(), "{what}: the stores are not in use");
            for write in writes.iter() {
                assert!(!write.contains("secret"), "{what}: {write}");
                assert!(write.contains("site.example"), "{what}: {write}");
            }
        }
    }
}

const VALIDATORS: [(&str, &str); 2] = [
    ("etag", "\"secret-tag\""),
    ("last-modified", "Tue, 01 Dec 2020 00:00:00 GMT"),
];

#[tokio::test(start_paused = true)]
async fn no_store_learns_what_a_person_read() {
    let fresh = [
        VALIDATORS[0],
        VALIDATORS[1],
        ("cache-control", "max-age=600"),
    ];
    let stale = [VALIDATORS[0], VALIDATORS[1], ("cache-control", "no-cache")];
    let varied = [
        VALIDATORS[0],
        ("vary", "x-secret"),
        ("cache-control", "max-age=600"),
    ];
    let moved = [
        ("location", "/secret/next"),
        ("cache-control", "max-age=600"),
    ];
    let busy = [("retry-after", "1"), ("etag", "\"secret-busy\"")];
    let cookie = [("set-cookie", "secret=1"), ("cache-control", "max-age=600")];
    let gone = [("cache-control", "max-age=600")];
    let cases: [(&str, u16, Fields<'_>, u16); 9] = [
        ("fresh", 200, &fresh, 200),
        ("to be validated", 200, &stale, 200),
        ("varied", 200, &varied, 200),
        ("moved", 301, &moved, 301),
        ("moved for now", 302, &moved, 302),
        ("429", 429, &busy, 200),
        ("503", 503, &busy, 200),
        ("cookie", 200, &cookie, 200),
        ("gone", 404, &gone, 404),
    ];
    for (what, status, fields, came) in cases {
        let fixture = Fixture::new();
        let session = Session::new();
        // A site is busy once: a second backoff would outlast a person's patience.
        let mut next = status;
        for field in [None, Some(("x-secret", "1")), Some(("x-secret", "2"))] {
            for _ in 0..2 {
                fixture.serve(next, fields);
                let answer = fixture.fetch(&session, &Method::GET, field).await;
                assert_eq!(answer, came, "{what}");
                next = came;
            }
        }
        fixture.serve(200, fields);
        fixture.fetch(&session, &Method::HEAD, None).await;
        fixture.nothing_was_kept(what);
        // A session that is over keeps nothing for its grants, and nor does anybody else.
        let grant = session.grant(&PAGE.parse().unwrap()).unwrap();
        drop(session);
        fixture.serve(came, fields);
        fixture.send(get(PAGE), Purpose::UserFetch(grant)).await;
        fixture.nothing_was_kept(what);
    }
}

/// The test above is about something: a crawl of the same page is written to the stores.
#[tokio::test(start_paused = true)]
async fn the_stores_record_a_crawl() {
    let fixture = Fixture::new();
    fixture.serve(200, &VALIDATORS);
    fixture.crawl().await;
    fixture.crawl().await;
    let writes = fixture.responses.lock().unwrap();
    assert!(writes[0].starts_with("put ") && writes[0].contains("secret body"));
    assert!(writes[1].starts_with("update "), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_validator_goes_with_its_session() {
    let fixture = Fixture::new();
    fixture.serve(200, &VALIDATORS);
    let session = Session::new();
    fixture.fetch(&session, &Method::GET, None).await;
    assert!(!fixture.conditional());
    fixture.fetch(&session, &Method::GET, None).await;
    assert!(fixture.conditional(), "the session has a validator");
    drop(session);
    for _ in 0..2 {
        fixture.fetch(&Session::new(), &Method::GET, None).await;
        assert!(!fixture.conditional(), "of a session that is over");
    }
    let before = fixture.pages().len();
    fixture.crawl().await;
    assert_eq!(fixture.pages().len(), before + 1);
    assert!(!fixture.conditional(), "a crawl has none of it");
    // A stale copy of a crawl gives a person no validator either: the site could tell that they are one client.
    fixture.fetch(&Session::new(), &Method::GET, None).await;
    assert!(!fixture.conditional());
    fixture.crawl().await;
    assert!(fixture.conditional(), "the crawl has its own");
}
