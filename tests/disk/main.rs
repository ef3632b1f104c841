//! The folder of responses and robots.txt: what survives, what is refused, and what a killed process leaves.

mod crawl;
mod damage;
mod full;
mod kill;
mod kill_pauses;
mod pauses;
mod validators;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use etiquette_core::Now;
use etiquette_core::Origin;
use etiquette_core::decide::cache_policy::{Extent, ResponseTimes, Selecting, StoredResponse};
use etiquette_core::decide::robots_txt::{StoredCopy, StoredOutcome, StoredRobots, Validators};
use etiquette_core::store::{ResponseKey, ResponseStore, RobotsKey, RobotsStore};
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Empty, Full};
use tower::{ServiceExt, service_fn};
use tower_etiquette::Facts;
use tower_etiquette::conditional_cache::{CacheStatus, ConditionalCacheLayer};
use tower_etiquette::disk::{DiskError, DiskStore};
use tower_layer::Layer;

/// One ignored test of this program, as a process of its own whose lines are read.
pub(crate) fn child(name: &str) -> Command {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .stdout(Stdio::piped());
    child
}

/// A folder of a test's own, removed with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("etiquette-disk-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn bodies(&self) -> Vec<PathBuf> {
        std::fs::read_dir(self.0.join("bodies"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn key(name: &str) -> ResponseKey {
    ResponseKey::from_stored(&format!("http://site.example/{name}"))
}

pub(crate) fn head(fields: &[(&'static str, &str)], selecting: Selecting) -> StoredResponse {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, value.parse().unwrap());
    }
    let now = Now {
        monotonic: Instant::now(),
        wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_784_550_000),
    };
    let times = ResponseTimes {
        request_time: now,
        response_time: now,
        queued: Duration::ZERO,
    };
    StoredResponse::new(
        StatusCode::OK,
        Version::HTTP_11,
        &headers,
        selecting,
        Extent::Whole,
        &times,
        false,
    )
}

fn plain() -> StoredResponse {
    head(&[("etag", "\"a\"")], Selecting::default())
}

#[tokio::test]
async fn a_second_run_asks_conditionally() {
    let folder = Folder::new();
    let asked: Arc<AtomicUsize> = Arc::default();
    for run in 0..2 {
        let counting = Arc::clone(&asked);
        let site = service_fn(move |request: Request<Empty<Bytes>>| {
            counting.fetch_add(1, Ordering::SeqCst);
            let known = request.headers().contains_key("if-none-match");
            let answer = Response::builder().header("etag", "\"a\"");
            let answer = if known {
                answer.status(304).body(Full::default())
            } else {
                answer.body(Full::<Bytes>::from("a page"))
            };
            std::future::ready(answer)
        });
        let store = DiskStore::open(&folder.0).unwrap();
        let client = ConditionalCacheLayer::new().store(store).layer(site);
        let request = Request::get("http://site.example/")
            .body(Empty::new())
            .unwrap();
        let response = client.oneshot(request).await.unwrap();
        let status = Facts::of(&response).and_then(Facts::cache_status).unwrap();
        assert_eq!(matches!(status, CacheStatus::Validated { .. }), run == 1);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "a page");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn entries_and_deletes_survive_and_a_second_process_is_refused() {
    let folder = Folder::new();
    let store = DiskStore::open(&folder.0).unwrap();
    let refused = DiskStore::open(&folder.0).unwrap_err();
    assert_eq!(refused, DiskError::InUse(folder.0.clone()));
    for name in ["a", "b"] {
        store
            .put(&key(name), plain(), name.into(), &[])
            .await
            .unwrap();
    }
    store.remove(&key("a"), None).await.unwrap();
    drop(store);
    let store = DiskStore::open(&folder.0).unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_empty());
    let found = store.get(&key("b")).await.unwrap();
    assert_eq!(found[0].head.headers()["etag"], "\"a\"");
    let body = store.body(&key("b"), &found[0].head).await.unwrap();
    assert_eq!(body.unwrap(), "b");
    assert_eq!(folder.bodies().len(), 1);
}

#[tokio::test]
async fn variants_are_updated_and_replaced_with_their_bodies() {
    let folder = Folder::new();
    let store = DiskStore::open(&folder.0).unwrap();
    let of =
        |value: &str| Selecting::from_fields([("accept".into(), Some(value.as_bytes().into()))]);
    for value in ["x", "y"] {
        let head = head(&[("etag", "\"1\"")], of(value));
        store
            .put(&key("a"), head, value.to_owned().into(), &[])
            .await
            .unwrap();
    }
    let fresh = head(&[("etag", "\"2\"")], of("x"));
    store.update(&key("a"), &of("x"), fresh).await.unwrap();
    let found = store.get(&key("a")).await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].head.headers()["etag"], "\"2\"");
    assert_eq!(
        store
            .body(&key("a"), &found[0].head)
            .await
            .unwrap()
            .unwrap(),
        "x"
    );
    let both = [of("x"), of("y")];
    store
        .put(&key("a"), plain(), "z".into(), &both)
        .await
        .unwrap();
    assert_eq!(store.get(&key("a")).await.unwrap().len(), 1);
    assert_eq!(folder.bodies().len(), 1);
    // What was selected by a secret is not written.
    let secret = Selecting::from_fields([("cookie".into(), Some(b"a=b".as_slice().into()))]);
    store
        .put(&key("s"), head(&[], secret), "s".into(), &[])
        .await
        .unwrap();
    assert!(store.get(&key("s")).await.unwrap().is_empty());
}

