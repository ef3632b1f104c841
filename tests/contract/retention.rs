//! What a person asked for leaves no trace: stores that note each write see host names and robots.txt files, and nothing
//! of a page. A validator goes with the session that it came in.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::decide::robots_txt::StoredRobots;
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostReport, HostStore, HostStoreFuture, Outage, Seen, Shared,
};
use etiquette_core::store::{
    ResponseKey, ResponseStore, RobotsKey, RobotsStore, StoreFailed, StoreFuture, Variant,
};
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use tower::{ServiceExt, service_fn};
use tower_etiquette::conditional_cache::MemoryStore;
use tower_etiquette::{
    BoxedService, Etiquette, HostPolicy, Hosts, Identity, Purpose, Refusal, Session,
};

/// What was written to any store.
type Notes = Arc<Mutex<Vec<String>>>;

/// A store of responses that notes each write.
#[derive(Clone, Debug)]
struct Responses {
    inner: MemoryStore,
    notes: Notes,
}

impl Responses {
    fn note(&self, what: String) {
        self.notes.lock().unwrap().push(what);
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
        self.note(format!("put {key:?} {head:?} {body:?}"));
        self.inner.put(key, head, body, replaced).await
    }

    async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        self.note(format!("update {key:?} {head:?}"));
        self.inner.update(key, old, head).await
    }

    async fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> Result<(), StoreFailed> {
        self.note(format!("remove {key:?} {which:?}"));
        self.inner.remove(key, which).await
    }
}

/// A store of robots.txt files that notes each write.
#[derive(Debug)]
struct Files {
    kept: Mutex<HashMap<RobotsKey, StoredRobots>>,
    notes: Notes,
}

