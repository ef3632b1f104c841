//! One specification, two implementations: the script on the server and the state in memory go through the same drawn
//! histories, on a clock of the test's own.
//!
//! The script counts in microseconds and rounds so that nothing starts sooner. What it may come later is stated at
//! [`most_later`].

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::Now;
use etiquette_core::decide::host::{
    Decision, HostPolicy, HostResponse, HostState, ResponseRecord, StartOptions,
};
use etiquette_core::store::host::{
    AcquireRequest, Acquired, HostEvent, HostReport, HostStore, LeaseId, LeaseUpdate, LocalView,
    SharedView,
};
use http::header::{HeaderMap, RETRY_AFTER};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tower_etiquette_redis::RedisStore;

use crate::server::Server;

/// Longer than any history, so that no permit ends by itself.
const LEASE: Duration = Duration::from_secs(400 * 86_400);
const PRESENT: i64 = 1_796_076_000_000_000;
/// The share that is added to pauses.
const JITTER: (f64, f64) = (0.0, 0.1);

#[derive(Clone, Debug)]
enum Event {
    /// Time goes on, in microseconds.
    Wait(u64),
    Ask {
        ask: StartOptions,
        crawl_delay: Option<(u64, Option<u64>)>,
        /// The process tells what it knows, as one that has seen all of it does.
        knows: bool,
        counted: bool,
    },
    /// A body ends, or a grant is given back.
    End { which: usize, unused: bool },
    /// Pages are served, one after the other, so far apart in microseconds: the rate comes back.
    Well { times: u8, apart: u64 },
    HostResponse {
        which: usize,
        status: Option<u16>,
        retry_after: Option<u32>,
        page: bool,
        timed: bool,
        jitter: f64,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let second = 1_000_000_u64;
    let wait = prop_oneof![
        4 => 0..3 * second,
        4 => second..90 * second,
        2 => 60 * second..2_400 * second,
        1 => Just(60 * second),
        1 => 3_000 * second..100_000 * second,
    ];
    let delay = prop::option::of((0_u64..3, prop::option::of(0_u64..200)));
    let flags = (any::<bool>(), prop::bool::weighted(0.1));
    let ask = (any::<bool>(), 0..8_u8, delay, flags).prop_map(
        |(delay_taken, kind, crawl_delay, (knows, counted))| {
            let mut ask = if kind == 0 {
                StartOptions::pauses()
            } else {
                StartOptions::pace()
            };
            ask.delay_taken = delay_taken && kind < 2;
            Event::Ask {
                ask,
                crawl_delay: crawl_delay.filter(|_| kind >= 4),
                knows,
                counted,
            }
        },
    );
    let status = prop_oneof![
        6 => Just(Some(200)),
        3 => Just(Some(429)),
        2 => prop::sample::select(vec![Some(503), Some(500), Some(502), None]),
        2 => prop::sample::select(vec![Some(403), Some(401), Some(451)]),
        1 => prop::sample::select(vec![Some(404), Some(304), Some(301)]),
    ];
    let retry = prop::option::of(1_u32..4_000);
    let flags = (prop::bool::weighted(0.8), prop::bool::weighted(0.8));
    let answer = (any::<usize>(), status, retry, flags, 0.0..=1.0_f64).prop_map(
        |(which, status, retry_after, (page, timed), jitter)| Event::HostResponse {
            which,
            status,
            retry_after,
            page,
            timed,
            jitter,
        },
    );
    prop_oneof![
        5 => wait.prop_map(Event::Wait),
        6 => ask,
        4 => (any::<usize>(), prop::bool::weighted(0.1))
            .prop_map(|(which, unused)| Event::End { which, unused }),
        5 => answer,
        1 => (1..20_u8, 61 * second..1_900 * second)
            .prop_map(|(times, apart)| Event::Well { times, apart }),
    ]
}

fn policy() -> impl Strategy<Value = HostPolicy> {
    let delay = prop_oneof![Just(0_u64), Just(1_000_000), 0..20_000_000_u64];
    (delay, 1..4_u32, 0..8_u32, 1..6_u32).prop_map(|(delay, permits, factor, blocked)| {
        HostPolicy::new()
            .min_delay(Duration::from_micros(delay))
            .max_in_flight(NonZeroU32::new(permits).unwrap())
            .latency_factor(factor)
            .blocked_after(NonZeroU32::new(blocked).unwrap())
            .jitter(JITTER.0, JITTER.1)
    })
}

/// How much later than in memory the script may let a request start: latency, the learnt delay and the share of a pause are
/// rounded up to a microsecond each; `latency_factor` multiplies that and a lowered rate stretches it. A rate in turn is
/// rounded where it meets its floor.
fn most_later(delay: Duration, rate: f64) -> Duration {
    Duration::from_secs_f64(20e-6 / rate + delay.as_secs_f64() * 1e-4)
}

/// Both of them, at one instant.
struct Pair<'a> {
    store: &'a RedisStore,
    clock: &'a AtomicI64,
    behind: &'a mut redis::Connection,
    namespace: &'a str,
    name: String,
    key: Option<String>,
    policy: HostPolicy,
    state: HostState,
    base: Instant,
    past: u64,
    held: Vec<LeaseId>,
    starts: Vec<Instant>,
    next: u64,
}

