//! Validators without bodies, for callers with a database of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::Extent;
use etiquette_core::store::{ResponseKey, ResponseStore};
use etiquette_tests::client::{self, fetch};
use etiquette_tests::folder::TempFolder;
use etiquette_tests::site::{Answer, Entry, Script, Site, SiteService};
use http::Request;
use http_body_util::Empty;
use tower::ServiceExt;
use tower_etiquette::conditional_cache::{CacheStatus, ConditionalCacheLayer, MemoryStore};
use tower_etiquette::disk::DiskStore;
use tower_etiquette::{Purpose, Session};
use tower_layer::Layer;

/// A site of versions, each with a tag and a body of its own. `/dated` has no tag, `/plain` no validator.
#[derive(Clone)]
struct Versions {
    site: SiteService,
    version: Arc<AtomicU64>,
    down: Arc<AtomicBool>,
    /// How many requests were looked at already.
    looked_at: Arc<AtomicUsize>,
}

const LONG: usize = 200_000;

impl Versions {
    fn new() -> Self {
        let version: Arc<AtomicU64> = Arc::default();
        let down: Arc<AtomicBool> = Arc::default();
        let script = {
            let (version, down) = (Arc::clone(&version), Arc::clone(&down));
            Script::call(move |arrival| {
                if down.load(Ordering::SeqCst) {
                    return Answer::hang_up();
                }
                Self::answer(arrival.path(), version.load(Ordering::SeqCst))
            })
        };
        Self {
            site: Site::builder().otherwise(script).in_process(),
            version,
            down,
            looked_at: Arc::default(),
        }
    }

    fn answer(path: &str, version: u64) -> Answer {
        let answer = match path {
            "/long" => Answer::status(200).body(vec![b'x'; LONG]),
            _ => Answer::status(200).body(format!("version {version}")),
        };
        match path {
            "/dated" => answer.last_modified(&format!("Sun, 01 Nov 2026 08:00:{version:02} GMT")),
            "/plain" => answer.header("x-version", &version.to_string()),
            "/fresh" => answer
                .etag(&format!("\"{version}\""))
                .header("cache-control", "max-age=600"),
            _ => answer.etag(&format!("\"{version}\"")),
        }
    }

    /// The conditions of the requests since the last look.
    fn conditions(&self) -> Vec<Option<String>> {
        let seen = self.site.log().entries();
        let before = self.looked_at.swap(seen.len(), Ordering::SeqCst);
        let condition = |entry: &Entry| {
            let value = entry.headers.get("if-none-match");
            let value = value.or_else(|| entry.headers.get("if-modified-since"))?;
            Some(value.to_str().unwrap().to_owned())
        };
        seen[before..].iter().map(condition).collect()
    }
}

struct Got {
    status: u16,
    body: Bytes,
    cache: CacheStatus,
}

async fn get<St: ResponseStore>(
    site: &Versions,
    layer: &ConditionalCacheLayer<St>,
    request: Request<Empty<Bytes>>,
) -> Got {
    let client = layer.layer(site.site.clone());
    let page = fetch(client, request).await.unwrap();
    Got {
        status: page.status,
        cache: page.facts.cache_status().unwrap(),
        body: page.body,
    }
}

fn page(path: &str) -> Request<Empty<Bytes>> {
    client::get(&format!("http://site.example{path}"))
}

fn key(path: &str) -> ResponseKey {
    ResponseKey::of(page(path).uri()).unwrap()
}

#[tokio::test]
async fn what_the_caller_has_is_a_304_and_what_is_new_a_page() {
    let (site, folder) = (Versions::new(), TempFolder::new());
    for path in ["/tag", "/dated", "/long"] {
        site.version.store(1, Ordering::SeqCst);
        // The next process knows what this one has handed on.
        let mut known = None;
        for (version, status) in [(1, 200), (1, 304), (2, 200), (2, 304), (2, 304)] {
            site.version.store(version, Ordering::SeqCst);
            let layer = ConditionalCacheLayer::new()
                .store(DiskStore::open(folder.path()).unwrap())
                .max_body(LONG / 4)
                .validators_only();
            let got = get(&site, &layer, page(path)).await;
            assert_eq!(got.status, status, "{path} {version}");
            assert_eq!(got.body.is_empty(), status == 304);
            let asked = site.conditions();
            assert_eq!(asked.len(), 1);
            assert_eq!(asked[0].is_some(), known.is_some(), "{path} {version}");
            known = Some(version);
            let validated = matches!(got.cache, CacheStatus::Validated { .. });
            assert_eq!(validated, status == 304, "{path}: {:?}", got.cache);
        }
        let store = DiskStore::open(folder.path()).unwrap();
        let kept = store.get(&key(path)).await.unwrap();
        assert_eq!(kept.len(), 1);
        assert_eq!(
            (kept[0].head.extent(), kept[0].length),
            (Extent::HeadOnly, 0)
        );
    }
}

