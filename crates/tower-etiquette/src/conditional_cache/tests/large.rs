//! Bodies that are too large to be held, with a store that takes them in pieces.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{Selecting, StoredResponse};
use etiquette_core::store::{
    BodyReader, BodyWriter, Piece, ResponseKey, ResponseStore, StoreFailed, StoreFuture, Variant,
};
use http::header::{CONTENT_RANGE, RANGE};
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::super::{ConditionalCacheLayer, MemoryStore};
use super::{Site, get, text};

/// Keeps heads in memory and bodies in pieces, and gives no body as a whole.
#[derive(Clone, Debug, Default)]
struct Shelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    heads: MemoryStore,
    pieces: Mutex<Vec<Bytes>>,
    /// How many pieces it takes, and gives, before it fails.
    takes: AtomicUsize,
    gives: AtomicUsize,
    given_up: AtomicUsize,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            heads: MemoryStore::default(),
            pieces: Mutex::default(),
            takes: AtomicUsize::new(usize::MAX),
            gives: AtomicUsize::new(usize::MAX),
            given_up: AtomicUsize::new(0),
        }
    }
}

fn failed() -> StoreFailed {
    StoreFailed::new("work", "on purpose")
}

/// Takes one off, unless none is left.
fn one_less(count: &AtomicUsize) -> bool {
    let less = |left: usize| left.checked_sub(1);
    count
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
}

struct Writer {
    shelf: Shelf,
    key: ResponseKey,
    pieces: Vec<Bytes>,
    finished: bool,
}

impl BodyWriter for Writer {
    fn write(mut self: Box<Self>, bytes: Bytes) -> StoreFuture<'static, Box<dyn BodyWriter>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !one_less(&self.shelf.0.takes) {
                return Err(failed());
            }
            self.pieces.push(bytes);
            let writer: Box<dyn BodyWriter> = self;
            Ok(writer)
        })
    }

    fn finish(
        mut self: Box<Self>,
        head: StoredResponse,
        replaced: Vec<Selecting>,
    ) -> StoreFuture<'static, ()> {
        Box::pin(async move {
            self.finished = true;
            let shelf = self.shelf.clone();
            *shelf.0.pieces.lock().unwrap() = std::mem::take(&mut self.pieces);
            let empty = Bytes::new();
            shelf.0.heads.put(&self.key, head, empty, &replaced).await
        })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let given_up = usize::from(!self.finished);
        self.shelf.0.given_up.fetch_add(given_up, Ordering::SeqCst);
    }
}

struct Reader {
    shelf: Shelf,
    left: Vec<Bytes>,
}

impl BodyReader for Reader {
    fn next(mut self: Box<Self>) -> StoreFuture<'static, Option<Piece>> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !one_less(&self.shelf.0.gives) {
                return Err(failed());
            }
            Ok((!self.left.is_empty()).then(|| -> Piece { (self.left.remove(0), self) }))
        })
    }
}

impl ResponseStore for Shelf {
    async fn get(&self, key: &ResponseKey) -> Result<Vec<Variant>, StoreFailed> {
        let mut variants = self.0.heads.get(key).await?;
        for variant in &mut variants {
            variant.body = None;
            let pieces = self.0.pieces.lock().unwrap();
            variant.length = pieces.iter().map(|piece| piece.len() as u64).sum();
        }
        Ok(variants)
    }

    async fn body(
        &self,
        _: &ResponseKey,
        _: &StoredResponse,
    ) -> Result<Option<Bytes>, StoreFailed> {
        Err(failed())
    }

    async fn put(
        &self,
        _: &ResponseKey,
        _: StoredResponse,
        _: Bytes,
        _: &[Selecting],
    ) -> Result<(), StoreFailed> {
        Err(failed())
    }

    async fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> Result<(), StoreFailed> {
        self.0.heads.update(key, old, head).await
    }

    async fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> Result<(), StoreFailed> {
        self.0.heads.remove(key, which).await
    }

