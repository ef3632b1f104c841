//! A response body that is read from the network once, handed to everybody who asked for it, and stored at its end.
//!
//! Whoever is polled reads on for all; the octets are kept until the body is stored or turns out too large. A body that
//! breaks off, errs or is dropped by all of its readers is never stored.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Bytes, BytesMut};
use etiquette_core::cache_policy::StoredResponse;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::BoxError;

/// The body of the inner service, its type forgotten.
pub(super) type Upstream = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// Stores a whole body; `None` when it must not be stored after all.
pub(super) type Keep = Box<dyn FnOnce(Bytes) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A body under way.
pub(super) struct Stream {
    head: Arc<StoredResponse>,
    /// The length of the message, as its framing promises.
    declared: Option<u64>,
    /// The length of a part, as Content-Range promises: one that does not keep it is not stored.
    promised: Option<u64>,
    max: usize,
    state: Mutex<State>,
    wakers: Arc<Wakers>,
}

struct State {
    upstream: Option<Upstream>,
    /// What has been read, from the first octet on while it may still be stored or joined.
    chunks: VecDeque<Bytes>,
    /// A chunk that is shown once the body is stored: a caller who has all of it finds it in the store.
    last: Option<Bytes>,
    received: u64,
    trailers: Option<HeaderMap>,
    keep: Option<Keep>,
    storing: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Nobody can join any more: the octets from the first on are not kept.
    passing: bool,
    readers: usize,
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Complete,
    Broken(Arc<str>),
    /// The error itself is for the first reader who meets it.
    Error(Arc<Mutex<Option<BoxError>>>, Arc<str>),
}

/// A body that another reader was reading broke off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrokenOff(Arc<str>);

impl fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the response body broke off: {}", self.0)
    }
}

impl std::error::Error for BrokenOff {}

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
}

impl Wake for Wakers {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let all = std::mem::take(&mut *lock(&self.0));
        for waker in all {
            waker.wake();
        }
    }
}

