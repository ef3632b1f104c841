//! Budgets for hosts: what a start costs, what an idle host costs, and how waiters are treated.

use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use governor::{Quota, RateLimiter};
use serde_json::json;
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
    for row in [hot(), many(), two_threads(), heap_of_an_idle_host()] {
        let ratio = row.theirs / row.ours;
        if as_json {
            let row = json!({
                "case": row.case, "what": row.what, "ours": row.ours, "unit": row.unit, "peer": row.peer,
                "theirs": row.theirs, "ratio": ratio,
            });
            println!("{row}");
        } else {
            println!(
                "{:12} {:8} {:>10.1} {:7} {:10} {:>10.1} {:>6.1}",
                row.case, row.what, row.ours, row.unit, row.peer, row.theirs, ratio
            );
        }
    }
    ExitCode::SUCCESS
}

/// Without a gap every start is allowed: what is measured is the work and not the wait.
fn gapless(clock: Arc<dyn Clock>) -> Hosts {
    let policy = HostPolicy::new().min_gap(Duration::ZERO).latency_factor(0);
    Hosts::builder()
        .policy(policy)
        .max_hosts(2 * MANY)
        .clock(clock)
        .build()
}

fn origins() -> Vec<Origin> {
    let origin = |index: usize| {
        let uri = format!("http://site-{index}.example/").parse();
        Origin::of(&uri.expect("a valid URI")).expect("an origin")
    };
    (0..MANY).map(origin).collect()
}

fn governor() -> governor::DefaultKeyedRateLimiter<u64> {
    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    RateLimiter::keyed(quota)
}

fn nanoseconds(call: impl FnMut()) -> f64 {
    timing::seconds(call) * 1e9
}

fn hot() -> Row {
    let hosts = gapless(Arc::new(TokioClock));
    let origin = &origins()[0];
    let limiter = governor();
    Row {
        case: "hot",
        what: "acquire",
        unit: "ns",
        ours: nanoseconds(|| drop(hosts.try_start(origin).expect("no gap"))),
        peer: "governor",
        theirs: nanoseconds(|| limiter.check_key(&0).expect("no limit")),
    }
}

/// One failure in a row is remembered, so that no host is forgotten between two starts.
fn known(hosts: &Hosts, origins: &[Origin]) {
    for origin in origins {
        hosts.try_start(origin).expect("no gap").failed();
    }
}

fn many() -> Row {
    let origins = origins();
    let hosts = gapless(Arc::new(TokioClock));
    known(&hosts, &origins);
    let limiter = governor();
    for key in 0..MANY as u64 {
        limiter.check_key(&key).expect("no limit");
    }
    let mut dice = Dice(1);
    let ours = nanoseconds(|| drop(hosts.try_start(&origins[dice.below(MANY)]).expect("no gap")));
    let theirs = nanoseconds(|| {
        limiter
            .check_key(&(dice.below(MANY) as u64))
            .expect("no limit")
    });
    Row {
        case: "1M",
        what: "acquire",
        unit: "ns",
        ours,
        peer: "governor",
        theirs,
    }
}

fn two_threads() -> Row {
    const CALLS: usize = 2_000_000;
    let origins = origins();
    let hosts = gapless(Arc::new(TokioClock));
    known(&hosts, &origins);
    let limiter = governor();
    let both = |call: &(dyn Fn(usize) + Sync)| {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    let mut dice = Dice(thread + 1);
                    for _ in 0..CALLS {
                        // Each thread has hosts of its own.
                        call(dice.below(MANY / 2) * 2 + thread as usize);
                    }
                });
            }
        });
        begin.elapsed().as_secs_f64() * 1e9 / CALLS as f64
    };
    Row {
        case: "two-threads",
        what: "acquire",
        unit: "ns",
        ours: both(&|at| drop(hosts.try_start(&origins[at]).expect("no gap"))),
        peer: "governor",
        theirs: both(&|at| limiter.check_key(&(at as u64)).expect("no limit")),
    }
}

fn heap_of_an_idle_host() -> Row {
    let origins = origins();
    let clock = Arc::new(Still {
        base: Instant::now(),
    });
    let ours = heap::held(|| {
        let hosts = Hosts::builder()
            .max_hosts(2 * MANY)
            .clock(Arc::clone(&clock) as Arc<dyn Clock>)
            .build();
        for origin in &origins {
            drop(hosts.try_start(origin).expect("a new host"));
        }
        hosts
    });
    let theirs = heap::held(|| {
        let limiter = governor();
        for key in 0..MANY as u64 {
            limiter.check_key(&key).expect("no limit");
        }
        limiter
    });
    Row {
        case: "1M",
        what: "heap",
        unit: "octets",
        ours: ours / MANY as f64,
        peer: "governor",
        theirs: theirs / MANY as f64,
    }
}

/// A clock that stands still: all hosts are within their gap, and none may be forgotten.
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

/// xorshift, so that both sides visit hosts in an order that no cache foresees.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