type Outcome = Result<(), TestCaseError>;

impl Pair<'_> {
    fn now(&self) -> Instant {
        self.base + Duration::from_micros(self.past)
    }

    fn set_clock(&self) {
        let now = PRESENT + self.past as i64;
        self.clock.store(now, Ordering::SeqCst);
    }

    async fn play(&mut self, event: &Event) -> Outcome {
        self.set_clock();
        match *event {
            Event::Wait(micros) => self.past += micros,
            Event::Ask {
                ask,
                crawl_delay,
                knows,
                counted,
            } => self.ask(ask, crawl_delay, knows, counted).await?,
            Event::End { which, unused } => {
                if !self.held.is_empty() {
                    let lease = self.held.swap_remove(which % self.held.len());
                    self.end(lease, unused).await;
                }
            }
            Event::Well { times, apart } => {
                for _ in 0..times {
                    self.past += apart;
                    self.set_clock();
                    let before = self.starts.len();
                    self.ask(StartOptions::pace(), None, true, false).await?;
                    if self.starts.len() > before {
                        let answer = self.answer(Some(200), None);
                        self.answered(&ResponseRecord::new(self.now(), answer, true, 0.0))
                            .await;
                        self.compare_memory()?;
                        let lease = self.held.pop().expect("it was just granted");
                        self.end(lease, false).await;
                    }
                }
            }
            Event::HostResponse {
                which,
                status,
                retry_after,
                page,
                timed,
                jitter,
            } => {
                if !self.starts.is_empty() {
                    let started = self.starts[which % self.starts.len()];
                    let answer = self.answer(status, retry_after);
                    let mut received = ResponseRecord::new(started, answer, page, jitter);
                    received.timed = timed;
                    self.answered(&received).await;
                    self.compare_memory()?;
                }
            }
        }
        Ok(())
    }

    fn answer(&self, status: Option<u16>, retry_after: Option<u32>) -> HostResponse {
        let Some(status) = status else {
            return HostResponse::failure();
        };
        let mut headers = HeaderMap::new();
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        let status = status.try_into().unwrap();
        HostResponse::read(&self.policy, status, &headers, SystemTime::UNIX_EPOCH)
    }

    fn seen(&self, knows: bool) -> LocalView<'_> {
        let mut seen = LocalView::new(&self.name, &self.policy);
        if knows {
            let now = self.now();
            let ago = |at: Instant| now.saturating_duration_since(at);
            let until = self.state.paused_until(now);
            seen.pause = until.map_or(Duration::ZERO, |until| until - now);
            seen.since_start = self.state.last_start().map(ago);
            seen.since_end = self.state.last_end().map(ago);
        }
        seen
    }

    async fn ask(
        &mut self,
        ask: StartOptions,
        crawl_delay: Option<(u64, Option<u64>)>,
        knows: bool,
        counted: bool,
    ) -> Outcome {
        let now = self.now();
        self.next += 1;
        let lease = LeaseId(self.next);
        let mut question = AcquireRequest::new(lease, ask);
        // A delay that is taken is so only as long as nobody else started.
        question.started = self.state.started();
        question.counted = counted;
        question.crawl_delay =
            crawl_delay.map(|(origin, delay)| (origin, delay.map(Duration::from_secs)));
        let answer = self
            .store
            .acquire(self.seen(knows), question)
            .await
            .map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        if let Some((origin, delay)) = question.crawl_delay {
            self.state.crawl_delay(origin, delay, now);
        }
        let pace = self.state.pace(&self.policy, now);
        let later = most_later(pace.delay, pace.rate);
        let decision = self.state.decide(&self.policy, now, ask);
        let due = self.state.due(&self.policy, now, ask) - now;
        let shared = match (answer, decision) {
            (Acquired::Granted(shared), Decision::Admit) => {
                if ask.pauses_only {
                    self.state.start_without_permit(now);
                } else {
                    self.state.reserve();
                    self.state.start(now);
                    self.held.push(lease);
                }
                if counted {
                    self.state.uncount_start();
                }
                self.starts.push(now);
                shared
            }
            (Acquired::Wait(wait, shared), Decision::Wait(_) | Decision::Full(_)) => {
                prop_assert!(wait >= due, "{wait:?} is sooner than {due:?}");
                prop_assert!(
                    due.is_zero() || wait <= due + later,
                    "{wait:?} is more than {later:?} later than {due:?}"
                );
                shared
            }
            // Just due in memory, and not yet by what is rounded up.
            (Acquired::Wait(wait, shared), Decision::Admit) if wait <= later => shared,
            (answer, decision) => {
                let why = format!("{answer:?}, in memory {decision:?} at {now:?}");
                return Err(TestCaseError::fail(why));
            }
        };
        self.compare(&shared)?;
        self.compare_memory()
    }

    fn compare(&mut self, shared: &SharedView) -> Outcome {
        let now = self.now();
        let pace = self.state.pace(&self.policy, now);
        let later = most_later(pace.delay, pace.rate);
        prop_assert!(
            shared.delay >= pace.delay && shared.delay <= pace.delay + later,
            "delay {:?}, in memory {:?}",
            shared.delay,
            pace
        );
        let until = self.state.paused_until(now);
        let pause = until.map_or(Duration::ZERO, |until| until - now);
        prop_assert!(
            shared.pause >= pause && shared.pause <= pause + Duration::from_micros(1),
            "pause {:?}, in memory {:?}",
            shared.pause,
            pause
        );
        prop_assert_eq!(shared.started, self.state.started());
        let since = self.state.last_start().map(|start| now - start);
        prop_assert_eq!(shared.since_start, since);
        Ok(())
    }

    /// What the server keeps beside what it tells: the rate and the backoff level.
    fn compare_memory(&mut self) -> Outcome {
        let key = self.key.get_or_insert_with(|| {
            let pattern = format!("{}:*:h:{}", self.namespace, self.name);
            let found: Vec<String> = redis::cmd("KEYS").arg(pattern).query(self.behind).unwrap();
            found.into_iter().next().expect("it was just written")
        });
        let kept: (Option<f64>, Option<u32>) = redis::cmd("HMGET")
            .arg(&*key)
            .arg(&["rt", "st"])
            .query(self.behind)
            .unwrap();
        let now = self.base + Duration::from_micros(self.past);
        let instant = Now {
            monotonic: now,
            wall: SystemTime::UNIX_EPOCH,
        };
        let known = self.state.snapshot(&self.policy, instant, None, 0);
        prop_assert_eq!(kept.1.unwrap_or(0), known.backoff_level, "backoff_level");
        let rate = kept.0.unwrap_or(1.0);
        prop_assert!(
            (rate / known.pace.rate - 1.0).abs() < 1e-4,
            "rate {rate}, in memory {}",
            known.pace.rate
        );
        Ok(())
    }

    async fn end(&mut self, lease: LeaseId, unused: bool) {
        let now = self.now();
        let step = if unused {
            // In memory the start is not undone either: the next one keeps its distance.
            self.state.unreserve();
            LeaseUpdate::Unused(lease)
        } else {
            self.state.finish(now);
            LeaseUpdate::Ended(lease)
        };
        self.report(HostReport::new(Some(step), None)).await;
    }

    async fn answered(&mut self, received: &ResponseRecord) {
        let now = self.now();
        let since = now - received.started;
        let mut event = HostEvent::new(received.response, received.page, received.jitter, since);
        event.latency = received.timed.then_some(since);
        self.report(HostReport::new(None, Some(event))).await;
        self.state.record_response(&self.policy, now, received);
    }

    async fn report(&self, report: HostReport) {
        self.store.report(self.seen(false), report).await.unwrap();
    }
}

