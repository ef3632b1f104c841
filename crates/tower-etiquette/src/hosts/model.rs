//! The line and the hand-over of permits under all kinds of interleavings: shuttle runs the code itself, and chooses at each
//! taking of a host's lock which thread goes on. A wake-up that is lost shows as a deadlock.
//!
//! `cargo test -p tower-etiquette --lib hosts::model`; as many schedules as `ETIQUETTE_SCHEDULES` says, 500 for each model
//! otherwise. A failure prints its schedule, which `shuttle::replay` plays again.
//!
//! Why shuttle and not loom: under `--cfg loom` tokio has no timers, and every lock and atomic of the crate would have to be
//! loom's. Here one lock guards all that is modelled, and only that one is exchanged, in tests.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::decide::host::{HostPolicy, HostResponse, ResponseRecord, Signal};
use etiquette_core::vocabulary::purpose::{Api, ApiKey, ApiLimit};
use etiquette_core::{Clock, Now, Origin, PurposeKind};
use http::Extensions;
use shuttle::future::block_on;
use shuttle::thread;
use tower_service::Service;

use super::sync::MODEL;
use super::{AcquireOptions, Hosts, Permit, admit};
use crate::BoxError;

/// Time stands still: nothing but the others lets a request go on.
#[derive(Debug)]
struct Still(Now);

impl Clock for Still {
    fn now(&self) -> Now {
        self.0
    }
}

/// An inner service that is not ready at the first poll, so that anything may happen between a grant and the start.
#[derive(Clone, Debug)]
struct Slow {
    polled: bool,
    paused: Arc<AtomicBool>,
    /// The pause was there before the start.
    saw_pause: Arc<AtomicBool>,
}

impl Service<()> for Slow {
    type Response = ();
    type Error = BoxError;
    type Future = std::future::Ready<Result<(), BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        if !std::mem::replace(&mut self.polled, true) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        thread::yield_now();
        self.saw_pause
            .store(self.paused.load(Ordering::SeqCst), Ordering::SeqCst);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: ()) -> Self::Future {
        std::future::ready(Ok(()))
    }
}

/// A host with one permit, and the threads' view of it.
#[derive(Clone)]
struct World {
    hosts: Hosts,
    origin: Origin,
    api: Option<Api>,
    paused: Arc<AtomicBool>,
    under_way: Arc<AtomicU32>,
    order: Arc<std::sync::Mutex<Vec<u32>>>,
}

type Admitted = Pin<Box<dyn Future<Output = Result<Started, BoxError>> + Send>>;

struct Started {
    permit: Option<Permit>,
    world: World,
    saw_pause: bool,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.world.under_way.fetch_sub(1, Ordering::SeqCst);
        drop(self.permit.take());
    }
}

impl World {
    fn new(api: bool) -> Self {
        let now = Now {
            monotonic: Instant::now(),
            wall: SystemTime::UNIX_EPOCH,
        };
        let policy = HostPolicy::new()
            .min_delay(Duration::ZERO)
            .latency_factor(0)
            .max_wait(Duration::from_secs(60));
        let hosts = Hosts::builder().policy(policy).clock(Arc::new(Still(now)));
        let limit = ApiLimit::new(1_000.try_into().unwrap(), Duration::from_secs(1));
        let limit = limit.burst(1_000.try_into().unwrap());
        let key = ApiKey::query("key");
        Self {
            hosts: hosts.build(),
            origin: Origin::of(&"http://a/".parse().unwrap()).unwrap(),
            api: api.then(|| Api::new("http://a/", key, limit, "http://a/docs").unwrap()),
            paused: Arc::default(),
            under_way: Arc::default(),
            order: Arc::default(),
        }
    }

    fn request(&self) -> Admitted {
        let world = self.clone();
        Box::pin(async move {
            let options = AcquireOptions {
                purpose: PurposeKind::Crawl,
                api: world.api.clone(),
                pauses_only: false,
                paced_elsewhere: false,
                never_wait: false,
                not_before: None,
            };
            let saw_pause = Arc::new(AtomicBool::new(false));
            let inner = Slow {
                polled: false,
                paused: Arc::clone(&world.paused),
                saw_pause: Arc::clone(&saw_pause),
            };
            let (hosts, origin) = (world.hosts.clone(), world.origin.clone());
            let extensions = Extensions::new();
            let (_, permit) = admit(&hosts, &origin, &extensions, options, None, inner).await?;
            let others = world.under_way.fetch_add(1, Ordering::SeqCst);
            assert_eq!(others, 0, "one permit");
            Ok(Started {
                permit: Some(permit),
                saw_pause: saw_pause.load(Ordering::SeqCst),
                world,
            })
        })
    }

    /// Nothing is left of all that.
    fn is_at_rest(&self) {
        let totals = self.hosts.totals();
        assert_eq!((totals.in_flight, totals.waiting), (0, 0));
    }
}

/// Polls once, as a caller does that goes on to something else.
fn poll_once(request: &mut Admitted) -> Option<Result<Started, BoxError>> {
    block_on(poll_fn(|cx| {
        Poll::Ready(match request.as_mut().poll(cx) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        })
    }))
}

fn visit(request: Admitted) {
    drop(block_on(request).expect("nothing forbids it"));
}

/// Plays `model` under many schedules: random ones, and such with few changes between threads.
fn play(model: impl Fn(World) + Clone + Send + Sync + 'static) {
    let schedules = std::env::var("ETIQUETTE_SCHEDULES");
    let schedules = schedules.map_or(500, |n| n.parse().expect("a number"));
    for api in [false, true] {
        let model = model.clone();
        let body = move || {
            // Waiting ends by a wake-up, never by time: the timers only have to exist.
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime needs nothing");
            let entered = runtime.enter();
            MODEL.set(true);
            let world = World::new(api);
            model(world.clone());
            drop(entered);
            drop(runtime);
            world.is_at_rest();
        };
        shuttle::check_random(body.clone(), schedules);
        shuttle::check_pct(body, schedules, 3);
    }
    MODEL.set(false);
}

