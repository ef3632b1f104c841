//! The pause of a host: nothing starts before its end.

use std::time::{Duration, Instant};

use super::policy::HostPolicy;
use crate::clock::{LONGEST, later};

/// Two processes see the end of one pause at most so far apart: the time that a message to the shared store takes.
const SAME_PAUSE: Duration = Duration::from_millis(500);

/// The pause of a host, and the epochs that pauses and runs of refusals begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pause {
    /// The end of the last pause, which may be over.
    until: Option<Instant>,
    /// Grows with each pause, and with each run of refusals that blocks the client or is over.
    epoch: u64,
    /// When it last grew.
    last_epoch: Option<Instant>,
}

impl Pause {
    /// A host without a pause, in its `epoch`.
    pub(super) fn new(epoch: u64) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    /// The end of the pause, if the host is paused at `now`.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }

    /// The end of the last pause.
    pub(super) fn last_end(&self) -> Option<Instant> {
        self.until
    }

    /// The end of the pause, and `now` without one.
    pub(super) fn end(&self, now: Instant) -> Instant {
        self.until.map_or(now, |until| until.max(now))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn last_epoch(&self) -> Option<Instant> {
        self.last_epoch
    }

    pub(super) fn new_epoch(&mut self, now: Instant) {
        self.epoch += 1;
        self.last_epoch = Some(now);
    }

    /// Pauses for `wait` and a share of it that `jitter` chooses. Never shortens a pause; its end.
    pub(super) fn extend(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        wait: Duration,
        jitter: f64,
    ) -> Instant {
        let wait = wait.min(LONGEST);
        let (least, most) = policy.jitter;
        let share = least + (most - least) * jitter.clamp(0.0, 1.0);
        let added = (wait.as_secs_f64() * share).min(LONGEST.as_secs_f64());
        let end = later(later(now, wait), Duration::from_secs_f64(added));
        if self.until(now).is_none() {
            self.new_epoch(now);
        }
        let end = self.until.map_or(end, |old| old.max(end));
        self.until = Some(end);
        end
    }

    /// A pause that another process has learnt of. What only lengthens the last one by the time that messages take begins
    /// no epoch.
    pub(super) fn learn(&mut self, now: Instant, until: Instant) {
        if until > now && self.until.is_none_or(|known| known < until) {
            let new = |known: Instant| until.saturating_duration_since(known) > SAME_PAUSE;
            if self.until(now).is_none() && self.until.is_none_or(new) {
                self.new_epoch(now);
            }
            self.until = Some(until);
        }
    }

    /// A pause that was kept across a restart, and when its epoch began. Where both are known, the later holds.
    pub(super) fn recall(&mut self, until: Instant, last_epoch: Option<Instant>) {
        self.until = self.until.max(Some(until));
        self.epoch += 1;
        self.last_epoch = self.last_epoch.max(last_epoch);
    }

    /// Keeps the epoch alone.
    pub(super) fn forget(&mut self) {
        self.until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_never_shortened_and_jitter_only_adds() {
        let now = Instant::now();
        let seconds = Duration::from_secs;
        let mut pause = Pause::default();
        let policy = HostPolicy::new();
        assert_eq!(pause.end(now), now);
        assert_eq!(
            pause.extend(&policy, now, seconds(60), 0.5),
            now + seconds(63)
        );
        assert_eq!(
            pause.extend(&policy, now, seconds(10), 0.0),
            now + seconds(63)
        );
        assert_eq!(pause.epoch(), 1, "that is one pause");
        assert_eq!(pause.until(now + seconds(63)), None);
    }
}
