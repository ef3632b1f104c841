//! Budgets for hosts: what a start costs, what an idle host costs, and how waiters are treated.
//!
//! Ours and governor's are keyed by host names; `governor u64` is given numbers instead, which spares it the names. What
//! tower has is for one service: `tower, a map` is what a program builds from it, a limit for each host in a map behind a
//! lock. Only ours and tower's concurrency limits have something to release.

mod waiters;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hash::Hash;
use std::num::NonZeroU32;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::{Duration, Instant, SystemTime};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use serde_json::json;
use tower::limit::{ConcurrencyLimit, RateLimit, rate::Rate};
use tower::{Service, service_fn};
use tower_etiquette::{Clock, HostPolicy, Hosts, Now, Origin, TokioClock};

use crate::{heap, timing};

const MANY: usize = 1_000_000;

struct Row {
    case: &'static str,
    what: &'static str,
    unit: &'static str,
    ours: f64,
    peer: &'static str,
    theirs: f64,
}

pub(crate) fn run(as_json: bool) -> ExitCode {
    if !as_json {
        println!(
            "{:12} {:12} {:>10} {:7} {:18} {:>12} {:>8}",
            "case", "what", "ours", "unit", "peer", "theirs", "ratio"
        );
    }
    let names = names();
    let origins: Vec<Origin> = names.iter().map(|name| origin(name)).collect();
    for measure in [hot, many, two_threads, heap_of_an_idle_host] {
        for row in measure(&names, &origins) {
            row.print(as_json);
        }
    }
    for row in waiters::rows() {
        row.print(as_json);
    }
    ExitCode::SUCCESS
}

impl Row {
    fn print(&self, as_json: bool) {
        let round = |number: f64| (number * 1_000.0).round() / 1_000.0;
        // How many times better ours is; none where neither has anything to be better at.
        let ratio = (self.ours > 0.0).then(|| round(self.theirs / self.ours));
        if as_json {
            let row = json!({
                "case": self.case, "what": self.what, "ours": round(self.ours), "unit": self.unit,
                "peer": self.peer, "theirs": round(self.theirs), "ratio": ratio,
            });
            println!("{row}");
            return;
        }
        let ratio = ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.1}"));
        println!(
            "{:12} {:12} {:>10.1} {:7} {:18} {:>12.1} {:>8}",
            self.case, self.what, self.ours, self.unit, self.peer, self.theirs, ratio
        );
    }
}

