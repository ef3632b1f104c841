//! Limits on one attempt: its head, the silence within its body, and its whole time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use crate::BoxError;

/// How long the parts of an attempt may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) head: Duration,
    pub(super) idle: Duration,
    pub(super) total: Duration,
}

/// An attempt took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedOut {
    Head,
    Idle,
    Total,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "timed out before the response head",
            Self::Idle => "timed out within the response body",
            Self::Total => "timed out before the end of the response",
        })
    }
}

impl std::error::Error for TimedOut {}

/// Puts the limits around the innermost client, where waiting for a budget does not count.
#[derive(Clone, Debug)]
pub(super) struct Limits<S> {
    inner: S,
    times: Times,
}

impl<S> Limits<S> {
    pub(super) fn new(inner: S, times: Times) -> Self {
        Self { inner, times }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Limits<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<LimitedBody<ResBody>>;
    type Error = BoxError;
    type Future = HeadFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let now = Instant::now();
        let end = now + self.times.total;
        HeadFuture {
            response: self.inner.call(request),
            sleep: sleep_until(end.min(now + self.times.head)),
            idle: self.times.idle,
            end,
        }
    }
}

pin_project! {
    /// Waits for a response head, so long and no longer.
    pub(super) struct HeadFuture<F> {
        #[pin]
        response: F,
        #[pin]
        sleep: Sleep,
        idle: Duration,
        end: Instant,
    }
}

impl<F, ResBody, E> Future for HeadFuture<F>
where
    F: Future<Output = Result<Response<ResBody>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<LimitedBody<ResBody>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(response) = this.response.poll(cx) {
            let (idle, end) = (*this.idle, *this.end);
            return Poll::Ready(response.map_err(Into::into).map(|response| {
                response.map(|body| LimitedBody {
                    body,
                    sleep: sleep_until(end),
                    idle,
                    end,
                    waiting: false,
                })
            }));
        }
        this.sleep.poll(cx).map(|()| Err(TimedOut::Head.into()))
    }
}

pin_project! {
    /// A body that may neither fall silent nor go on for ever.
    pub(super) struct LimitedBody<B> {
        #[pin]
        body: B,
        #[pin]
        sleep: Sleep,
        idle: Duration,
        end: Instant,
        // Whether the site is being waited for: a caller who does not read is no silence of the site.
        waiting: bool,
    }
}

impl<B> Body for LimitedBody<B>
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
