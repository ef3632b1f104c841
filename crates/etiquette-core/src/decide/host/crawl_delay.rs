//! The Crawl-delays of the origins that share a budget.

use std::time::{Duration, Instant};

use crate::clock::later;

/// How many origins of a group are told apart: few hosts serve more than two schemes and a few ports, and one that sends
/// clients from port to port shall not fill their memory. Beyond it the smallest delay gives way, so that the delay never
/// shrinks.
const ORIGINS: usize = 16;

/// A delay stays in force for so long after the last page request that brought it, or for one delay if that is longer. A
/// copy of robots.txt is used for an hour by default: who asks for pages brings the delay anew before.
const LIFE: Duration = Duration::from_secs(3_600);

/// What the robots.txt files of a group's origins ask for. No allocation where nobody asks.
#[derive(Clone, Debug, Default)]
pub(super) struct CrawlDelays(Vec<CrawlDelay>);

#[derive(Clone, Copy, Debug)]
struct CrawlDelay {
    origin: u64,
    delay: Duration,
    seen: Instant,
}

impl CrawlDelay {
    fn is_live(&self, now: Instant) -> bool {
        now < later(self.seen, self.delay.max(LIFE))
    }
}

impl CrawlDelays {
    /// What the origin's robots.txt says now replaces what it said.
    pub(super) fn set(&mut self, origin: u64, delay: Option<Duration>, now: Instant) {
        let delay = delay.filter(|delay| !delay.is_zero());
        let at = self.0.iter().position(|entry| entry.origin == origin);
        match (at, delay) {
            (Some(at), Some(delay)) => {
                self.0[at].delay = delay;
                self.0[at].seen = now;
            }
            (Some(at), None) => {
                self.0.swap_remove(at);
            }
            (None, Some(delay)) => {
                self.0.retain(|entry| entry.is_live(now));
                let entry = CrawlDelay {
                    origin,
                    delay,
                    seen: now,
                };
                if self.0.len() < ORIGINS {
                    self.0.push(entry);
                } else if let Some(least) = self.0.iter_mut().min_by_key(|entry| entry.delay)
                    && least.delay < delay
                {
                    *least = entry;
                }
            }
            (None, None) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The largest delay in force.
    pub(super) fn largest(&self, now: Instant) -> Option<Duration> {
        self.0
            .iter()
            .filter(|entry| entry.is_live(now))
            .map(|entry| entry.delay)
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_live_delay_of_the_group_counts() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let mut delays = CrawlDelays::default();
        delays.set(1, Some(seconds(10)), now);
        delays.set(2, Some(seconds(5)), now + seconds(10));
        assert_eq!(delays.largest(now + seconds(10)), Some(seconds(10)));
        assert_eq!(
            delays.largest(now + LIFE),
            Some(seconds(5)),
            "the first is over"
        );
        delays.set(2, None, now + LIFE);
        assert_eq!(delays.largest(now + LIFE), None);
    }

    #[test]
    fn many_origins_never_lose_the_largest() {
        let now = Instant::now();
        let mut delays = CrawlDelays::default();
        for origin in 0..100 {
            delays.set(origin, Some(Duration::from_secs(100 - origin)), now);
        }
        assert_eq!(delays.0.len(), ORIGINS);
        assert_eq!(delays.largest(now), Some(Duration::from_secs(100)));
    }
}