impl RobotsStore for Files {
    fn load<'a>(&'a self, key: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
        let found = self.kept.lock().unwrap().get(key).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn save<'a>(&'a self, key: &'a RobotsKey, record: StoredRobots) -> StoreFuture<'a, ()> {
        self.notes
            .lock()
            .unwrap()
            .push(format!("save {key:?} {record:?}"));
        self.kept.lock().unwrap().insert(key.clone(), record);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A store of hosts that admits everything and notes what it is told.
#[derive(Debug)]
struct Table(Notes);

impl Table {
    fn note(&self, what: String) {
        self.0.lock().unwrap().push(what);
    }
}

impl HostStore for Table {
    fn acquire<'a>(&'a self, seen: Seen<'a>, ask: AcquireRequest) -> HostStoreFuture<'a, Acquired> {
        self.note(format!("acquire {seen:?} {ask:?}"));
        Box::pin(std::future::ready(Ok(Acquired::Granted(Shared::default()))))
    }

    fn tell<'a>(&'a self, seen: Seen<'a>, news: HostReport) -> HostStoreFuture<'a, ()> {
        self.note(format!("tell {seen:?} {news:?}"));
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

/// One answer of the site.
#[derive(Clone, Debug, Default)]
struct Answer {
    status: u16,
    fields: Vec<(&'static str, &'static str)>,
}

/// The site, the client, and the stores between them.
pub(crate) struct World {
    pub(crate) client: BoxedService<Empty<Bytes>>,
    answer: Arc<Mutex<Answer>>,
    pub(crate) seen: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    responses: Notes,
    files: Notes,
    hosts: Notes,
}

/// Where everything that belongs to the page has the word "secret" in it.
pub(crate) const PAGE: &str = "http://site.example/secret/path?secret=query";

impl World {
    pub(crate) fn new() -> Self {
        let answer = Arc::new(Mutex::new(Answer::default()));
        let seen = Arc::<Mutex<Vec<(String, HeaderMap)>>>::default();
        let (told, log) = (Arc::clone(&answer), Arc::clone(&seen));
        let site = service_fn(move |request: Request<Empty<Bytes>>| {
            let url = request.uri().to_string();
            let robots = request.uri().path() == "/robots.txt";
            let conditional = request.headers().contains_key(IF_NONE_MATCH);
            log.lock().unwrap().push((url, request.headers().clone()));
            let mut answer = Response::builder();
            let body = if robots {
                answer = answer.header("etag", "\"robots\"");
                "User-agent: *\nDisallow: /elsewhere\n"
            } else {
                let mut told = told.lock().unwrap();
                for (name, value) in &told.fields {
                    answer = answer.header(*name, *value);
                }
                answer = answer.status(match told.status {
                    200 if conditional => 304,
                    status => status,
                });
                // Busy once.
                if matches!(told.status, 429 | 503) {
                    told.status = 200;
                }
                "a secret body"
            };
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok::<_, Infallible>(answer.body(Full::<Bytes>::from(body)).unwrap())
            }
        });
        let [responses, files, hosts] = [(); 3].map(|()| Notes::default());
        let policy = HostPolicy::new()
            .min_delay(Duration::from_millis(10))
            .latency_factor(0);
        let shared = Hosts::builder()
            .policy(policy)
            .store(Arc::new(Table(Arc::clone(&hosts))))
            .build();
        let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
            .user_token("Example-User")
            .build()
            .unwrap();
        let store = Responses {
            inner: MemoryStore::new(1 << 20),
            notes: Arc::clone(&responses),
        };
        let rules = Files {
            kept: Mutex::default(),
            notes: Arc::clone(&files),
        };
        let client = Etiquette::new(identity)
            .hosts(shared)
            .robots(|robots| robots.store(Arc::new(rules)))
            .cache(|cache| cache.store(store))
            .boxed(site);
        Self {
            client,
            answer,
            seen,
            responses,
            files,
            hosts,
        }
    }

    pub(crate) fn serve(&self, status: u16, fields: &[(&'static str, &'static str)]) {
        *self.answer.lock().unwrap() = Answer {
            status,
            fields: fields.to_vec(),
        };
    }

    async fn send(&self, mut request: Request<Empty<Bytes>>, purpose: Purpose) -> u16 {
        request.extensions_mut().insert(purpose);
        let answer = self.client.clone().oneshot(request).await;
        let answer = answer.unwrap_or_else(|error| {
            let refusal = Refusal::find(&*error).map(|refusal| refusal.explain().to_string());
            panic!("{refusal:?} after {:?}", self.answer.lock().unwrap())
        });
        let status = answer.status().as_u16();
        answer.into_body().collect().await.unwrap();
        // Whatever is still being told to a store is told by then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        status
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
        let request = Request::get(PAGE).body(Empty::new()).unwrap();
        self.send(request, Purpose::Crawl).await
    }

    /// The headers of the last request for the page, and how many there were.
    fn last(&self) -> (HeaderMap, usize) {
        let seen = self.seen.lock().unwrap();
        let pages: Vec<_> = seen.iter().filter(|(url, _)| url == PAGE).collect();
        (pages.last().unwrap().1.clone(), pages.len())
    }

    fn conditional(&self) -> bool {
        let (headers, _) = self.last();
        headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE)
    }

    pub(crate) fn nothing_was_kept(&self, what: &str) {
        assert_eq!(*self.responses.lock().unwrap(), [""; 0], "{what}");
        for notes in [&self.files, &self.hosts] {
            let notes = notes.lock().unwrap();
            assert!(!notes.is_empty(), "{what}: the stores are not in use");
            for note in notes.iter() {
                assert!(!note.contains("secret"), "{what}: {note}");
                assert!(note.contains("site.example"), "{what}: {note}");
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
        let world = World::new();
        let session = Session::new();
        // A site is busy once: a second backoff would outlast a person's patience.
        let mut next = status;
        for field in [None, Some(("x-secret", "1")), Some(("x-secret", "2"))] {
            for _ in 0..2 {
                world.serve(next, fields);
                let answer = world.fetch(&session, &Method::GET, field).await;
                assert_eq!(answer, came, "{what}");
                next = came;
            }
        }
        world.serve(200, fields);
        world.fetch(&session, &Method::HEAD, None).await;
        world.nothing_was_kept(what);
        // A session that is over keeps nothing for its grants, and nor does anybody else.
        let grant = session.grant(&PAGE.parse().unwrap()).unwrap();
        drop(session);
        world.serve(came, fields);
        let request = Request::get(PAGE).body(Empty::new()).unwrap();
        world.send(request, Purpose::UserFetch(grant)).await;
        world.nothing_was_kept(what);
    }
}

/// The notes are about something: a crawl of the same page is written down.
#[tokio::test(start_paused = true)]
async fn the_stores_note_a_crawl() {
    let world = World::new();
    world.serve(200, &VALIDATORS);
    world.crawl().await;
    world.crawl().await;
    let notes = world.responses.lock().unwrap();
    assert!(notes[0].starts_with("put ") && notes[0].contains("secret body"));
    assert!(notes[1].starts_with("update "), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_validator_goes_with_its_session() {
    let world = World::new();
    world.serve(200, &VALIDATORS);
    let session = Session::new();
    world.fetch(&session, &Method::GET, None).await;
    assert!(!world.conditional());
    world.fetch(&session, &Method::GET, None).await;
    assert!(world.conditional(), "the session has a validator");
    drop(session);
    for _ in 0..2 {
        world.fetch(&Session::new(), &Method::GET, None).await;
        assert!(!world.conditional(), "of a session that is over");
    }
    let (_, before) = world.last();
    world.crawl().await;
    assert_eq!(world.last().1, before + 1);
    assert!(!world.conditional(), "a crawl has none of it");
    // A stale copy of a crawl gives a person no validator either: the site could tell that they are one client.
    world.fetch(&Session::new(), &Method::GET, None).await;
    assert!(!world.conditional());
    world.crawl().await;
    assert!(world.conditional(), "the crawl has its own");
}
