use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

use super::error::TimedOut;
use crate::BoxError;

pin_project! {
    /// A body with a timeout between its frames, and one for the whole.
    pub(super) struct TimedBody<B> {
        #[pin]
        body: B,
        #[pin]
        sleep: Sleep,
        idle: Duration,
        end: Instant,
        // Whether the site is being waited for: a caller who does not read is not timed.
        waiting: bool,
    }
}

impl<B> TimedBody<B> {
    pub(super) fn new(body: B, idle: Duration, end: Instant) -> Self {
        Self {
            body,
            sleep: sleep_until(end),
            idle,
            end,
            waiting: false,
        }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.waiting = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        if !*this.waiting {
            *this.waiting = true;
            let idle_end = Instant::now() + *this.idle;
            this.sleep.as_mut().reset(idle_end.min(*this.end));
        }
        this.sleep.poll(cx).map(|()| {
            let why = if Instant::now() >= *this.end {
                TimedOut::Total
            } else {
                TimedOut::Idle
            };
            Some(Err(why.into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
