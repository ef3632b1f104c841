//! Stored bodies that are too large to be held, read in chunks.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use etiquette_core::store::{BodyReader, Piece, StoreFuture};
use http_body::Frame;

use super::super::store::STORE;
use crate::{BoxError, events};

/// A body under way from the store: one chunk is held at a time.
pub(crate) struct StoredChunks {
    first: Option<Bytes>,
    next: Option<StoreFuture<'static, Option<Piece>>>,
    left: u64,
}

impl StoredChunks {
    /// The first `length` bytes of a reader; `None` when the store does not give the first of them, so that the origin
    /// can still be asked.
    pub(crate) async fn open(reader: Box<dyn BodyReader>, length: u64) -> Option<Self> {
        let opened = events::store_result(STORE, "read a body", reader.next().await);
        let (first, rest) = opened.flatten()?;
        Some(Self {
            first: Some(first),
            next: Some(rest.next()),
            left: length,
        })
    }

    /// The bytes that are still to come.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        while self.left > 0 {
            let mut chunk = match self.first.take() {
                Some(first) => first,
                None => match ready!(self.poll_next(cx)) {
                    Ok(chunk) => chunk,
                    Err(error) => {
                        self.left = 0;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
            };
            chunk.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            if !chunk.is_empty() {
                self.left -= chunk.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(chunk))));
            }
        }
        Poll::Ready(None)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, BoxError>> {
        let read = match &mut self.next {
            Some(next) => ready!(next.as_mut().poll(cx))?,
            None => None,
        };
        let Some((chunk, rest)) = read else {
            self.next = None;
            return Poll::Ready(Err("the store lost the body while it was being read".into()));
        };
        self.next = Some(rest.next());
        Poll::Ready(Ok(chunk))
    }
}
