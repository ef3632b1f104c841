//! One piece of work that many callers wait for.
//!
//! The work has no task of its own: whichever waiter the runtime polls carries it on. Dropping one waiter therefore
//! loses nothing, dropping the last one cancels the work, and a panic in it ends it with an error for all.
//!
//! Only the waiter that polled last is woken by the work; all are woken when it is done. With n waiters a piece of
//! work that wakes k times costs n + k polls.

use crate::lock::lock;
use crate::macros::opaque_debug;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};

/// The work panicked. Its panic message has gone to the panic hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shared request panicked")
    }
}

impl std::error::Error for Panicked {}

/// A waiter for shared work. Clone it to wait more than once.
///
/// # Cancel safety
/// Dropping it hands the work over to another waiter; dropping the last one cancels the work.
pub(crate) struct Flight<T> {
    shared: Arc<Shared<T>>,
    id: u64,
}

/// Finds a flight as long as somebody waits for it.
pub(crate) struct WeakFlight<T>(Weak<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    signal: Arc<Signal>,
}

struct State<T> {
    progress: Progress<T>,
    waiting: BTreeMap<u64, Waker>,
    next_id: u64,
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum Progress<T> {
    /// Nobody polls the work at this moment.
    Resting(Work<T>),
    /// A waiter is polling it right now.
    Polled,
    Done(Result<T, Panicked>),
}

/// The work's waker: wakes the waiter that polled it last.
#[derive(Default)]
struct Signal(Mutex<Option<Waker>>);

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        let carrier = lock(&self.0).clone();
        if let Some(waker) = carrier {
            waker.wake();
        }
    }
}

impl<T> Flight<T> {
    /// Work that starts when a waiter is first polled.
    pub(crate) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        let state = State {
            progress: Progress::Resting(Box::pin(work)),
            waiting: BTreeMap::new(),
            next_id: 1,
        };
        let shared = Shared {
            state: Mutex::new(state),
            signal: Arc::default(),
        };
        Self {
            shared: Arc::new(shared),
            id: 0,
        }
    }

    /// Lets others find this flight without keeping it alive.
    pub(crate) fn downgrade(&self) -> WeakFlight<T> {
        WeakFlight(Arc::downgrade(&self.shared))
    }

    fn join(shared: Arc<Shared<T>>) -> Self {
        let id = {
            let mut state = lock(&shared.state);
            let id = state.next_id;
            state.next_id += 1;
            id
        };
        Self { shared, id }
    }
}

impl<T> WeakFlight<T> {
    /// Joins the flight if somebody still waits for it; a flight that is done still answers.
    pub(crate) fn join(&self) -> Option<Flight<T>> {
        self.0.upgrade().map(Flight::join)
    }
}

impl<T> Clone for WeakFlight<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Clone for Flight<T> {
    fn clone(&self) -> Self {
        Self::join(Arc::clone(&self.shared))
    }
}

impl<T: Clone> Future for Flight<T> {
    type Output = Result<T, Panicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let shared = &self.shared;
        let mut work = {
            let mut state = lock(&shared.state);
            match std::mem::replace(&mut state.progress, Progress::Polled) {
                Progress::Done(result) => {
                    state.waiting.remove(&self.id);
                    state.progress = Progress::Done(result.clone());
                    return Poll::Ready(result);
                }
                Progress::Polled => {
                    state.waiting.insert(self.id, cx.waker().clone());
                    return Poll::Pending;
                }
                Progress::Resting(work) => {
                    state.waiting.insert(self.id, cx.waker().clone());
                    work
                }
            }
        };
        *lock(&shared.signal.0) = Some(cx.waker().clone());
        let waker = Waker::from(Arc::clone(&shared.signal));
        let polled = catch_unwind(AssertUnwindSafe(|| {
            work.as_mut().poll(&mut Context::from_waker(&waker))
        }));
        let result = match polled {
            Ok(Poll::Pending) => {
                lock(&shared.state).progress = Progress::Resting(work);
                return Poll::Pending;
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(_) => Err(Panicked),
        };
        let waiting = {
            let mut state = lock(&shared.state);
            state.progress = Progress::Done(result.clone());
            std::mem::take(&mut state.waiting)
        };
        // What the work held is let go before anybody acts on its result.
        drop(work);
        for waker in waiting.into_values() {
            waker.wake();
        }
        Poll::Ready(result)
    }
}

