//! 800 callers that come one after the other and wait for one host: how often each is polled, and who is overtaken.

use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use governor::{Quota, RateLimiter};
use http::{Request, Response};
use tower::limit::ConcurrencyLimit;
use tower::{Service, ServiceExt, service_fn};
use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
use tower_layer::Layer;

use super::Row;

const WAITERS: usize = 800;
/// From one start to the next: real time, since governor has no other.
const DELAY: Duration = Duration::from_millis(2);

/// How 800 callers fared.
struct Fared {
    /// Of all of them together.
    polls: u64,
    /// Callers who started after one who had come later.
    overtaken: usize,
}

pub(super) fn rows() -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let ours = runtime.block_on(ours());
    let peers = [
        ("governor", runtime.block_on(governor())),
        ("tower concurrency", runtime.block_on(tower())),
    ];
    let mut rows = Vec::new();
    for (peer, theirs) in peers {
        let polls = ("waiters-800", "polls", "polls");
        rows.extend(super::rows(
            polls,
            ours.polls as f64,
            [(peer, theirs.polls as f64)],
        ));
        let order = ("waiters-800", "out-of-order", "callers");
        rows.extend(super::rows(
            order,
            ours.overtaken as f64,
            [(peer, theirs.overtaken as f64)],
        ));
    }
    rows
}

async fn ours() -> Fared {
    let site =
        service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let hosts = Hosts::new(HostPolicy::new().min_delay(DELAY).latency_factor(0));
    let client = HostBudgetLayer::new(hosts).layer(site);
    fare(|| {
        let request = Request::get("http://site.example/").body(());
        let call = client.clone().oneshot(request.expect("a valid request"));
        async move {
            call.await.expect("nobody waits for too long");
        }
    })
    .await
}

async fn governor() -> Fared {
    let quota = Quota::with_period(DELAY)
        .expect("a period")
        .allow_burst(NonZeroU32::MIN);
    let limiter = Arc::new(RateLimiter::keyed(quota));
    fare(|| {
        let limiter = Arc::clone(&limiter);
        async move { limiter.until_key_ready(&"site.example").await }
    })
    .await
}

/// It has no delay: the permit is held for as long.
async fn tower() -> Fared {
    let inner = service_fn(|()| async {
        tokio::time::sleep(DELAY).await;
        Ok::<_, Infallible>(())
    });
    let limited = ConcurrencyLimit::new(inner, 1);
    let order = |mut service: ConcurrencyLimit<_>| async move {
        let call = service.ready().await.expect("no error").call(());
        // The turn is what counts, not the end of the call that the permit is held for.
        tokio::spawn(call);
    };
    fare(|| order(limited.clone())).await
}

async fn fare<F>(waiter: impl Fn() -> F) -> Fared
where
    F: Future<Output = ()> + Send + 'static,
{
    let polls = Arc::new(AtomicU64::new(0));
    let order = Arc::new(Mutex::new(Vec::with_capacity(WAITERS)));
    let mut tasks = Vec::with_capacity(WAITERS);
    for number in 0..WAITERS {
        let counted = Counted {
            future: Box::pin(waiter()),
            polls: Arc::clone(&polls),
        };
        let order = Arc::clone(&order);
        // Tasks of one thread are first polled in the order in which they were spawned.
        tasks.push(tokio::spawn(async move {
            counted.await;
            order.lock().expect("nobody panics").push(number);
        }));
    }
    for task in tasks {
        task.await.expect("nobody panics");
    }
    let order = order.lock().expect("nobody panics");
    let mut last = None;
    let overtaken = order
        .iter()
        .filter(|number| {
            let late = last > Some(**number);
            last = last.max(Some(**number));
            late
        })
        .count();
    Fared {
        polls: polls.load(Ordering::Relaxed),
        overtaken,
    }
}

/// Counts how often a future is polled.
struct Counted<F> {
    future: Pin<Box<F>>,
    polls: Arc<AtomicU64>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.future.as_mut().poll(task)
    }
}
