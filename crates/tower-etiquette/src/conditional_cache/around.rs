//! A body whose middle is still on its way, between stored bytes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::BoxError;
use crate::boxed::BytesBody;

pin_project! {
    /// Stored bytes, those of `body`, and stored ones again. A body that does not have exactly the bytes that were
    /// promised for it is an error: what comes after it would stand in the wrong place.
    pub(super) struct Around<B> {
        before: Bytes,
        #[pin]
        body: BytesBody<B>,
        left: u64,
        ended: bool,
        after: Bytes,
    }
}

impl<B> Around<B> {
    pub(super) fn new(before: Bytes, body: B, promised: u64, after: Bytes) -> Self {
        Self {
            before,
            body: BytesBody::new(body),
            left: promised,
            ended: false,
            after,
        }
    }
}

impl<B> Body for Around<B>
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
        let mut this = self.project();
        if !this.before.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(this.before)))));
        }
        while !*this.ended {
            let frame = match ready!(this.body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => frame.into_data().ok(),
                Some(Err(error)) => {
                    (*this.ended, *this.after) = (true, Bytes::new());
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    *this.ended = true;
                    if *this.left == 0 {
                        break;
                    }
                    *this.after = Bytes::new();
                    return Poll::Ready(Some(Err(OtherLength.into())));
                }
            };
            // Trailers are those of a part, and no news about the whole.
            let Some(bytes) = frame else { continue };
            let Some(left) = this.left.checked_sub(bytes.len() as u64) else {
                (*this.ended, *this.after) = (true, Bytes::new());
                return Poll::Ready(Some(Err(OtherLength.into())));
            };
            *this.left = left;
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let after = std::mem::take(this.after);
        Poll::Ready((!after.is_empty()).then(|| Ok(Frame::data(after))))
    }

    fn is_end_stream(&self) -> bool {
        let stored = self.before.is_empty() && self.after.is_empty();
        stored && self.left == 0 && (self.ended || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.before.len() as u64 + self.left + self.after.len() as u64)
    }
}

/// A part of a body has another length than its Content-Range says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OtherLength;

impl fmt::Display for OtherLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the missing part of the body has another length than its Content-Range says")
    }
}

impl std::error::Error for OtherLength {}
