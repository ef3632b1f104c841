//! A body whose middle is still on its way, between stored bytes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::upstream::UpstreamBody;
use crate::BoxError;

/// Stored bytes, those of `middle`, and stored ones again. A middle that does not have exactly the bytes that were
/// promised for it is an error: what comes after it would stand in the wrong place.
pub(crate) struct Splice {
    before: Bytes,
    /// Until its end.
    middle: Option<UpstreamBody>,
    /// The bytes of the middle that are still to come.
    left: u64,
    after: Bytes,
}

impl Splice {
    pub(crate) fn new(before: Bytes, middle: UpstreamBody, promised: u64, after: Bytes) -> Self {
        Self {
            before,
            middle: Some(middle),
            left: promised,
            after,
        }
    }

    fn poll_middle(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        while let Some(middle) = &mut self.middle {
            let bytes = match ready!(Pin::new(middle).poll_frame(cx)) {
                Some(frame) => match frame?.into_data() {
                    Ok(bytes) => bytes,
                    // Trailers are those of a part, and say nothing about the whole.
                    Err(_) => continue,
                },
                None if self.left == 0 => break,
                None => return Poll::Ready(Some(Err(OTHER_LENGTH.into()))),
            };
            let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
                return Poll::Ready(Some(Err(OTHER_LENGTH.into())));
            };
            self.left = left;
            return Poll::Ready(Some(Ok(bytes)));
        }
        Poll::Ready(None)
    }
}

const OTHER_LENGTH: &str =
    "the missing part of the body has another length than its Content-Range says";

impl Body for Splice {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.before.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.before)))));
        }
        let bytes = match ready!(self.poll_middle(cx)) {
            Some(Ok(bytes)) => bytes,
            Some(Err(error)) => {
                (self.middle, self.after) = (None, Bytes::new());
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                self.middle = None;
                std::mem::take(&mut self.after)
            }
        };
        let ended = bytes.is_empty() && self.middle.is_none();
        Poll::Ready((!ended).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        let stored = self.before.is_empty() && self.after.is_empty();
        let middle = self.middle.as_ref();
        stored && self.left == 0 && middle.is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.before.len() as u64 + self.left + self.after.len() as u64)
    }
}
