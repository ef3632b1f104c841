//! A response body that is read from the network once, handed to every caller that requested it, and stored at its end.
//!
//! Whichever reader is polled reads on for all; the bytes are held until the body is stored or turns out too large. One
//! that is too large is for one reader, and is written in chunks where the store takes chunks: then as much is held as one
//! chunk. A body that ends early, fails or is dropped by all of its readers is never stored.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::StoredResponse;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::super::delivery::SharedError;
use super::sink::Sink;
use super::upstream::UpstreamBody;
use crate::BoxError;

/// A body under way.
pub(crate) struct Tee {
    head: Arc<StoredResponse>,
    framing: Framing,
    state: Mutex<State>,
    wakers: Arc<Wakers>,
}

/// The lengths that a body keeps to.
pub(crate) struct Framing {
    /// That of the message, as Content-Length says.
    pub(crate) declared: Option<u64>,
    /// That of a part, as Content-Range says: one that does not keep to it is not stored.
    pub(crate) promised: Option<u64>,
    /// As much is held.
    pub(crate) max: usize,
}

struct State {
    /// Until its end.
    upstream: Option<UpstreamBody>,
    /// What has been read, from the first byte on while it may still be stored or joined.
    chunks: VecDeque<Bytes>,
    /// A chunk that is shown once the body is stored: a caller that has all of it finds it in the store.
    last: Option<Bytes>,
    received: u64,
    trailers: Option<HeaderMap>,
    sink: Sink,
    /// The bytes from the first on are held for whoever joins.
    joinable: bool,
    readers: usize,
    end: Option<End>,
}

enum End {
    Complete,
    Failed(SharedError),
}

/// Wakes every reader.
#[derive(Default)]
struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    fn add(&self, waker: &Waker) {
        let mut all = lock(&self.0);
        if !all.iter().any(|known| known.will_wake(waker)) {
            all.push(waker.clone());
        }
    }

    /// Wakes every reader but the one that is being polled.
    fn wake_others(&self, polled: Option<&Waker>) {
        for waker in std::mem::take(&mut *lock(&self.0)) {
            if !polled.is_some_and(|polled| waker.will_wake(polled)) {
                waker.wake();
            }
        }
    }
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_others(None);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tee {
    /// A tee of `upstream`, whose bytes go to the sink too, and its first reader.
    pub(crate) fn new(
        head: StoredResponse,
        framing: Framing,
        upstream: UpstreamBody,
        sink: Sink,
    ) -> (Arc<Self>, TeeReader) {
        let state = State {
            upstream: Some(upstream),
            chunks: VecDeque::new(),
            last: None,
            received: 0,
            trailers: None,
            // Nobody can join a body that is not held.
            joinable: framing
                .declared
                .is_none_or(|length| length <= framing.max as u64),
            sink,
            readers: 1,
            end: None,
        };
        let tee = Arc::new(Self {
            head: Arc::new(head),
            framing,
            state: Mutex::new(state),
            wakers: Arc::default(),
        });
        let reader = TeeReader::new(&tee);
        (tee, reader)
    }

    pub(crate) fn head(&self) -> &Arc<StoredResponse> {
        &self.head
    }

    /// A reader for one more caller, from the first byte on; `None` when that caller has to make a request of its own.
    ///
    /// A body of unknown length may become too large to be held for callers that read at their own pace. It is joined
    /// when it has ended, and until then this reads on.
    pub(crate) async fn join(self: &Arc<Self>) -> Option<TeeReader> {
        if self.framing.declared.is_none() {
            std::future::poll_fn(|cx| self.poll_end(cx)).await;
        }
        let mut state = lock(&self.state);
        if !state.joinable || matches!(state.end, Some(End::Failed(_))) {
            return None;
        }
        state.readers += 1;
        Some(TeeReader::new(self))
    }

    /// Ready when the body has ended or cannot be joined any more.
    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        while state.end.is_none() && state.joinable {
            ready!(self.advance(&mut state, cx));
        }
        Poll::Ready(())
    }

    /// Reads one frame, or goes on storing. Ready when something has changed.
    fn advance(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        let polled = cx.waker();
        self.wakers.add(polled);
        let waker = Waker::from(Arc::clone(&self.wakers));
        let cx = &mut Context::from_waker(&waker);
        if state.sink.is_busy() {
            ready!(state.sink.poll(cx));
            state.chunks.extend(state.last.take());
        } else if let Some(upstream) = &mut state.upstream {
            match ready!(Pin::new(upstream).poll_frame(cx)) {
                Some(Ok(frame)) => self.take(state, frame),
                Some(Err(error)) => state.fail(error),
                None => self.end(state),
            }
        } else {
            state.end.get_or_insert(End::Complete);
            return Poll::Ready(());
        }
        self.wakers.wake_others(Some(polled));
        Poll::Ready(())
    }

    /// Takes in one frame.
    fn take(&self, state: &mut State, frame: Frame<Bytes>) {
        let chunk = match frame.into_data() {
            Ok(chunk) => chunk,
            Err(frame) => {
                state.trailers = frame.into_trailers().ok().or(state.trailers.take());
                return;
            }
        };
        state.received += chunk.len() as u64;
        if self
            .framing
            .declared
            .is_some_and(|length| state.received > length)
        {
            // The inner service let a long body pass.
            if state.readers > 1 {
                return state.fail(self.other_length("is too long", state.received));
            }
            if !state.sink.is_closed() {
                (state.sink, state.joinable) = (Sink::Closed, false);
            }
        } else if state.joinable && state.received > self.framing.max as u64 {
            // Whoever joins a body of unknown length waits for its end, so there is one reader at most.
            state.joinable = false;
            state.sink.spill(&state.chunks);
        }
        state.sink.push(&chunk);
        let upstream = state.upstream.as_ref();
        let whole = self.framing.declared == Some(state.received)
            || upstream.is_some_and(Body::is_end_stream);
        if whole && !state.sink.is_closed() {
            state.last = Some(chunk);
            self.store(state);
        } else {
            state.chunks.push_back(chunk);
            state.sink.flush();
        }
    }

    /// The inner body has come to its end.
    fn end(&self, state: &mut State) {
        let declared = self.framing.declared;
        if declared.is_some_and(|length| length != state.received) {
            // The inner service let a short body pass.
            return state.fail(self.other_length("ended early", state.received));
        }
        state.upstream = None;
        if state.sink.is_closed() {
            state.end = Some(End::Complete);
        } else {
            self.store(state);
        }
    }

    /// Begins to store what has been read, unless it is another part than was promised.
    fn store(&self, state: &mut State) {
        let promised = self.framing.promised;
        if promised.is_some_and(|length| length != state.received) {
            state.sink = Sink::Closed;
            state.chunks.extend(state.last.take());
        } else {
            state.sink.finish(state.chunks.iter().chain(&state.last));
        }
    }

    fn other_length(&self, what: &str, received: u64) -> BoxError {
        let declared = self.framing.declared.unwrap_or_default();
        format!("the response body {what} ({received} of {declared} bytes)").into()
    }
}

