//! [`ResponseBody`]: what the caller reads.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::replay::StoredChunks;
use super::tee::TeeReader;
use super::upstream::UpstreamBody;
use crate::BoxError;

/// The body of a response that has been through the cache: stored, being stored while it is read, or passed on.
///
/// Dropping it before its end drops the inner body, unless another caller reads the same one; what was not read to
/// its end is not stored.
pub struct ResponseBody(Kind);

enum Kind {
    Full(Bytes),
    Chunks(StoredChunks),
    Tee(TeeReader),
    Upstream(UpstreamBody),
}

impl ResponseBody {
    pub(crate) fn empty() -> Self {
        Self::full(Bytes::new())
    }

    pub(crate) fn full(body: Bytes) -> Self {
        Self(Kind::Full(body))
    }

    pub(crate) fn chunks(body: StoredChunks) -> Self {
        Self(Kind::Chunks(body))
    }

    pub(crate) fn tee(body: TeeReader) -> Self {
        Self(Kind::Tee(body))
    }

    pub(crate) fn upstream(body: UpstreamBody) -> Self {
        Self(Kind::Upstream(body))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Kind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Kind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Kind::Chunks(body) => body.poll_frame(cx),
            Kind::Tee(body) => body.poll_frame(cx),
            Kind::Upstream(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Full(bytes) => bytes.is_empty(),
            Kind::Chunks(body) => body.left() == 0,
            Kind::Tee(body) => body.is_end_stream(),
            Kind::Upstream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Chunks(body) => SizeHint::with_exact(body.left()),
            Kind::Tee(body) => body.size_hint(),
            Kind::Upstream(body) => body.size_hint(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Full(_) | Kind::Chunks(_) => "stored",
            Kind::Tee(_) => "shared",
            Kind::Upstream(_) => "passing",
        };
        f.debug_tuple("ResponseBody").field(&kind).finish()
    }
}