impl Wakers {
    /// Wakes everybody but the reader that is being polled.
    fn wake_others(&self, polled: &Waker) {
        let all = std::mem::take(&mut *lock(&self.0));
        for waker in all {
            if !waker.will_wake(polled) {
                waker.wake();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// A stream of `upstream`, which `keep` stores if it is complete and no longer than `max`. A `declared` length is
    /// no longer than that.
    pub(super) fn new(
        head: Arc<StoredResponse>,
        declared: Option<u64>,
        promised: Option<u64>,
        upstream: Upstream,
        max: usize,
        keep: Keep,
    ) -> Arc<Self> {
        Arc::new(Self {
            head,
            declared,
            promised,
            max,
            state: Mutex::new(State {
                upstream: Some(upstream),
                chunks: VecDeque::new(),
                last: None,
                received: 0,
                trailers: None,
                keep: Some(keep),
                storing: None,
                passing: false,
                readers: 0,
                end: None,
            }),
            wakers: Arc::default(),
        })
    }

    pub(super) fn head(&self) -> &Arc<StoredResponse> {
        &self.head
    }

    /// A reader from the first octet on.
    pub(super) fn reader(self: &Arc<Self>) -> Option<Reader> {
        let mut state = lock(&self.state);
        if state.passing {
            return None;
        }
        state.readers += 1;
        Some(Reader {
            stream: Arc::clone(self),
            next: 0,
            done: false,
        })
    }

    /// A reader for one more caller; `None` when it has to ask for itself.
    ///
    /// A body of unknown length may become too large to be kept for callers who read at their own pace. It is joined
    /// when it has ended, and until then this reads on.
    pub(super) async fn join(self: &Arc<Self>) -> Option<Reader> {
        if self.declared.is_none() {
            std::future::poll_fn(|cx| self.poll_end(cx)).await;
        }
        let ended = {
            let state = lock(&self.state);
            !matches!(state.end, Some(End::Broken(_) | End::Error(..)))
        };
        if ended { self.reader() } else { None }
    }

    /// Ready when the body has ended or cannot be joined any more.
    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        while state.end.is_none() && !state.passing {
            if self.advance(&mut state, cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Reads one frame, or goes on storing. Ready when something has changed.
    fn advance(&self, state: &mut State, cx: &mut Context<'_>) -> Poll<()> {
        let polled = cx.waker();
        self.wakers.add(polled);
        let waker = Waker::from(Arc::clone(&self.wakers));
        let cx = &mut Context::from_waker(&waker);
        if let Some(storing) = &mut state.storing {
            if storing.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            state.storing = None;
            if let Some(last) = state.last.take() {
                state.chunks.push_back(last);
            }
            self.wakers.wake_others(polled);
            return Poll::Ready(());
        }
        let Some(upstream) = &mut state.upstream else {
            state.end.get_or_insert(End::Complete);
            return Poll::Ready(());
        };
        let Poll::Ready(frame) = upstream.as_mut().poll_frame(cx) else {
            return Poll::Pending;
        };
        match frame {
            Some(Ok(frame)) => self.take(state, frame),
            Some(Err(error)) => {
                let text = error.to_string().into();
                state.stop(End::Error(Arc::new(Mutex::new(Some(error))), text));
            }
            None if self.declared.is_some_and(|length| length != state.received) => {
                // The inner service let a short body pass for a whole one.
                state.stop(End::Broken("fewer octets than Content-Length".into()));
            }
            None => {
                state.upstream = None;
                if state.keep.is_some() {
                    self.store(state);
                } else {
                    state.end = Some(End::Complete);
                }
            }
        }
        self.wakers.wake_others(polled);
        Poll::Ready(())
    }

    fn take(&self, state: &mut State, frame: Frame<Bytes>) {
        let chunk = match frame.into_data() {
            Ok(chunk) => chunk,
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    state.trailers = Some(trailers);
                }
                return;
            }
        };
        state.received += chunk.len() as u64;
        let too_long = self.declared.is_some_and(|length| state.received > length);
        if too_long && state.readers > 1 {
            state.stop(End::Broken("more octets than Content-Length".into()));
            return;
        }
        if state.keep.is_some() && (too_long || state.received > self.max as u64) {
            // Whoever shares a body of unknown length waits for its end, so there is one reader at most.
            state.keep = None;
            state.passing = true;
        }
        let whole = self.declared == Some(state.received)
            || state
                .upstream
                .as_ref()
                .is_some_and(|body| body.is_end_stream());
        if whole && state.keep.is_some() {
            state.last = Some(chunk);
            self.store(state);
        } else {
            state.chunks.push_back(chunk);
        }
    }

    /// Begins to store what has been read.
    fn store(&self, state: &mut State) {
        let Some(keep) = state.keep.take() else {
            return;
        };
        let mut parts = state.chunks.iter().chain(&state.last);
        let body = match (parts.next(), parts.next()) {
            _ if self.promised.is_some_and(|length| length != state.received) => {
                if let Some(last) = state.last.take() {
                    state.chunks.push_back(last);
                }
                return;
            }
            (None, _) => Bytes::new(),
            // A copy of its own: a slice would keep the whole buffer of the connection alive.
            (Some(only), None) => Bytes::copy_from_slice(only),
            _ => {
                let mut all = BytesMut::with_capacity(usize::try_from(state.received).unwrap_or(0));
                for part in state.chunks.iter().chain(&state.last) {
                    all.extend_from_slice(part);
                }
                all.freeze()
            }
        };
        state.storing = Some(keep(body));
    }
}

impl State {
    fn stop(&mut self, end: End) {
        self.keep = None;
        self.upstream = None;
        self.end = Some(end);
    }
}

/// One caller's place in a [`Stream`].
pub(super) struct Reader {
    stream: Arc<Stream>,
    next: usize,
    done: bool,
}

impl Reader {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let stream = &*self.stream;
        let mut state = lock(&stream.state);
        loop {
            if state.passing && state.readers == 1 {
                // The only reader takes what it is given; nothing is kept behind it.
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
            if let Some(end) = state.end.clone() {
                self.done = true;
                return Poll::Ready(match end {
                    End::Complete => state.trailers.clone().map(|map| Ok(Frame::trailers(map))),
                    End::Broken(why) => Some(Err(BrokenOff(why).into())),
                    End::Error(first, why) => Some(Err(lock(&first)
                        .take()
                        .unwrap_or_else(|| BrokenOff(why).into()))),
                });
            }
            if stream.advance(&mut state, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        if self.done {
            return true;
        }
        let state = lock(&self.stream.state);
        let ended = match &state.end {
            Some(End::Complete) => true,
            Some(_) => false,
            None => {
                state.storing.is_none()
                    && state.last.is_none()
                    && state
                        .upstream
                        .as_ref()
                        .is_none_or(|body| body.is_end_stream())
                    && state.keep.is_none()
            }
        };
        ended && state.trailers.is_none() && self.next >= state.chunks.len()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let state = lock(&self.stream.state);
        let buffered: u64 = state
            .chunks
            .iter()
            .skip(self.next)
            .chain(&state.last)
            .map(|chunk| chunk.len() as u64)
            .sum();
        let upstream = match &state.upstream {
            Some(body) if state.end.is_none() => body.size_hint(),
            _ => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(buffered + upstream.lower());
        if let Some(upper) = upstream.upper() {
            hint.set_upper(buffered + upper);
        }
        hint
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = lock(&self.stream.state);
        state.readers -= 1;
        drop(state);
        // The one that read for all may be gone.
        self.stream.wakers.wake_by_ref();
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