#[tokio::test]
async fn it_stays_below_its_limit() {
    let folder = Folder::new();
    let store = DiskStore::with_max_bytes(&folder.0, 50_000).unwrap();
    for number in 0..20 {
        let body = Bytes::from(vec![b'x'; 9_000]);
        store
            .put(&key(&number.to_string()), plain(), body, &[])
            .await
            .unwrap();
        assert!(store.bytes() <= 50_000);
    }
    let body = Bytes::from(vec![b'x'; 60_000]);
    store.put(&key("large"), plain(), body, &[]).await.unwrap();
    assert!(store.get(&key("large")).await.unwrap().is_empty());
    assert!(store.get(&key("0")).await.unwrap().is_empty());
    assert_eq!(store.get(&key("19")).await.unwrap().len(), 1);
    assert_eq!(folder.bodies().len(), store.len());
    drop(store);
    let store = DiskStore::with_max_bytes(&folder.0, 20_000).unwrap();
    assert!(store.bytes() <= 20_000 && store.len() == 2);
}

#[tokio::test]
async fn damage_is_a_miss_that_is_reported() {
    let folder = Folder::new();
    let errors: Arc<AtomicUsize> = Arc::default();
    let open = || {
        let errors = Arc::clone(&errors);
        DiskStore::open(&folder.0).unwrap().on_error(move |_| {
            errors.fetch_add(1, Ordering::SeqCst);
        })
    };
    let store = open();
    for (damage, name) in [&b"a pagf"[..], b"a pag", b""]
        .into_iter()
        .zip(["a", "b", "c"])
    {
        store
            .put(&key(name), plain(), "a page".into(), &[])
            .await
            .unwrap();
        let file = folder.bodies().pop().unwrap();
        std::fs::write(&file, damage).unwrap();
        let found = store.get(&key(name)).await.unwrap();
        assert!(
            store.body(&key(name), &found[0].head).await.is_err(),
            "{name}"
        );
        assert!(store.get(&key(name)).await.unwrap().is_empty());
    }
    assert_eq!(errors.load(Ordering::SeqCst), 3);
    // A body that is gone is a miss of the layer too.
    store
        .put(
            &key(""),
            head(
                &[
                    ("cache-control", "max-age=600"),
                    ("date", "Thu, 01 Jan 2099 00:00:00 GMT"),
                ],
                Selecting::default(),
            ),
            "old".into(),
            &[],
        )
        .await
        .unwrap();
    std::fs::remove_file(folder.bodies().pop().unwrap()).unwrap();
    let site = service_fn(|_: Request<Empty<Bytes>>| async {
        Response::builder().body(Full::<Bytes>::from("new"))
    });
    let client = ConditionalCacheLayer::new()
        .with_store(Arc::new(store))
        .not_again_within(Duration::MAX)
        .layer(site);
    let request = Request::get("http://site.example/")
        .body(Empty::new())
        .unwrap();
    let response = client.oneshot(request).await.unwrap();
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        "new"
    );
}

#[tokio::test]
async fn a_database_that_is_no_database_is_set_aside() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("etiquette.redb"), vec![7; 10_000]).unwrap();
    let store = DiskStore::open(&folder.0).unwrap();
    store
        .put(&key("a"), plain(), "a".into(), &[])
        .await
        .unwrap();
    assert!(folder.0.join("etiquette.redb.damaged").is_file());
}

#[tokio::test]
async fn robots_txt_survives_with_its_bytes() {
    let folder = Folder::new();
    let key = RobotsKey {
        origin: Origin::of(&"http://site.example".parse().unwrap()).unwrap(),
        token: "ExampleBot".parse().unwrap(),
    };
    let record = |bytes: Option<&'static str>| StoredRobots {
        copy: Some(StoredCopy {
            outcome: StoredOutcome::Rules(bytes.map(|text| Bytes::from_static(text.as_bytes()))),
            validators: Validators::default(),
            confirmed: SystemTime::UNIX_EPOCH + Duration::from_secs(1_784_550_000),
            life: Duration::from_secs(3_600),
        }),
        failure: None,
    };
    let store = DiskStore::open(&folder.0).unwrap();
    assert_eq!(store.load(&key).await.unwrap(), None);
    let rules = "User-agent: *\nDisallow: /\n";
    store.save(&key, record(Some(rules))).await.unwrap();
    store.save(&key, record(None)).await.unwrap();
    drop(store);
    let store = DiskStore::open(&folder.0).unwrap();
    assert_eq!(store.load(&key).await.unwrap(), Some(record(Some(rules))));
}
