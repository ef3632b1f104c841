//! The body of a response that has been through the cache.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::pieces::Pieces;
use super::stream::{Reader, Upstream};
use crate::BoxError;
use crate::boxed::BytesBody;

pin_project! {
    /// The body of a response that has been through the cache: stored, being stored while it is read, or passed on.
    ///
    /// Dropping it before its end drops the inner body, unless another caller reads the same one; what was not read to
    /// its end is not stored.
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B> {
        Passing { #[pin] body: BytesBody<B> },
        Answer { answer: Answer },
    }
}

/// A body that does not depend on the type of the inner one.
pub(super) enum Answer {
    Stored(Bytes),
    Pieces(Pieces),
    Shared(Reader),
    Passing(Upstream),
}

impl<B> ResponseBody<B> {
    pub(super) fn passing(body: B) -> Self {
        Self {
            kind: Kind::Passing {
                body: BytesBody::new(body),
            },
        }
    }

    pub(super) fn answer(answer: Answer) -> Self {
        Self {
            kind: Kind::Answer { answer },
        }
    }
}

impl Answer {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Stored(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Stored(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Pieces(pieces) => pieces.poll_frame(cx),
            Self::Shared(reader) => reader.poll_frame(cx),
            Self::Passing(body) => body.as_mut().poll_frame(cx),
        }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            KindProj::Passing { body } => body.poll_frame(cx),
            KindProj::Answer { answer } => answer.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passing { body } => body.is_end_stream(),
            Kind::Answer { answer } => match answer {
                Answer::Stored(bytes) => bytes.is_empty(),
                Answer::Pieces(pieces) => pieces.left() == 0,
                Answer::Shared(reader) => reader.is_end_stream(),
                Answer::Passing(body) => body.is_end_stream(),
            },
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passing { body } => body.size_hint(),
            Kind::Answer { answer } => match answer {
                Answer::Stored(bytes) => SizeHint::with_exact(bytes.len() as u64),
                Answer::Pieces(pieces) => SizeHint::with_exact(pieces.left()),
                Answer::Shared(reader) => reader.size_hint(),
                Answer::Passing(body) => body.size_hint(),
            },
        }
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.kind {
            Kind::Passing { .. } => "passing",
            Kind::Answer { answer } => match answer {
                Answer::Stored(_) | Answer::Pieces(_) => "stored",
                Answer::Shared(_) => "shared",
                Answer::Passing(_) => "passing",
            },
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
