//! Validators without bodies, for callers with a database of their own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::Extent;
use etiquette_core::store::{ResponseKey, ResponseStore};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use tower::{ServiceExt, service_fn};
use tower_etiquette::conditional_cache::{CacheStatus, ConditionalCacheLayer, MemoryStore};
use tower_etiquette::disk::DiskStore;
use tower_etiquette::{BoxError, Facts, Purpose, Session};
use tower_layer::Layer;

use crate::Folder;

/// A site of versions, each with a tag and a body of its own. `/dated` has no tag, `/plain` no validator.
#[derive(Clone, Default)]
struct Site {
    version: Arc<AtomicU64>,
    seen: Arc<Mutex<Vec<Option<String>>>>,
    down: Arc<AtomicU64>,
}

const LONG: usize = 200_000;

impl Site {
    fn answer(&self, request: &Request<Empty<Bytes>>) -> Result<Response<Full<Bytes>>, BoxError> {
        let headers = request.headers();
        let text = |name: &str| {
            let value = headers.get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let condition = text("if-none-match").or_else(|| text("if-modified-since"));
        self.seen.lock().unwrap().push(condition.clone());
        if self.down.load(Ordering::SeqCst) > 0 {
            return Err("the connection was closed".into());
        }
        let version = self.version.load(Ordering::SeqCst);
        let (name, value) = match request.uri().path() {
            "/dated" => (
                "last-modified",
                format!("Sun, 01 Nov 2026 08:00:{version:02} GMT"),
            ),
            "/plain" => ("x-version", version.to_string()),
            _ => ("etag", format!("\"{version}\"")),
        };
        let mut answer = Response::builder().header(name, &value);
        if request.uri().path() == "/fresh" {
            answer = answer.header("cache-control", "max-age=600");
        }
        if condition == Some(value) {
            return Ok(answer.status(304).body(Full::default())?);
        }
        let body = match request.uri().path() {
            "/long" => vec![b'x'; LONG],
            _ => format!("version {version}").into_bytes(),
        };
        Ok(answer.body(Full::from(body))?)
    }

    /// What the conditions of the requests since the last look were.
    fn conditions(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

struct Got {
    status: u16,
    body: Bytes,
    cache: CacheStatus,
}

async fn get<St: ResponseStore>(
    site: &Site,
    layer: &ConditionalCacheLayer<St>,
    request: Request<Empty<Bytes>>,
) -> Got {
    let site = site.clone();
    let inner =
        service_fn(move |request: Request<Empty<Bytes>>| std::future::ready(site.answer(&request)));
    let response = layer.layer(inner).oneshot(request).await.unwrap();
    let cache = Facts::of(&response).and_then(Facts::cache_status).unwrap();
    Got {
        status: response.status().as_u16(),
        cache,
        body: response.into_body().collect().await.unwrap().to_bytes(),
    }
}

fn page(path: &str) -> Request<Empty<Bytes>> {
    let uri = format!("http://site.example{path}");
    Request::get(uri).body(Empty::new()).unwrap()
}

fn key(path: &str) -> ResponseKey {
    ResponseKey::of(page(path).uri()).unwrap()
}

#[tokio::test]
async fn what_the_caller_has_is_a_304_and_what_is_new_a_page() {
    let (site, folder) = (Site::default(), Folder::new());
    for path in ["/tag", "/dated", "/long"] {
        site.version.store(1, Ordering::SeqCst);
        // The next process knows what this one has handed on.
        let mut known = None;
        for (version, status) in [(1, 200), (1, 304), (2, 200), (2, 304), (2, 304)] {
            site.version.store(version, Ordering::SeqCst);
            let layer = ConditionalCacheLayer::new()
                .store(DiskStore::open(&folder.0).unwrap())
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
        let store = DiskStore::open(&folder.0).unwrap();
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
    let site = Site::default();
    let layer = ConditionalCacheLayer::new().validators_only();
    assert_eq!(get(&site, &layer, page("/fresh")).await.status, 200);
    let got = get(&site, &layer, page("/fresh")).await;
    assert!(matches!(
        (got.status, got.cache),
        (304, CacheStatus::Hit { .. })
    ));
    assert_eq!(get(&site, &layer, page("/tag")).await.status, 200);
    assert_eq!(site.conditions(), [None, None]);
    site.down.store(1, Ordering::SeqCst);
    let got = get(&site, &layer, page("/tag")).await;
    assert!(matches!(
        (got.status, got.cache),
        (304, CacheStatus::StaleOnError { .. })
    ));
    site.down.store(0, Ordering::SeqCst);
    // Who has lost its copy says so, and gets the whole.
    layer.get_store().remove(&key("/tag"), None).await.unwrap();
    let got = get(&site, &layer, page("/tag")).await;
    assert_eq!((got.status, &got.body[..]), (200, &b"version 0"[..]));
    assert_eq!(site.conditions(), [Some("\"0\"".to_owned()), None]);
}

#[tokio::test]
async fn without_a_validator_nothing_is_kept() {
    let site = Site::default();
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
    let site = Site::default();
    let layer = ConditionalCacheLayer::new().validators_only();
    let inner = {
        let site = site.clone();
        service_fn(move |request: Request<Empty<Bytes>>| std::future::ready(site.answer(&request)))
    };
    let response = layer.layer(inner).oneshot(page("/long")).await.unwrap();
    drop(response);
    assert_eq!(get(&site, &layer, page("/long")).await.status, 200);
    assert_eq!(site.conditions(), [None, None]);
}

#[tokio::test]
async fn own_conditions_ranges_heads_and_people_are_answered_as_ever() {
    let site = Site::default();
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
    let (site, store) = (Site::default(), Arc::new(MemoryStore::default()));
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
