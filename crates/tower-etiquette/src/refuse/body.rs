use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;

use crate::BoxError;
use crate::boxed::BytesBody;
use crate::macros::opaque_debug;

pin_project! {
    /// The body of a response, or the description of a refusal.
    pub struct ProblemBody<B> {
        #[pin]
        body: Either<BytesBody<B>, Full<Bytes>>,
    }
}

impl<B> ProblemBody<B> {
    pub(super) fn inner(body: B) -> Self {
        Self {
            body: Either::Left(BytesBody::new(body)),
        }
    }

    pub(super) fn problem(text: String) -> Self {
        Self {
            body: Either::Right(text.into()),
        }
    }
}

impl<B> Body for ProblemBody<B>
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
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

opaque_debug!(ProblemBody<B>);