/// What a model that should fail comes to.
fn fails(model: impl Fn(World) + Clone + Send + Sync + 'static) -> String {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| play(model)));
    MODEL.set(false);
    let why = outcome.expect_err("the fault is found");
    match (why.downcast_ref::<String>(), why.downcast_ref::<&str>()) {
        (Some(why), _) => why.clone(),
        (None, Some(why)) => (*why).to_owned(),
        (None, None) => String::from("?"),
    }
}

#[test]
fn a_grant_a_release_and_a_cancellation_meet() {
    play(|world| {
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                let request = world.request();
                thread::spawn(move || visit(request))
            })
            .collect();
        let mut cancelled = world.request();
        let canceller = thread::spawn(move || {
            // Once or twice: in the line, or between its grant and its start.
            for _ in 0..2 {
                if let Some(outcome) = poll_once(&mut cancelled) {
                    drop(outcome);
                    return;
                }
                thread::yield_now();
            }
            drop(cancelled);
        });
        for visitor in visitors {
            visitor.join().unwrap();
        }
        canceller.join().unwrap();
    });
}

#[test]
fn a_pause_that_comes_between_grant_and_start_holds_the_request() {
    play(|world| {
        let request = world.request();
        let visitor = thread::spawn(move || {
            if let Ok(started) = block_on(request) {
                assert!(!started.saw_pause, "it started within the pause");
            }
        });
        let teller = {
            let world = world.clone();
            thread::spawn(move || {
                let now = world.hosts.clock().now().monotonic;
                let mut answer = HostResponse::failure();
                answer.signal = Signal::Throttled;
                answer.wait = Some(Duration::from_secs(1_000));
                let received = ResponseRecord::new(now, answer, true, 0.0);
                let _ = world.hosts.record(&world.origin, &received);
                world.paused.store(true, Ordering::SeqCst);
            })
        };
        visitor.join().unwrap();
        teller.join().unwrap();
    });
}

#[test]
fn three_who_wait_are_woken_in_their_order() {
    play(|world| {
        let holder = block_on(world.request()).unwrap();
        let visitors: Vec<_> = (0..3)
            .map(|number| {
                let mut request = world.request();
                assert!(poll_once(&mut request).is_none(), "the permit is taken");
                let world = world.clone();
                thread::spawn(move || {
                    let started = block_on(request).unwrap();
                    world.order.lock().unwrap().push(number);
                    drop(started);
                })
            })
            .collect();
        drop(holder);
        for visitor in visitors {
            visitor.join().unwrap();
        }
        assert_eq!(*world.order.lock().unwrap(), [0, 1, 2]);
    });
}

#[test]
fn one_who_is_not_polled_any_more_is_passed() {
    play(|world| {
        let holder = block_on(world.request()).unwrap();
        let mut silent = world.request();
        assert!(poll_once(&mut silent).is_none());
        let mut request = world.request();
        assert!(poll_once(&mut request).is_none());
        let visitor = thread::spawn(move || visit(request));
        let watcher = {
            let world = world.clone();
            thread::spawn(move || {
                let host = world.hosts.0.find(&world.origin).unwrap();
                let table = &world.hosts.0.table;
                let number = |api: &Api| table.key_of((api.origin(), api.prefix(), api.key()));
                let api = world.api.as_ref().map(number);
                let mut now = world.hosts.clock().now().monotonic;
                block_on(poll_fn(|cx| {
                    // Time passes for the monitor alone: a head that is not polled by then is stalled.
                    while let Some(until) = host.with_queue(api, |locked| {
                        let queue = &mut locked.queue;
                        queue.check_head(now, cx.waker(), locked.wakers)
                    }) {
                        now = until;
                        thread::yield_now();
                    }
                    Poll::Ready(())
                }));
            })
        };
        drop(holder);
        visitor.join().unwrap();
        watcher.join().unwrap();
        drop(silent);
    });
}

/// Seeded: whoever is cancelled stays in the line.
#[test]
fn the_models_find_a_phantom_in_the_line() {
    let why = fails(|world| {
        let holder = block_on(world.request()).unwrap();
        let mut phantom = world.request();
        assert!(poll_once(&mut phantom).is_none());
        std::mem::forget(phantom);
        let request = world.request();
        let visitor = thread::spawn(move || visit(request));
        drop(holder);
        visitor.join().unwrap();
    });
    assert!(why.contains("deadlock"), "{why}");
}

/// Seeded: a permit is not given back.
#[test]
fn the_models_find_a_place_that_is_lost() {
    let why = fails(|world| {
        let mut holder = block_on(world.request()).unwrap();
        let request = world.request();
        let visitor = thread::spawn(move || visit(request));
        std::mem::forget(holder.permit.take());
        drop(holder);
        visitor.join().unwrap();
    });
    assert!(why.contains("deadlock"), "{why}");
}

/// Seeded: a permit is given back before the body has ended.
#[test]
fn the_models_find_a_place_that_is_given_twice() {
    let why = fails(|world| {
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                let request = world.request();
                thread::spawn(move || {
                    let mut started = block_on(request).unwrap();
                    drop(started.permit.take());
                    thread::yield_now();
                    drop(started);
                })
            })
            .collect();
        for visitor in visitors {
            visitor.join().unwrap();
        }
    });
    assert!(why.contains("one permit"), "{why}");
}
