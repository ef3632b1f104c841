//! Very many hosts on virtual time: what a site sees of a client that always has work for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use tower_etiquette::hosts::Start;
use tower_etiquette::{Clock, HostPolicy, Hosts, Now, Origin};

/// Microseconds since the start.
type Micros = u64;
const SECOND: Micros = 1_000_000;
const HOUR: Micros = 3_600 * SECOND;
const MIN_DELAY: Micros = SECOND;

/// What a run comes to.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) requests: u64,
    /// Starts that came sooner than the site was owed, and the first of them.
    pub(crate) violations: u64,
    pub(crate) first: Option<String>,
    /// The share of the allowed rate that was used on hosts that are well, where work was waiting.
    pub(crate) used: f64,
    /// The shortest delay at the end between requests to sites that answer 429, or 403, for ever.
    pub(crate) last_delay: Option<Duration>,
    pub(crate) most_remembered: usize,
    pub(crate) days: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Healthy,
    Slow,
    Throttling,
    Failing,
    Blocking,
    ThrottlingForEver,
    RefusingForEver,
}

#[derive(Debug)]
struct Turned {
    base: Instant,
    micros: AtomicU64,
}

impl Clock for Turned {
    fn now(&self) -> Now {
        let since = Duration::from_micros(self.micros.load(Ordering::Relaxed));
        Now {
            monotonic: self.base + since,
            wall: SystemTime::UNIX_EPOCH + since,
        }
    }
}

struct SimulatedSite {
    kind: Kind,
    left: u32,
    asked: u32,
    start: Option<Start>,
    started: Micros,
    ended: Micros,
    latency: Micros,
    not_before: Micros,
    slower: bool,
}

/// Visits `count` sites with ten requests each, and a few that complain for ever with more.
pub(crate) fn simulate(count: usize) -> Findings {
    let clock = Arc::new(Turned {
        base: Instant::now(),
        micros: AtomicU64::new(0),
    });
    let hosts = Hosts::builder()
        .policy(HostPolicy::new().max_wait(Duration::from_secs(3_600)))
        .max_hosts(count + 64)
        .clock(Arc::clone(&clock) as Arc<dyn Clock>)
        .build();
    let mut sites: Vec<SimulatedSite> = (0..count).map(site).collect();
    let mut findings = Findings::default();
    let (mut allowed, mut taken) = (0, 0);
    let mut events: BinaryHeap<Reverse<(Micros, u32)>> = (0..count as u32)
        .map(|index| Reverse((u64::from(index) * 7_919 % (60 * SECOND), index)))
        .collect();
    let (mut now, mut count_at) = (0, 1);
    while let Some(Reverse((at, index))) = events.pop() {
        now = at;
        clock.micros.store(now, Ordering::Relaxed);
        let site = &mut sites[index as usize];
        let next = match site.start.as_mut() {
            None => match hosts.try_start(&origin(index)) {
                Ok(start) => {
                    findings.requests += 1;
                    if let Some(why) = site.wronged_by(now) {
                        findings.violations += 1;
                        findings.first.get_or_insert(format!("site {index}: {why}"));
                    }
                    if matches!(site.kind, Kind::Healthy | Kind::Slow) && site.asked > 0 {
                        allowed += site.ended - site.started + site.delay();
                        taken += now - site.started;
                    }
                    let for_ever =
                        matches!(site.kind, Kind::ThrottlingForEver | Kind::RefusingForEver);
                    if for_ever && site.left == 1 {
                        let delay = Duration::from_micros(now - site.started);
                        let least = findings.last_delay.map_or(delay, |least| least.min(delay));
                        findings.last_delay = Some(least);
                    }
                    site.start = Some(start);
                    site.started = now;
                    site.asked += 1;
                    site.latency = site.next_latency();
                    Some(now + site.latency)
                }
                Err(refusal) => {
                    let at = refusal.retry_at().expect("the time to come back is known");
                    let at = at.duration_since(SystemTime::UNIX_EPOCH).expect("is later");
                    Some((at.as_nanos().div_ceil(1_000) as Micros).max(now + 1))
                }
            },
            // The head first, and the end of the body after it.
            Some(start) if now == site.started + site.latency => {
                let (status, wait) = answer(site.kind, site.asked);
                let mut headers = HeaderMap::new();
                if let Some(seconds) = wait {
                    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                    site.not_before = now + u64::from(seconds) * SECOND;
                }
                site.slower |= matches!(status.as_u16(), 429 | 503);
                start.answered(status, &headers);
                Some(now + site.latency / 2 + 1)
            }
            Some(_) => {
                site.start = None;
                site.ended = now;
                site.left -= 1;
                (site.left > 0).then_some(now)
            }
        };
        events.extend(next.map(|at| Reverse((at, index))));
        if findings.requests >= count_at {
            // Looks at each host: not for every request.
            count_at += (count as u64 / 2).max(1);
            findings.most_remembered = findings.most_remembered.max(hosts.totals().hosts);
        }
    }
    findings.used = allowed as f64 / taken as f64;
    findings.days = now as f64 / (24 * HOUR) as f64;
    findings
}