impl State {
    fn fail(&mut self, error: BoxError) {
        self.sink = Sink::Closed;
        self.upstream = None;
        self.end = Some(End::Failed(SharedError::new(error)));
    }
}

/// One caller's position in a [`Tee`].
pub(crate) struct TeeReader {
    tee: Arc<Tee>,
    next: usize,
    done: bool,
}

impl TeeReader {
    fn new(tee: &Arc<Tee>) -> Self {
        Self {
            tee: Arc::clone(tee),
            next: 0,
            done: false,
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let tee = &*self.tee;
        let mut state = lock(&tee.state);
        loop {
            if !state.joinable && state.readers == 1 {
                // The only reader takes what it is given; nothing is held behind it.
                if self.next > 0 {
                    state.chunks.drain(..self.next);
                    self.next = 0;
                }
                if let Some(chunk) = state.chunks.pop_front() {
                    return Poll::Ready(Some(Ok(Frame::data(chunk))));
                }
            } else if let Some(chunk) = state.chunks.get(self.next) {
                self.next += 1;
                return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
            }
            if let Some(end) = &state.end {
                self.done = true;
                return Poll::Ready(match end {
                    End::Complete => state.trailers.clone().map(|map| Ok(Frame::trailers(map))),
                    End::Failed(error) => Some(Err(error.take())),
                });
            }
            ready!(tee.advance(&mut state, cx));
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        if self.done {
            return true;
        }
        let state = lock(&self.tee.state);
        let ended = match &state.end {
            Some(End::Complete) => true,
            Some(End::Failed(_)) => false,
            None => {
                let upstream = state.upstream.as_ref();
                state.sink.is_closed() && upstream.is_none_or(Body::is_end_stream)
            }
        };
        ended && state.trailers.is_none() && self.next >= state.chunks.len()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let state = lock(&self.tee.state);
        let unread = state.chunks.iter().skip(self.next).chain(&state.last);
        let unread: u64 = unread.map(|chunk| chunk.len() as u64).sum();
        let upstream = match &state.upstream {
            Some(body) if state.end.is_none() => body.size_hint(),
            _ => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(unread + upstream.lower());
        if let Some(upper) = upstream.upper() {
            hint.set_upper(unread + upper);
        }
        hint
    }
}

impl Drop for TeeReader {
    fn drop(&mut self) {
        lock(&self.tee.state).readers -= 1;
        // The one that read for all may be gone.
        self.tee.wakers.wake_others(None);
    }
}
