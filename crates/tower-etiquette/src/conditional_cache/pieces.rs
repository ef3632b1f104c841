//! Stored bodies that are too large to be held, read piece by piece.

use std::fmt;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use etiquette_core::store::{BodyReader, Piece, StoreFuture};
use http_body::Frame;

use super::body::Answer;
use super::scope::STORE;
use crate::{BoxError, events};

/// What an answer needs of a stored body.
pub(super) enum StoredBody {
    /// All that is stored.
    Whole(Bytes),
    /// Just what is needed.
    Pieces(Pieces),
}

impl StoredBody {
    /// `length` bytes, `from` bytes into what is stored.
    pub(super) fn part(self, from: usize, length: usize) -> Self {
        match self {
            Self::Whole(body) => {
                let end = from.saturating_add(length).min(body.len());
                Self::Whole(body.slice(from.min(end)..end))
            }
            Self::Pieces(pieces) => Self::Pieces(pieces),
        }
    }

    pub(super) fn into_answer(self) -> Answer {
        match self {
            Self::Whole(body) => Answer::Stored(body),
            Self::Pieces(pieces) => Answer::Pieces(pieces),
        }
    }
}

/// A body under way from the store: one piece is held at a time.
pub(super) struct Pieces {
    first: Option<Bytes>,
    next: Option<StoreFuture<'static, Option<Piece>>>,
    left: u64,
}

/// The store lost a body while it was being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stored response body is not there any more")
    }
}

impl std::error::Error for Lost {}

impl Pieces {
    /// The first `length` bytes of a reader; `None` when the store does not give the first of them, so that the origin
    /// can still be asked.
    pub(super) async fn open(reader: Box<dyn BodyReader>, length: u64) -> Option<Self> {
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
            let mut piece = match self.first.take() {
                Some(first) => first,
                None => match ready!(self.poll_next(cx)) {
                    Ok(piece) => piece,
                    Err(error) => {
                        self.left = 0;
                        return Poll::Ready(Some(Err(error)));
                    }
                },
            };
            let length = usize::try_from(self.left).unwrap_or(usize::MAX);
            piece.truncate(length);
            if !piece.is_empty() {
                self.left -= piece.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        Poll::Ready(None)
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, BoxError>> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(Err(Lost.into()));
        };
        let next = ready!(next.as_mut().poll(cx));
        self.next = None;
        Poll::Ready(match next {
            Ok(Some((piece, rest))) => {
                self.next = Some(rest.next());
                Ok(piece)
            }
            Ok(None) => Err(Lost.into()),
            Err(failed) => Err(failed.into()),
        })
    }
}