fn site(index: usize) -> SimulatedSite {
    let kind = match index {
        0..4 => Kind::ThrottlingForEver,
        4..8 => Kind::RefusingForEver,
        _ => match index % 10 {
            0..5 => Kind::Healthy,
            5 | 6 => Kind::Slow,
            7 => Kind::Throttling,
            8 => Kind::Failing,
            _ => Kind::Blocking,
        },
    };
    let left = match kind {
        Kind::ThrottlingForEver | Kind::RefusingForEver => 60,
        _ => 10,
    };
    SimulatedSite {
        kind,
        left,
        asked: 0,
        start: None,
        started: 0,
        ended: 0,
        latency: 0,
        not_before: 0,
        slower: false,
    }
}

impl SimulatedSite {
    fn next_latency(&self) -> Micros {
        match self.kind {
            Kind::Slow => 3 * SECOND,
            _ => SECOND / 10,
        }
    }

    /// The delay that it is owed while it is well.
    fn delay(&self) -> Micros {
        (5 * self.latency).clamp(MIN_DELAY, 30 * SECOND)
    }

    /// Why a start now is sooner than this site is owed.
    fn wronged_by(&self, now: Micros) -> Option<String> {
        if self.asked == 0 {
            return None;
        }
        let delay = if self.slower && self.asked < 10 {
            // No half-hour of successes fits in between.
            self.delay() * 10 / 9
        } else {
            self.delay()
        };
        if now < self.not_before {
            Some(format!("{now} is within the pause to {}", self.not_before))
        } else if now < self.ended + delay {
            Some(format!(
                "{now} is within the delay {delay} from {}",
                self.ended
            ))
        } else {
            None
        }
    }
}

fn answer(kind: Kind, asked: u32) -> (StatusCode, Option<u32>) {
    match kind {
        Kind::Healthy | Kind::Slow => (StatusCode::OK, None),
        Kind::Throttling if asked.is_multiple_of(3) => (StatusCode::TOO_MANY_REQUESTS, Some(17)),
        Kind::Failing if asked.is_multiple_of(4) => (StatusCode::SERVICE_UNAVAILABLE, None),
        Kind::Failing if asked.is_multiple_of(3) => (StatusCode::INTERNAL_SERVER_ERROR, None),
        Kind::Throttling | Kind::Failing => (StatusCode::OK, None),
        Kind::Blocking | Kind::RefusingForEver => (StatusCode::FORBIDDEN, None),
        Kind::ThrottlingForEver => (StatusCode::TOO_MANY_REQUESTS, Some(5)),
    }
}

fn origin(index: u32) -> Origin {
    let uri = format!("http://site-{index}.example/").parse();
    Origin::of(&uri.expect("a valid URI")).expect("an origin")
}
