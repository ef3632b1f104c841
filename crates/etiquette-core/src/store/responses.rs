//! What a store for responses has to do.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::Uri;

use super::failed::{StoreFailed, StoreFuture};
use crate::decide::cache_policy::{Selecting, StoredResponse};
use crate::vocabulary::origin::spell;

/// What responses are stored under: the URL that was asked for with GET, its origin in one spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseKey(Arc<str>);

impl ResponseKey {
    /// The key of an absolute `http` or `https` URI; `None` for others, whose answers are not stored.
    #[must_use]
    pub fn of(uri: &Uri) -> Option<Self> {
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let mut text = String::with_capacity(path.len() + 80);
        spell(uri, &mut text).ok()?;
        if !path.starts_with('/') {
            text.push('/');
        }
        text.push_str(path);
        Some(Self(text.into()))
    }

    /// A key as [`ResponseKey::as_str`] gave it.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One stored response: its head, and its body where the store has it at hand.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Status, fields, age and the request fields that selected it.
    pub head: Arc<StoredResponse>,
    /// The body, if the store gave it with the head. Otherwise ask [`ResponseStore::body`].
    pub body: Option<Bytes>,
    /// The length of the body.
    pub length: u64,
}

impl Variant {
    /// A response whose body is at hand.
    #[must_use]
    pub fn new(head: StoredResponse, body: Bytes) -> Self {
        Self {
            head: Arc::new(head),
            length: body.len() as u64,
            body: Some(body),
        }
    }
}

/// A store for responses, the several variants of a URL side by side.
///
/// A body is stored and read as a whole up to the layer's limit for one body, so that a store can check it before its
/// first byte is handed on, and a range is a slice. Larger ones are for stores that take them in pieces, by
/// [`ResponseStore::write`] and [`ResponseStore::read`]; others need neither.
///
/// Every method may fail. The layer then goes on as if nothing were stored: a store never fails a request.
///
/// # Cancel safety
/// A dropped future of [`ResponseStore::put`] leaves the old variant or the new one, nothing between. A store whose
/// [`ResponseStore::remove`] has returned does not bring the variant back, not even after a crash.
pub trait ResponseStore: fmt::Debug + Send + Sync + 'static {
    /// All variants of a URL, the newest first.
    fn get(
        &self,
        key: &ResponseKey,
    ) -> impl Future<Output = Result<Vec<Variant>, StoreFailed>> + Send;

    /// The body of a variant that [`ResponseStore::get`] gave without one; `None` when it is gone by now.
    fn body(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
    ) -> impl Future<Output = Result<Option<Bytes>, StoreFailed>> + Send;

    /// Stores a response in place of those that `replaced` names and of one with the same selecting fields.
    fn put(
        &self,
        key: &ResponseKey,
        head: StoredResponse,
        body: Bytes,
        replaced: &[Selecting],
    ) -> impl Future<Output = Result<(), StoreFailed>> + Send;

    /// Gives the variant selected by `old` a new head and leaves its body. A variant that is gone stays gone.
    fn update(
        &self,
        key: &ResponseKey,
        old: &Selecting,
        head: StoredResponse,
    ) -> impl Future<Output = Result<(), StoreFailed>> + Send;

    /// Removes the variant selected by `which`, or all of the URL.
    fn remove(
        &self,
        key: &ResponseKey,
        which: Option<&Selecting>,
    ) -> impl Future<Output = Result<(), StoreFailed>> + Send;

    /// The body of a variant from the byte `from` on, for one that is too large to be held; `None` when it is gone by
    /// now. Unless a store does better, it is what [`ResponseStore::body`] gives.
    fn read(
        &self,
        key: &ResponseKey,
        head: &StoredResponse,
        from: u64,
    ) -> impl Future<Output = Result<Option<Box<dyn BodyReader>>, StoreFailed>> + Send {
        async move {
            let body = self.body(key, head).await?;
            Ok(body.map(|mut body| -> Box<dyn BodyReader> {
                let from = usize::try_from(from).unwrap_or(usize::MAX);
                Box::new(Rest(body.split_off(from.min(body.len()))))
            }))
        }
    }

    /// Begins to store a body that is too large to be held, of `length` bytes if that is known. `None` from a store
    /// that takes bodies as a whole only, which is the default, or has no room for this one.
    fn write(&self, key: &ResponseKey, length: Option<u64>) -> Option<Box<dyn BodyWriter>> {
        let _ = (key, length);
        None
    }
}

/// A stored body that is read piece by piece, none of them larger than a store wants to hold.
pub trait BodyReader: Send {
    /// The next piece, and the reader of what follows it; `None` at the end.
    ///
    /// # Cancel safety
    /// Dropped, it ends the reading and changes nothing.
    fn next(self: Box<Self>) -> StoreFuture<'static, Option<Piece>>;
}

/// What [`BodyReader::next`] gives: bytes, and the reader of what follows them.
pub type Piece = (Bytes, Box<dyn BodyReader>);

/// A body that is stored piece by piece, before it is known whether it comes to its end.
///
/// Dropping it gives the body up: the store forgets its pieces by itself.
pub trait BodyWriter: Send {
    /// Writes bytes behind those before, and gives the writer of what follows.
    ///
    /// # Cancel safety
    /// Dropped, the body is given up.
    fn write(self: Box<Self>, bytes: Bytes) -> StoreFuture<'static, Box<dyn BodyWriter>>;

    /// The body has come to its end: it is that of `head` from now on, stored as by [`ResponseStore::put`].
    ///
    /// # Cancel safety
    /// As [`ResponseStore::put`].
    fn finish(
        self: Box<Self>,
        head: StoredResponse,
        replaced: Vec<Selecting>,
    ) -> StoreFuture<'static, ()>;
}

/// A body that was given as a whole.
struct Rest(Bytes);

impl BodyReader for Rest {
    fn next(self: Box<Self>) -> StoreFuture<'static, Option<Piece>> {
        let piece =
            (!self.0.is_empty()).then(|| -> Piece { (self.0, Box::new(Self(Bytes::new()))) });
        Box::pin(std::future::ready(Ok(piece)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_for_each_url() {
        let key = |uri: &str| ResponseKey::of(&uri.parse().unwrap()).map(|k| k.as_str().to_owned());
        assert_eq!(key("HTTP://H.example.:80").unwrap(), "http://h.example/");
        assert_eq!(key("http://h?q").unwrap(), "http://h/?q");
        assert_eq!(key("https://h/a?b").unwrap(), "https://h/a?b");
        assert_eq!(key("/a"), None);
    }
}