impl<T> Drop for Flight<T> {
    fn drop(&mut self) {
        let next = {
            let mut state = lock(&self.shared.state);
            // Without a waker of its own it never carried the work, and nobody relied on it.
            if state.waiting.remove(&self.id).is_none() {
                return;
            }
            state.waiting.values().next().cloned()
        };
        if let Some(waker) = next {
            waker.wake();
        }
    }
}

opaque_debug!(Flight<T>);

opaque_debug!(WeakFlight<T>);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    fn counted(started: &Arc<AtomicUsize>) -> Flight<u32> {
        let started = Arc::clone(started);
        Flight::new(async move {
            started.fetch_add(1, Ordering::SeqCst);
            for _ in 0..10 {
                sleep(Duration::from_secs(1)).await;
            }
            7
        })
    }

    #[tokio::test(start_paused = true)]
    async fn all_get_the_one_result() {
        let started = Arc::default();
        let flight = counted(&started);
        let tasks: Vec<_> = (0..100).map(|_| tokio::spawn(flight.clone())).collect();
        drop(flight);
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(7));
        }
        assert_eq!(started.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_give_up_one_after_another_hand_it_on() {
        let start = tokio::time::Instant::now();
        let started = Arc::default();
        let flight = counted(&started);
        let tasks: Vec<_> = (0..10u64)
            .map(|i| {
                let flight = flight.clone();
                tokio::spawn(tokio::time::timeout(
                    Duration::from_millis(500 + 1_000 * i),
                    flight,
                ))
            })
            .collect();
        assert_eq!(flight.await, Ok(7));
        assert_eq!(start.elapsed(), Duration::from_secs(10));
        for task in tasks {
            assert!(task.await.unwrap().is_err());
        }
        assert_eq!(started.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_all_cancels_and_nobody_joins_any_more() {
        struct Guard(Arc<AtomicUsize>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        let dropped: Arc<AtomicUsize> = Arc::default();
        let guard = Guard(Arc::clone(&dropped));
        let flight = Flight::new(async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        });
        let weak = flight.downgrade();
        assert!(
            tokio::time::timeout(Duration::from_secs(1), flight.clone())
                .await
                .is_err()
        );
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        drop(flight);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert!(weak.join().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_an_error_for_all() {
        let flight: Flight<()> = Flight::new(async {
            sleep(Duration::from_secs(1)).await;
            panic!("on purpose");
        });
        let other = tokio::spawn(flight.clone());
        assert_eq!(flight.await, Err(Panicked));
        assert_eq!(other.await.unwrap(), Err(Panicked));
    }

    #[tokio::test(start_paused = true)]
    async fn polls_grow_with_waiters_and_wakes_not_with_their_product() {
        let polls: Arc<AtomicUsize> = Arc::default();
        let flight = counted(&Arc::default());
        let tasks: Vec<_> = (0..800)
            .map(|_| {
                let mut flight = flight.clone();
                let polls = Arc::clone(&polls);
                tokio::spawn(std::future::poll_fn(move |cx| {
                    polls.fetch_add(1, Ordering::SeqCst);
                    Pin::new(&mut flight).poll(cx)
                }))
            })
            .collect();
        drop(flight);
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        // Each waiter once to come and once to go, and once more for each of the ten steps of the work.
        assert!(polls.load(Ordering::SeqCst) <= 2 * 800 + 10 + 1);
    }
}
