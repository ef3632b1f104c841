//! The last start and the last end on a host: the delay to the next start is counted from them.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::clock::later;

/// When requests of a host last started and ended. Idleness saves nothing up: only the last ones count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spacing {
    last_start: Option<Instant>,
    /// The last start of a request that was held by pauses only. It is kept apart: the same request may need a permit
    /// further in.
    last_without_permit: Option<Instant>,
    last_end: Option<Instant>,
    /// No request that is held by pauses only starts before this: see [`Spacing::space_without_permit`].
    spaced_until: Option<Instant>,
}

impl Spacing {
    /// A host that was asked at `start`, and whose body ended at `end`.
    pub(super) fn new(start: Instant, end: Instant) -> Self {
        Self {
            last_start: Some(start),
            last_end: Some(end),
            ..Self::default()
        }
    }

    pub(super) fn start(&mut self, now: Instant) {
        self.last_start = self.last_start.max(Some(now));
    }

    pub(super) fn start_without_permit(&mut self, now: Instant) {
        self.last_without_permit = self.last_without_permit.max(Some(now));
    }

    pub(super) fn finish(&mut self, now: Instant) {
        self.last_end = self.last_end.max(Some(now));
    }

    /// The next request that is held by pauses only starts a `delay` after `now`.
    pub(super) fn space_without_permit(&mut self, now: Instant, delay: Duration) {
        self.spaced_until = self.spaced_until.max(Some(later(now, delay)));
    }

    /// The earliest start of a request that takes the `delay`. With one permit the delay also counts from the end of the
    /// last body, so that it holds for arrivals at the site, too.
    pub(super) fn due(&self, delay: Duration, max_in_flight: NonZeroU32) -> Option<Instant> {
        let last = if max_in_flight == NonZeroU32::MIN {
            self.last_start.max(self.last_end)
        } else {
            self.last_start
        };
        last.map(|last| later(last, delay))
    }

    /// The earliest start of a request that is held by pauses only. `learnt` is the delay learnt from complaints, where it
    /// holds for it.
    pub(super) fn due_without_permit(&self, learnt: Option<Duration>) -> Option<Instant> {
        let last = self.last_start_of_any();
        let spaced = last.zip(learnt).map(|(last, delay)| later(last, delay));
        self.spaced_until.max(spaced)
    }

    pub(super) fn last_start(&self) -> Option<Instant> {
        self.last_start
    }

    pub(super) fn last_end(&self) -> Option<Instant> {
        self.last_end
    }

    pub(super) fn spaced_until(&self) -> Option<Instant> {
        self.spaced_until
    }

    /// The last start, whether or not it held a permit.
    pub(super) fn last_start_of_any(&self) -> Option<Instant> {
        self.last_start.max(self.last_without_permit)
    }

    /// The last start or end.
    pub(super) fn last_use(&self) -> Option<Instant> {
        self.last_start_of_any().max(self.last_end)
    }

    /// Keeps starts and ends alone.
    pub(super) fn forget(&mut self) {
        self.spaced_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_body_counts_with_one_permit_alone() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let spacing = Spacing::new(start, start + 5 * second);
        let two = NonZeroU32::new(2).unwrap();
        assert_eq!(
            spacing.due(second, NonZeroU32::MIN),
            Some(start + 6 * second)
        );
        assert_eq!(spacing.due(second, two), Some(start + second));
        assert_eq!(Spacing::default().due(second, two), None);
    }

    #[test]
    fn a_clock_that_is_read_late_moves_nothing_back() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut spacing = Spacing::new(start + second, start + second);
        spacing.start(start);
        spacing.finish(start);
        spacing.space_without_permit(start, 2 * second);
        spacing.space_without_permit(start, second);
        assert_eq!(spacing.last_use(), Some(start + second));
        assert_eq!(spacing.spaced_until(), Some(start + 2 * second));
    }
}
