use std::fmt;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::LeaseLost;
use crate::BoxError;
use crate::hosts::Permit;

pin_project! {
    /// A response body that holds a permit of its host until it has ended, failed or was dropped.
    pub struct ResponseBody<B> {
        // Dropped before the permit: the connection is done with before the next request starts.
        #[pin]
        inner: B,
        permit: Option<Permit>,
        lost: bool,
    }
}

impl<B> ResponseBody<B> {
    pub(super) fn new(inner: B, permit: Option<Permit>) -> Self {
        Self {
            inner,
            permit,
            lost: false,
        }
    }

    /// The body as the inner service gave it.
    #[must_use]
    pub fn get_ref(&self) -> &B {
        &self.inner
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        if let Some(permit) = this.permit
            && permit.poll_lost(cx).is_ready()
        {
            *this.lost = true;
        }
        if *this.lost {
            return Poll::Ready(Some(Err(LeaseLost::new().into())));
        }
        let polled = this.inner.as_mut().poll_frame(cx);
        if let Some(permit) = this.permit {
            let over = match &polled {
                Poll::Pending => false,
                Poll::Ready(Some(Ok(_))) => this.inner.is_end_stream(),
                Poll::Ready(_) => true,
            };
            if over {
                *this.permit = None;
            } else {
                permit.body_polled(polled.is_pending());
            }
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        !self.lost && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B: Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::new(B::default(), None)
    }
}

impl<B> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("holds_a_permit", &self.permit.is_some())
            .finish_non_exhaustive()
    }
}