/// The same figure of ours beside each peer's.
fn rows<const N: usize>(
    (case, what, unit): (&'static str, &'static str, &'static str),
    ours: f64,
    peers: [(&'static str, f64); N],
) -> Vec<Row> {
    let row = |(peer, theirs)| Row {
        case,
        what,
        unit,
        ours,
        peer,
        theirs,
    };
    peers.into_iter().map(row).collect()
}

/// Without a delay every start is allowed: what is measured is the work and not the wait.
fn undelayed() -> Hosts {
    let policy = HostPolicy::new()
        .min_delay(Duration::ZERO)
        .latency_factor(0);
    Hosts::builder()
        .policy(policy)
        .max_hosts(2 * MANY)
        .clock(Arc::new(TokioClock))
        .build()
}

fn names() -> Vec<String> {
    (0..MANY)
        .map(|index| format!("site-{index}.example"))
        .collect()
}

fn origin(name: &str) -> Origin {
    let uri = format!("http://{name}/").parse();
    Origin::of(&uri.expect("a valid URI")).expect("an origin")
}

fn governor<K: Clone + Eq + Hash>() -> DefaultKeyedRateLimiter<K> {
    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    RateLimiter::keyed(quota)
}

type Answer = Ready<Result<(), Infallible>>;
type Limited = ConcurrencyLimit<Inner>;
type Inner = tower::util::ServiceFn<fn(()) -> Answer>;

fn inner() -> Inner {
    service_fn(|()| ready(Ok(())))
}

/// One call of a service that is ready and answers at once.
fn call(service: &mut impl Service<(), Error = Infallible>) {
    let mut task = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut task).is_ready(), "no limit");
    assert!(pin!(service.call(())).poll(&mut task).is_ready(), "no wait");
}

/// What a program builds from tower's limit for one service.
#[derive(Default)]
struct Map(Mutex<HashMap<String, Limited>>);

impl Map {
    fn call(&self, name: &str) {
        let mut services = self.0.lock().expect("nobody panics");
        if let Some(service) = services.get_mut(name) {
            return call(service);
        }
        let mut service = ConcurrencyLimit::new(inner(), 1);
        call(&mut service);
        services.insert(name.to_owned(), service);
    }
}

fn nanoseconds(call: impl FnMut()) -> f64 {
    timing::seconds(call) * 1e9
}

/// Calls for one random item after the other, `rounds` times a thousand; the nanoseconds of a call in the median round.
///
/// What is called with is at hand, as it is when a program has just made a request; what is kept about it is not. Rounds
/// are so short that most of them are not interrupted by what else runs on the machine.
fn at_random<T: Clone>(
    items: &[T],
    rounds: usize,
    random: &mut Xorshift,
    mut call: impl FnMut(&T),
) -> f64 {
    const CALLS: usize = 1_000;
    let mut round = || {
        let at_hand: Vec<T> = (0..CALLS)
            .map(|_| items[random.below(items.len())].clone())
            .collect();
        let begin = Instant::now();
        for item in &at_hand {
            call(item);
        }
        begin.elapsed().as_secs_f64() * 1e9 / CALLS as f64
    };
    let mut rounds: Vec<f64> = (0..rounds).map(|_| round()).collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

fn hot(names: &[String], origins: &[Origin]) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let _entered = runtime.enter();
    let hosts = undelayed();
    let (by_name, by_number) = (governor(), governor());
    let mut concurrency = ConcurrencyLimit::new(inner(), 1);
    let mut rate = RateLimit::new(inner(), Rate::new(u64::MAX, Duration::from_secs(1)));
    rows(
        ("hot", "acquire", "ns"),
        nanoseconds(|| drop(hosts.try_start(&origins[0]).expect("no delay"))),
        [
            (
                "governor",
                nanoseconds(|| by_name.check_key(&names[0]).expect("no limit")),
            ),
            (
                "governor u64",
                nanoseconds(|| by_number.check_key(&0_u64).expect("no limit")),
            ),
            ("tower concurrency", nanoseconds(|| call(&mut concurrency))),
            ("tower rate", nanoseconds(|| call(&mut rate))),
        ],
    )
}

/// One failure in a row is remembered, so that no host is forgotten between two starts.
fn known(origins: &[Origin]) -> Hosts {
    let hosts = undelayed();
    for origin in origins {
        hosts.try_start(origin).expect("no delay").failed();
    }
    hosts
}

const ROUNDS: usize = 1_000;

fn many(names: &[String], origins: &[Origin]) -> Vec<Row> {
    let mut random = Xorshift(1);
    let ours = {
        let hosts = known(origins);
        at_random(origins, ROUNDS, &mut random, |origin| {
            drop(hosts.try_start(origin).expect("no delay"));
        })
    };
    let by_name = {
        let limiter = governor();
        fill(names, |name| limiter.check_key(name).expect("no limit"));
        at_random(names, ROUNDS, &mut random, |name| {
            limiter.check_key(name).expect("no limit");
        })
    };
    let keys: Vec<u64> = (0..MANY as u64).collect();
    let by_number = {
        let limiter = governor();
        fill(&keys, |key| limiter.check_key(key).expect("no limit"));
        at_random(&keys, ROUNDS, &mut random, |key| {
            limiter.check_key(key).expect("no limit");
        })
    };
    let map = {
        let map = Map::default();
        fill(names, |name| map.call(name));
        at_random(names, ROUNDS, &mut random, |name| map.call(name))
    };
    rows(
        ("1M", "acquire", "ns"),
        ours,
        [
            ("governor", by_name),
            ("governor u64", by_number),
            ("tower, a map", map),
        ],
    )
}

fn fill<T>(items: &[T], call: impl Fn(&T)) {
    items.iter().for_each(call);
}

/// Two threads, each with hosts of its own; the nanoseconds of a call on either.
fn both<T: Clone + Sync>(items: &[T], call: impl Fn(&T) + Sync) -> f64 {
    let (one, other) = items.split_at(items.len() / 2);
    let call = &call;
    std::thread::scope(|scope| {
        let threads = [one, other].map(|items| {
            scope.spawn(move || at_random(items, ROUNDS, &mut Xorshift(items.len() as u64), call))
        });
        let each = threads.map(|thread| thread.join().expect("nobody panics"));
        each.iter().sum::<f64>() / each.len() as f64
    })
}

fn two_threads(names: &[String], origins: &[Origin]) -> Vec<Row> {
    let ours = {
        let hosts = known(origins);
        both(origins, |origin| {
            drop(hosts.try_start(origin).expect("no delay"));
        })
    };
    let keys: Vec<u64> = (0..MANY as u64).collect();
    let (by_name, by_number, map) = (governor(), governor(), Map::default());
    fill(names, |name| by_name.check_key(name).expect("no limit"));
    fill(&keys, |key| by_number.check_key(key).expect("no limit"));
    fill(names, |name| map.call(name));
    rows(
        ("two-threads", "acquire", "ns"),
        ours,
        [
            (
                "governor",
                both(names, |name| by_name.check_key(name).expect("no limit")),
            ),
            (
                "governor u64",
                both(&keys, |key| by_number.check_key(key).expect("no limit")),
            ),
            ("tower, a map", both(names, |name| map.call(name))),
        ],
    )
}

fn heap_of_an_idle_host(names: &[String], origins: &[Origin]) -> Vec<Row> {
    let clock = Arc::new(Still {
        base: Instant::now(),
    });
    let each = |bytes: f64| bytes / MANY as f64;
    let ours = heap::held(|| {
        let hosts = Hosts::builder()
            .max_hosts(2 * MANY)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .build();
        for origin in origins {
            drop(hosts.try_start(origin).expect("a new host"));
        }
        hosts
    });
    let by_name = heap::held(|| {
        let limiter = governor();
        for name in names {
            limiter.check_key(name).expect("no limit");
        }
        limiter
    });
    let by_number = heap::held(|| {
        let limiter = governor();
        for key in 0..MANY as u64 {
            limiter.check_key(&key).expect("no limit");
        }
        limiter
    });
    let map = heap::held(|| {
        let map = Map::default();
        for name in names {
            map.call(name);
        }
        map
    });
    rows(
        ("1M", "heap", "bytes"),
        each(ours),
        [
            ("governor", each(by_name)),
            ("governor u64", each(by_number)),
            ("tower, a map", each(map)),
        ],
    )
}

/// A clock that stands still: all hosts are within their delay, and none may be forgotten.
#[derive(Debug)]
struct Still {
    base: Instant,
}

impl Clock for Still {
    fn now(&self) -> Now {
        Now {
            monotonic: self.base,
            wall: SystemTime::UNIX_EPOCH,
        }
    }
}

/// A generator, so that all sides visit hosts in an order that no cache foresees.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
