//! Whether the head of a queue is polled when it should be.
//!
//! A head whose caller has gone on to something else would hold up everybody behind it. So a queue in which more than one
//! waits has a monitor: a head that was not polled when it should have been is woken once more, and then suspended.

use std::task::Waker;
use std::time::{Duration, Instant};

/// How long a head may stay unpolled after it was woken.
const STALLED_AFTER: Duration = Duration::from_millis(500);

/// What the monitor of a queue knows of its head.
#[derive(Debug, Default)]
pub(super) struct HeadPolls {
    /// A monitor is running, or somebody is about to start one.
    monitored: bool,
    /// Wakes the monitor while it sleeps.
    monitor: Option<Waker>,
    /// The head was woken and has not been polled since.
    woken: bool,
    /// When the head will be polled, or since when it should have been; unknown until the monitor sees it.
    next_poll: Option<Instant>,
}

impl HeadPolls {
    /// Whether the caller has to start a monitor, because one is `needed` and there is none.
    pub(super) fn claim_monitor(&mut self, needed: bool) -> bool {
        let claimed = needed && !self.monitored;
        self.monitored |= claimed;
        claimed
    }

    /// Forgets the monitor; whether there was one.
    pub(super) fn end_monitor(&mut self) -> bool {
        self.monitor = None;
        std::mem::take(&mut self.monitored)
    }

    /// Another request is the head now.
    pub(super) fn changed(&mut self) {
        self.woken = false;
        self.next_poll = None;
    }

    /// The head was polled and will be again at `next`.
    pub(super) fn polled(&mut self, next: Instant) {
        self.woken = false;
        self.next_poll = Some(next);
    }

    /// Notes that the head is woken. The waker is that of the monitor, where it has to time the head anew, or to learn that
    /// nobody waits `behind` it any more.
    pub(super) fn wake(&mut self, behind: bool) -> Option<Waker> {
        let first = !std::mem::replace(&mut self.woken, true);
        if first {
            self.next_poll = None;
        }
        if first || !behind {
            self.monitor.take()
        } else {
            None
        }
    }

    pub(super) fn is_woken(&self) -> bool {
        self.woken
    }

    /// When the head counts as stalled unless it is polled before; `None` when it does at `now`. `monitor` is woken when that
    /// changes.
    pub(super) fn stalled_at(&mut self, now: Instant, monitor: &Waker) -> Option<Instant> {
        let at = *self.next_poll.get_or_insert(now) + STALLED_AFTER;
        self.monitor = (now < at).then(|| monitor.clone());
        (now < at).then_some(at)
    }
}
