//! The folder of responses and robots.txt: what survives, what is refused, and what a killed process leaves.

mod crawl;
mod damage;
mod full;
mod kill;
mod kill_pauses;
mod pauses;
mod validators;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use etiquette_core::Now;
use etiquette_core::Origin;
use etiquette_core::decide::cache_policy::{Extent, ResponseTimes, Selecting, StoredResponse};
use etiquette_core::decide::robots_txt::{StoredCopy, StoredOutcome, StoredRobots, Validators};
use etiquette_core::store::{ResponseKey, ResponseStore, RobotsKey, RobotsStore};
use etiquette_tests::client::{fetch, get};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::site::{Answer, Site};
use http::{HeaderMap, StatusCode, Version};
use tower_etiquette::conditional_cache::{CacheStatus, ConditionalCacheLayer};
use tower_etiquette::disk::{DiskError, DiskStore};
use tower_layer::Layer;

/// The files of bodies in the folder of a store.
pub(crate) fn bodies(folder: &TempFolder) -> Vec<PathBuf> {
    std::fs::read_dir(folder.join("bodies"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect()
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
    let folder = TempFolder::new();
    let page = Answer::status(200).body("a page").etag("\"a\"");
    let site = Site::builder().otherwise(page).in_process();
    for run in 0..2 {
        let store = DiskStore::open(folder.path()).unwrap();
        let client = ConditionalCacheLayer::new()
            .store(store)
            .layer(site.clone());
        let page = fetch(client, get("http://site.example/")).await.unwrap();
        let status = page.facts.cache_status().unwrap();
        assert_eq!(matches!(status, CacheStatus::Validated { .. }), run == 1);
        assert_eq!(page.body, "a page");
    }
    assert_eq!(site.log().targets().len(), 2);
}

#[tokio::test]
async fn entries_and_deletes_survive_and_a_second_process_is_refused() {
    let folder = TempFolder::new();
    let store = DiskStore::open(folder.path()).unwrap();
    let refused = DiskStore::open(folder.path()).unwrap_err();
    assert_eq!(refused, DiskError::InUse(folder.path().to_owned()));
    for name in ["a", "b"] {
        store
            .put(&key(name), plain(), name.into(), &[])
            .await
            .unwrap();
    }
    store.remove(&key("a"), None).await.unwrap();
    drop(store);
    let store = DiskStore::open(folder.path()).unwrap();
    assert!(store.get(&key("a")).await.unwrap().is_empty());
    let found = store.get(&key("b")).await.unwrap();
    assert_eq!(found[0].head.headers()["etag"], "\"a\"");
    let body = store.body(&key("b"), &found[0].head).await.unwrap();
    assert_eq!(body.unwrap(), "b");
    assert_eq!(bodies(&folder).len(), 1);
}

#[tokio::test]
async fn variants_are_updated_and_replaced_with_their_bodies() {
    let folder = TempFolder::new();
    let store = DiskStore::open(folder.path()).unwrap();
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
    assert_eq!(bodies(&folder).len(), 1);
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
    let folder = TempFolder::new();
    let store = DiskStore::with_max_bytes(folder.path(), 50_000).unwrap();
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
    assert_eq!(bodies(&folder).len(), store.len());
    drop(store);
    let store = DiskStore::with_max_bytes(folder.path(), 20_000).unwrap();
    assert!(store.bytes() <= 20_000 && store.len() == 2);
}

#[tokio::test]
async fn damage_is_a_miss_that_is_reported() {
    let folder = TempFolder::new();
    let errors: Arc<AtomicUsize> = Arc::default();
    let open = || {
        let errors = Arc::clone(&errors);
        DiskStore::open(folder.path()).unwrap().on_error(move |_| {
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
        let file = bodies(&folder).pop().unwrap();
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
    std::fs::remove_file(bodies(&folder).pop().unwrap()).unwrap();
    let page = Answer::status(200).body("new");
    let site = Site::builder().otherwise(page).in_process();
    let client = ConditionalCacheLayer::new()
        .with_store(Arc::new(store))
        .not_again_within(Duration::MAX)
        .layer(site);
    let page = fetch(client, get("http://site.example/")).await.unwrap();
    assert_eq!(page.body, "new");
}

#[tokio::test]
async fn a_database_that_is_no_database_is_set_aside() {
    let folder = TempFolder::new();
    std::fs::write(folder.join("etiquette.redb"), vec![7; 10_000]).unwrap();
    let store = DiskStore::open(folder.path()).unwrap();
    store
        .put(&key("a"), plain(), "a".into(), &[])
        .await
        .unwrap();
    assert!(folder.join("etiquette.redb.damaged").is_file());
}

#[tokio::test]
async fn robots_txt_survives_with_its_bytes() {
    let folder = TempFolder::new();
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
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(store.load(&key).await.unwrap(), None);
    let rules = "User-agent: *\nDisallow: /\n";
    store.save(&key, record(Some(rules))).await.unwrap();
    store.save(&key, record(None)).await.unwrap();
    drop(store);
    let store = DiskStore::open(folder.path()).unwrap();
    assert_eq!(store.load(&key).await.unwrap(), Some(record(Some(rules))));
}
