use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::BoxError;

pin_project! {
    /// A body of any kind with its data as [`Bytes`] and its error boxed. Data that is `Bytes` already is not copied.
    pub(crate) struct BytesBody<B> {
        #[pin]
        inner: B,
    }
}

impl<B> BytesBody<B> {
    pub(crate) fn new(inner: B) -> Self {
        Self { inner }
    }
}

impl<B> Body for BytesBody<B>
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
        let to_bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        let polled = self.project().inner.poll_frame(cx);
        polled.map(|frame| {
            Some(
                frame?
                    .map(|frame| frame.map_data(to_bytes))
                    .map_err(Into::into),
            )
        })
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
