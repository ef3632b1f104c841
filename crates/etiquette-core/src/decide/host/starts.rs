//! How many requests were started on a host, and how many of them within the last second.

use std::time::{Duration, Instant};

use crate::clock::later;

const SECOND: Duration = Duration::from_secs(1);

/// The starts of a host, pages and APIs together. They are counted in seconds that follow each other; the second before
/// an instant is estimated from two of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Starts {
    total: u64,
    second: Option<Instant>,
    in_second: u32,
    in_earlier: u32,
}

impl Starts {
    /// A host on which so many requests were started, long ago.
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            ..Self::default()
        }
    }

    pub(super) fn count(&mut self, now: Instant) {
        self.total += 1;
        self.roll(now);
        self.in_second = self.in_second.saturating_add(1);
    }

    /// The last start was counted before.
    pub(super) fn uncount(&mut self) {
        self.total = self.total.saturating_sub(1);
        self.in_second = self.in_second.saturating_sub(1);
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The starts in the second before `now`. Rounded down, so that the delay learnt from it is not too short.
    pub(super) fn in_second_before(&mut self, now: Instant) -> u32 {
        self.roll(now);
        let into = self.second.map_or(0.0, |second| {
            now.saturating_duration_since(second).as_secs_f64()
        });
        let earlier = f64::from(self.in_earlier) * (1.0 - into).clamp(0.0, 1.0);
        self.in_second.saturating_add(earlier as u32)
    }

    /// Keeps the total alone.
    pub(super) fn forget(&mut self) {
        *self = Self::new(self.total);
    }

    fn roll(&mut self, now: Instant) {
        let Some(second) = self.second else {
            self.second = Some(now);
            return;
        };
        let since = now.saturating_duration_since(second);
        if since >= SECOND {
            self.in_earlier = if since < 2 * SECOND {
                self.in_second
            } else {
                0
            };
            self.in_second = 0;
            self.second = Some(later(second, Duration::from_secs(since.as_secs())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_before_is_estimated_from_two_and_rounded_down() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut starts = Starts::default();
        for millis in [0, 100, 200] {
            starts.count(at(millis));
        }
        assert_eq!(starts.in_second_before(at(900)), 3);
        starts.count(at(1_100));
        assert_eq!(starts.in_second_before(at(1_500)), 1 + 1, "half of three");
        starts.uncount();
        assert_eq!((starts.in_second_before(at(1_500)), starts.total()), (1, 3));
        assert_eq!(starts.in_second_before(at(4_000)), 0);
    }
}