    async fn read(
        &self,
        _: &ResponseKey,
        _: &StoredResponse,
        from: u64,
    ) -> Result<Option<Box<dyn BodyReader>>, StoreFailed> {
        let mut left = self.0.pieces.lock().unwrap().clone();
        let mut from = from as usize;
        for piece in &mut left {
            let skipped = from.min(piece.len());
            *piece = piece.slice(skipped..);
            from -= skipped;
        }
        let shelf = self.clone();
        Ok(Some(Box::new(Reader { shelf, left })))
    }

    fn write(&self, key: &ResponseKey, _: Option<u64>) -> Option<Box<dyn BodyWriter>> {
        Some(Box::new(Writer {
            shelf: self.clone(),
            key: key.clone(),
            pieces: Vec::new(),
            finished: false,
        }))
    }
}

const FIELDS: [&[(&str, &str)]; 2] = [
    &[("cache-control", "max-age=600"), ("content-length", "9")],
    &[("cache-control", "max-age=600")],
];

#[tokio::test(start_paused = true)]
async fn a_large_body_is_stored_and_read_in_pieces() {
    for fields in FIELDS {
        let shelf = Shelf::default();
        let layer = ConditionalCacheLayer::new()
            .max_body(4)
            .store(shelf.clone());
        let site = Site::new(fields, &["one", "two", "six"]);
        let client = site.behind(&layer);
        for _ in 0..2 {
            let response = client.clone().oneshot(get()).await.unwrap();
            assert_eq!(text(response).await, "onetwosix");
            assert_eq!(site.asked(), 1, "{fields:?}");
        }
        let mut part = get();
        part.headers_mut()
            .insert(RANGE, "bytes=2-6".parse().unwrap());
        let response = client.clone().oneshot(part).await.unwrap();
        assert_eq!(response.headers()[CONTENT_RANGE], "bytes 2-6/9");
        assert_eq!(text(response).await, "etwos");
        assert_eq!(site.asked(), 1, "{fields:?}");
        assert_eq!(shelf.0.given_up.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_body_that_breaks_off_or_is_dropped_is_given_up() {
    for fields in FIELDS {
        let shelf = Shelf::default();
        let layer = ConditionalCacheLayer::new()
            .max_body(2)
            .store(shelf.clone());
        let broken = Site::new(fields, &["one", "two", ""]).behind(&layer);
        let response = broken.oneshot(get()).await.unwrap();
        assert!(response.into_body().collect().await.is_err());
        assert_eq!(shelf.0.given_up.load(Ordering::SeqCst), 1, "{fields:?}");
        let site = Site::new(fields, &["one", "two", "six"]);
        let mut body = site
            .behind(&layer)
            .oneshot(get())
            .await
            .unwrap()
            .into_body();
        body.frame().await.unwrap().unwrap();
        drop(body);
        assert_eq!(shelf.0.given_up.load(Ordering::SeqCst), 2, "{fields:?}");
        assert!(shelf.0.heads.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_in_the_middle_costs_the_caller_nothing() {
    for fields in FIELDS {
        let shelf = Shelf::default();
        shelf.0.takes.store(1, Ordering::SeqCst);
        let layer = ConditionalCacheLayer::new()
            .max_body(2)
            .store(shelf.clone());
        let client = Site::new(fields, &["one", "two", "six"]).behind(&layer);
        let response = client.oneshot(get()).await.unwrap();
        assert_eq!(text(response).await, "onetwosix");
        assert!(shelf.0.heads.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_lost_is_asked_for_again_or_breaks_off() {
    let shelf = Shelf::default();
    let layer = ConditionalCacheLayer::new()
        .max_body(2)
        .store(shelf.clone());
    let site = Site::new(FIELDS[0], &["one", "two", "six"]);
    let client = site.behind(&layer);
    text(client.clone().oneshot(get()).await.unwrap()).await;
    shelf.0.gives.store(0, Ordering::SeqCst);
    let again = client.clone().oneshot(get()).await.unwrap();
    assert_eq!(text(again).await, "onetwosix");
    assert_eq!(site.asked(), 2, "nothing of it was there");
    shelf.0.gives.store(1, Ordering::SeqCst);
    let half = client.oneshot(get()).await.unwrap();
    assert!(
        half.into_body().collect().await.is_err(),
        "no byte is made up"
    );
}
