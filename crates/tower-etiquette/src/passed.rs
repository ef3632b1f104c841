//! An inner body that is handed on, its bytes as [`Bytes`] and its error boxed.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::BoxError;

pin_project! {
    /// A body of any kind as one of bytes. Data that is `Bytes` already is not copied.
    pub(crate) struct Passed<B> {
        #[pin]
        body: B,
    }
}

impl<B> Passed<B> {
    pub(crate) fn new(body: B) -> Self {
        Self { body }
    }
}

impl<B> Body for Passed<B>
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
        self.project().body.poll_frame(cx).map(|frame| {
            frame.map(|result| {
                result
                    .map(|frame| frame.map_data(|mut data| data.copy_to_bytes(data.remaining())))
                    .map_err(Into::into)
            })
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
