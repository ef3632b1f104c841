//! Storing a body while it is read (RFC 9111, 3).

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use etiquette_core::store::BodyWriter;

use super::super::store::STORE;
use crate::events;

/// As much is written at once of a body that is too large to be held.
const WRITTEN_AT_ONCE: usize = 512 << 10;

/// Work of the store on a body.
pub(crate) type Storing<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// How a body is stored when it has come to its end.
pub(crate) trait StoreBody: Send {
    /// Whether its bytes are stored, and not only its head.
    fn needs_body(&self) -> bool;

    /// Stores a body that was held as a whole.
    fn store(self: Box<Self>, body: Bytes) -> Storing<()>;

    /// Begins to store a body that is too large to be held; `None` where it cannot be stored.
    fn begin(&self, length: Option<u64>) -> Option<Box<dyn BodyWriter>>;

    /// Stores a body all of which is written.
    fn finish(self: Box<Self>, writer: Box<dyn BodyWriter>) -> Storing<()>;
}

/// Where the bytes of a body go beside its readers.
pub(crate) enum Sink {
    /// Nowhere: the body is not stored, or has been.
    Closed,
    /// They are held until the end, and stored as a whole.
    Whole(Box<dyn StoreBody>),
    /// They are too many to be held, and written in chunks.
    Chunks(Chunks),
    /// The store is at work, and gives the sink for what follows.
    Busy(Storing<Self>),
}

pub(crate) struct Chunks {
    storage: Box<dyn StoreBody>,
    writer: Box<dyn BodyWriter>,
    unwritten: Vec<Bytes>,
}

impl Chunks {
    fn begin(
        storage: Box<dyn StoreBody>,
        length: Option<u64>,
        unwritten: Vec<Bytes>,
    ) -> Option<Self> {
        let writer = storage.begin(length)?;
        Some(Self {
            storage,
            writer,
            unwritten,
        })
    }

    async fn write(mut self) -> Option<Self> {
        for chunk in std::mem::take(&mut self.unwritten) {
            let written = self.writer.write(chunk).await;
            self.writer = events::store_result(STORE, "keep a response", written)?;
        }
        Some(self)
    }
}

impl Sink {
    /// A sink for a body of this length, which is held up to `max` bytes; `None` where it cannot be stored.
    pub(crate) fn open(
        storage: Box<dyn StoreBody>,
        length: Option<u64>,
        max: usize,
    ) -> Option<Self> {
        let fits = length.is_none_or(|length| length <= max as u64);
        if fits || !storage.needs_body() {
            return Some(Self::Whole(storage));
        }
        Chunks::begin(storage, length, Vec::new()).map(Self::Chunks)
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Self::Closed)
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Self::Busy(_))
    }

    /// The bytes `held` so far are too many to hold on: they are written in chunks, if the store takes chunks.
    pub(super) fn spill(&mut self, held: &VecDeque<Bytes>) {
        *self = match std::mem::replace(self, Self::Closed) {
            Self::Whole(storage) if storage.needs_body() => {
                let chunks = Chunks::begin(storage, None, held.iter().cloned().collect());
                chunks.map_or(Self::Closed, Self::Chunks)
            }
            other => other,
        };
    }

    /// Takes note of a chunk that was read.
    pub(super) fn push(&mut self, chunk: &Bytes) {
        if let Self::Chunks(chunks) = self {
            chunks.unwritten.push(chunk.clone());
        }
    }

    /// Begins to write if there is enough to write.
    pub(super) fn flush(&mut self) {
        *self = match std::mem::replace(self, Self::Closed) {
            Self::Chunks(chunks)
                if chunks.unwritten.iter().map(Bytes::len).sum::<usize>() >= WRITTEN_AT_ONCE =>
            {
                Self::Busy(Box::pin(async {
                    chunks.write().await.map_or(Self::Closed, Self::Chunks)
                }))
            }
            other => other,
        };
    }

    /// Begins to store the body, which has come to its end. `held` are all of its bytes where it is stored as a whole.
    pub(super) fn finish<'a>(&mut self, held: impl Iterator<Item = &'a Bytes> + Clone) {
        *self = match std::mem::replace(self, Self::Closed) {
            Self::Whole(storage) => {
                let stored = storage.store(collect(held));
                Self::Busy(Box::pin(async {
                    stored.await;
                    Self::Closed
                }))
            }
            Self::Chunks(chunks) => Self::Busy(Box::pin(async {
                if let Some(Chunks {
                    storage, writer, ..
                }) = chunks.write().await
                {
                    storage.finish(writer).await;
                }
                Self::Closed
            })),
            other => other,
        };
    }

    /// Ready when the store has done its work.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Self::Busy(work) = self {
            *self = ready!(work.as_mut().poll(cx));
        }
        Poll::Ready(())
    }
}

/// All bytes in one buffer of their own: a slice would keep the whole buffer of the connection alive.
fn collect<'a>(chunks: impl Iterator<Item = &'a Bytes> + Clone) -> Bytes {
    let mut all = BytesMut::with_capacity(chunks.clone().map(Bytes::len).sum());
    chunks.for_each(|chunk| all.extend_from_slice(chunk));
    all.freeze()
}
