use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The response body: the inner one, after the bytes of it that were looked at.
    pub struct ResponseBody<B: Body> {
        #[pin]
        state: State<B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<B: Body> {
        Untouched { #[pin] body: B },
        Peeked { peeked: Peeked<B> },
    }
}

/// A body of which the first frames have been taken out.
pub(super) struct Peeked<B: Body> {
    frames: VecDeque<Frame<B::Data>>,
    body: Pin<Box<B>>,
    end: Option<End<B::Error>>,
}

/// How a body ended while it was looked at.
enum End<E> {
    Done,
    Failed(Option<E>),
}

impl<B: Body> Peeked<B> {
    pub(super) fn new(body: B) -> Self {
        Self {
            frames: VecDeque::new(),
            body: Box::pin(body),
            end: None,
        }
    }

    /// Takes frames out until `bytes` are there, the body ends or fails, or so many frames have come that the rest
    /// does not matter.
    pub(super) fn poll_peek(&mut self, cx: &mut Context<'_>, bytes: usize) -> Poll<()> {
        while self.end.is_none() && self.frames.len() < bytes && self.len() < bytes {
            match self.body.as_mut().poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(frame))) => self.frames.push_back(frame),
                Poll::Ready(Some(Err(error))) => self.end = Some(End::Failed(Some(error))),
                Poll::Ready(None) => self.end = Some(End::Done),
            }
        }
        Poll::Ready(())
    }

    /// Whether the body failed, so that what has come of it proves nothing.
    pub(super) fn failed(&self) -> bool {
        matches!(self.end, Some(End::Failed(_)))
    }

    /// The first bytes that were taken out, at most `limit`.
    pub(super) fn first(&self, limit: usize) -> Vec<u8> {
        let mut first = Vec::new();
        for data in self.frames.iter().filter_map(Frame::data_ref) {
            let chunk = data.chunk();
            first.extend_from_slice(&chunk[..chunk.len().min(limit - first.len())]);
            // A frame of several chunks: what is behind its first one would be out of order.
            if first.len() == limit || chunk.len() < data.remaining() {
                break;
            }
        }
        first
    }

    fn len(&self) -> usize {
        self.frames
            .iter()
            .filter_map(Frame::data_ref)
            .fold(0, |sum, data| sum.saturating_add(data.remaining()))
    }
}

impl<B: Body> ResponseBody<B> {
    pub(super) fn untouched(body: B) -> Self {
        Self {
            state: State::Untouched { body },
        }
    }

    pub(super) fn peeked(peeked: Peeked<B>) -> Self {
        Self {
            state: State::Peeked { peeked },
        }
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().state.project() {
            StateProj::Untouched { body } => body.poll_frame(cx),
            StateProj::Peeked { peeked } => {
                if let Some(frame) = peeked.frames.pop_front() {
                    return Poll::Ready(Some(Ok(frame)));
                }
                match &mut peeked.end {
                    Some(End::Done) => Poll::Ready(None),
                    Some(End::Failed(error)) => Poll::Ready(error.take().map(Err)),
                    None => peeked.body.as_mut().poll_frame(cx),
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Untouched { body } => body.is_end_stream(),
            State::Peeked { peeked } => {
                peeked.frames.is_empty()
                    && match &peeked.end {
                        Some(End::Done | End::Failed(None)) => true,
                        Some(End::Failed(Some(_))) => false,
                        None => peeked.body.is_end_stream(),
                    }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Untouched { body } => body.size_hint(),
            State::Peeked { peeked } => {
                let taken = peeked.len() as u64;
                let rest = match peeked.end {
                    Some(_) => SizeHint::with_exact(0),
                    None => peeked.body.size_hint(),
                };
                let mut hint = SizeHint::new();
                hint.set_lower(rest.lower().saturating_add(taken));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(upper.saturating_add(taken));
                }
                hint
            }
        }
    }
}

impl<B: Body + Default> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::untouched(B::default())
    }
}

impl<B: Body> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody")
            .field("size_hint", &self.size_hint())
            .finish_non_exhaustive()
    }
}