#[test]
fn the_script_and_the_state_in_memory_decide_alike() {
    let Some(server) = Server::given_or_started() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let clock = Arc::new(AtomicI64::new(PRESENT - 2 * LEASE.as_micros() as i64));
    let store = runtime
        .block_on(
            RedisStore::builder(server.url())
                .namespace(server.namespace())
                .lease(LEASE)
                .timeout(Duration::from_secs(20))
                .script_clock(Arc::clone(&clock))
                .connect(),
        )
        .unwrap();
    let behind = std::cell::RefCell::new(server.connection());
    let cases = std::env::var("ETIQUETTE_HISTORIES");
    let cases = cases.ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let number = std::cell::Cell::new(0);
    let histories = (policy(), prop::collection::vec(event(), 10..80));
    let run = TestRunner::new(config).run(&histories, |(policy, events)| {
        number.set(number.get() + 1);
        let mut behind = behind.borrow_mut();
        let mut pair = Pair {
            store: &store,
            clock: &clock,
            behind: &mut behind,
            namespace: server.namespace(),
            name: format!("h{}.example", number.get()),
            key: None,
            policy,
            state: HostState::new(),
            base: Instant::now(),
            past: 0,
            held: Vec::new(),
            starts: Vec::new(),
            next: 0,
        };
        runtime.block_on(async {
            for (at, event) in events.iter().enumerate() {
                pair.play(event)
                    .await
                    .map_err(|error| TestCaseError::fail(format!("event {at}: {error}")))?;
            }
            Ok(())
        })
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    println!("{} histories", number.get());
}
