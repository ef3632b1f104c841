//! A response body that is read from the network once, handed to everybody who asked for it, and stored at its end.
//!
//! Whoever is polled reads on for all; the bytes are kept until the body is stored or turns out too large. One that is
//! too large is for one reader, and is written piece by piece where the store takes pieces: then as much is held as one
//! piece. A body that breaks off, errs or is dropped by all of its readers is never stored.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::{Bytes, BytesMut};
use etiquette_core::decide::cache_policy::StoredResponse;
use etiquette_core::store::BodyWriter;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::scope::STORE;
use crate::{BoxError, events};

/// The body of the inner service, its type forgotten.
pub(super) type Upstream = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// How a body is stored.
pub(super) trait Keep: Send {
    /// Stores a whole body.
    fn whole(self: Box<Self>, body: Bytes) -> Storing<()>;

    /// Begins to store a body that turns out too large to be held; `None` where the store takes none in pieces.
    fn begin(&self) -> Option<Box<dyn BodyWriter>>;

    /// All of it is written.
    fn finish(self: Box<Self>, writer: Box<dyn BodyWriter>) -> Storing<()>;
}

/// Work of the store on a body.
pub(super) type Storing<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// As much is written at once of a body that is too large to be held.
const WRITTEN_AT_ONCE: usize = 512 << 10;

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
    /// What has been read, from the first byte on while it may still be stored or joined.
    chunks: VecDeque<Bytes>,
    /// A chunk that is shown once the body is stored: a caller who has all of it finds it in the store.
    last: Option<Bytes>,
    received: u64,
    trailers: Option<HeaderMap>,
    keep: Option<Box<dyn Keep>>,
    /// Ends with the writer, if more is to be written with it.
    storing: Option<Storing<Option<Box<dyn BodyWriter>>>>,
    /// Of a body that is too large to be held.
    writer: Option<Box<dyn BodyWriter>>,
    unwritten: Vec<Bytes>,
    /// Nobody can join any more: the bytes from the first on are not kept.
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
    /// A stream of `upstream`, and its first reader. `keep` stores it if it is complete: as a whole if it is no longer
    /// than `max`, else by the writer that was begun for the length it promises.
    pub(super) fn new(
        head: Arc<StoredResponse>,
        declared: Option<u64>,
        promised: Option<u64>,
        upstream: Upstream,
        max: usize,
        keep: Box<dyn Keep>,
        writer: Option<Box<dyn BodyWriter>>,
    ) -> (Arc<Self>, Reader) {
        let state = State {
            upstream: Some(upstream),
            chunks: VecDeque::new(),
            last: None,
            received: 0,
            trailers: None,
            keep: Some(keep),
            storing: None,
            // Nobody can join a body that is not held.
            passing: writer.is_some(),
            writer,
            unwritten: Vec::new(),
            readers: 1,
            end: None,
        };
        let stream = Arc::new(Self {
            head,
            declared,
            promised,
            max,
            state: Mutex::new(state),
            wakers: Arc::default(),
        });
        let reader = Reader {
            stream: Arc::clone(&stream),
            next: 0,
            done: false,
        };
        (stream, reader)
    }

    pub(super) fn head(&self) -> &Arc<StoredResponse> {
        &self.head
    }

    /// A further reader from the first byte on.
    fn reader(self: &Arc<Self>) -> Option<Reader> {
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
            let Poll::Ready(writer) = storing.as_mut().poll(cx) else {
                return Poll::Pending;
            };
            state.storing = None;
            state.writer = writer;
            if state.writer.is_none() {
                // Stored, or given up.
                state.keep = None;
            }
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
                state.stop(End::Broken("fewer bytes than Content-Length".into()));
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
            state.stop(End::Broken("more bytes than Content-Length".into()));
            return;
        }
        if too_long && state.keep.is_some() {
            state.give_up();
        } else if !state.passing && state.keep.is_some() && state.received > self.max as u64 {
            // Whoever shares a body of unknown length waits for its end, so there is one reader at most.
            state.write_in_pieces();
        }
        let whole = self.declared == Some(state.received)
            || state
                .upstream
                .as_ref()
                .is_some_and(|body| body.is_end_stream());
        if state.writer.is_some() {
            state.unwritten.push(chunk.clone());
        }
        if whole && state.keep.is_some() {
            state.last = Some(chunk);
            self.store(state);
        } else {
            state.chunks.push_back(chunk);
            state.write(WRITTEN_AT_ONCE);
        }
    }

    /// Begins to store what has been read.
    fn store(&self, state: &mut State) {
        let Some(keep) = state.keep.take() else {
            return;
        };
        if let Some(writer) = state.writer.take() {
            if self.promised.is_some_and(|length| length != state.received) {
                state.chunks.extend(state.last.take());
                state.unwritten.clear();
                return;
            }
            let rest = std::mem::take(&mut state.unwritten);
            state.storing = Some(Box::pin(async move {
                if let Some(writer) = write_all(writer, rest).await {
                    keep.finish(writer).await;
                }
                None
            }));
            return;
        }
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
        let whole = keep.whole(body);
        state.storing = Some(Box::pin(async move {
            whole.await;
            None
        }));
    }
}

async fn write_all(
    mut writer: Box<dyn BodyWriter>,
    bytes: Vec<Bytes>,
) -> Option<Box<dyn BodyWriter>> {
    for bytes in bytes {
        let written = writer.write(bytes).await;
        writer = events::store_result(STORE, "keep a response", written)?;
    }
    Some(writer)
}

impl State {
    /// The body is too large to be held: nobody can join it any more, and it is stored in pieces if at all.
    fn write_in_pieces(&mut self) {
        self.passing = true;
        self.writer = self.keep.as_ref().and_then(|keep| keep.begin());
        if self.writer.is_none() {
            self.keep = None;
        } else {
            self.unwritten.extend(self.chunks.iter().cloned());
        }
    }

    /// Begins to write what is there, if that is as much as `least`.
    fn write(&mut self, least: usize) {
        if self.unwritten.iter().map(Bytes::len).sum::<usize>() < least {
            return;
        }
        if let Some(writer) = self.writer.take() {
            let bytes = std::mem::take(&mut self.unwritten);
            self.storing = Some(Box::pin(write_all(writer, bytes)));
        }
    }

    /// It is not stored after all, and goes to its reader as it comes.
    fn give_up(&mut self) {
        self.keep = None;
        self.writer = None;
        self.unwritten.clear();
        self.passing = true;
    }

    fn stop(&mut self, end: End) {
        self.keep = None;
        self.writer = None;
        self.unwritten.clear();
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