#[tokio::test]
async fn fresh_ones_cost_no_request_and_a_site_that_is_down_changes_nothing() {
    let site = Versions::new();
    let layer = ConditionalCacheLayer::new().validators_only();
    assert_eq!(get(&site, &layer, page("/fresh")).await.status, 200);
    let got = get(&site, &layer, page("/fresh")).await;
    assert!(matches!(
        (got.status, got.cache),
        (304, CacheStatus::Hit { .. })
    ));
    assert_eq!(get(&site, &layer, page("/tag")).await.status, 200);
    assert_eq!(site.conditions(), [None, None]);
    site.down.store(true, Ordering::SeqCst);
    let got = get(&site, &layer, page("/tag")).await;
    assert!(matches!(
        (got.status, got.cache),
        (304, CacheStatus::StaleOnError { .. })
    ));
    site.down.store(false, Ordering::SeqCst);
    // Who has lost its copy says so, and gets the whole.
    layer.get_store().remove(&key("/tag"), None).await.unwrap();
    let got = get(&site, &layer, page("/tag")).await;
    assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    assert_eq!(site.conditions(), [Some("\"0\"".to_owned()), None]);
}

#[tokio::test]
async fn without_a_validator_nothing_is_kept() {
    let site = Versions::new();
    let layer = ConditionalCacheLayer::new().validators_only();
    for _ in 0..2 {
        let got = get(&site, &layer, page("/plain")).await;
        assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    }
    assert!(layer.get_store().is_empty());
    assert_eq!(site.conditions(), [None, None]);
}

#[tokio::test]
async fn a_body_that_was_not_read_to_its_end_is_not_known() {
    let site = Versions::new();
    let layer = ConditionalCacheLayer::new().validators_only();
    let client = layer.layer(site.site.clone());
    let response = client.oneshot(page("/long")).await.unwrap();
    drop(response);
    assert_eq!(get(&site, &layer, page("/long")).await.status, 200);
    assert_eq!(site.conditions(), [None, None]);
}

#[tokio::test]
async fn own_conditions_ranges_heads_and_people_are_answered_as_ever() {
    let site = Versions::new();
    let layer = ConditionalCacheLayer::new().validators_only();
    assert_eq!(get(&site, &layer, page("/tag")).await.status, 200);
    let with = |name: &'static str, value: &'static str| {
        let mut request = page("/tag");
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    let got = get(&site, &layer, with("if-none-match", "\"other\"")).await;
    assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    let got = get(&site, &layer, with("range", "bytes=0-3")).await;
    assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    let mut head = page("/tag");
    *head.method_mut() = http::Method::HEAD;
    assert_eq!(get(&site, &layer, head).await.status, 200);
    // A person has no database: the body is kept in the session.
    let session = Session::new();
    for _ in 0..2 {
        let mut request = page("/tag");
        let grant = session.grant(request.uri()).unwrap();
        request.extensions_mut().insert(Purpose::UserFetch(grant));
        let got = get(&site, &layer, request).await;
        assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    }
    assert_eq!(get(&site, &layer, page("/tag")).await.status, 304);
}

/// One store under a layer that keeps bodies and one that does not: neither takes the other's entries for its own.
#[tokio::test]
async fn a_layer_that_needs_bodies_does_not_serve_heads() {
    let (site, store) = (Versions::new(), Arc::new(MemoryStore::default()));
    let bare = ConditionalCacheLayer::new()
        .with_store(Arc::clone(&store))
        .validators_only();
    let full = ConditionalCacheLayer::new().with_store(Arc::clone(&store));
    assert_eq!(get(&site, &bare, page("/fresh")).await.status, 200);
    let got = get(&site, &full, page("/fresh")).await;
    assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    // It has replaced the head by the whole, which answers both.
    for layer in [&full, &bare] {
        let got = get(&site, layer, page("/fresh")).await;
        assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    }
    assert_eq!(site.conditions(), [None, None]);
}
