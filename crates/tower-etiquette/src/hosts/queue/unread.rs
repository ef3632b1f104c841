//! Permits that are held by response bodies which nobody reads.
//!
//! A caller that holds one response of a host while it awaits the next would wait for itself. After the policy's
//! `unread_body_timeout` the head of the queue is refused instead.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A body is being read when something of it was polled within so long.
pub(super) const UNREAD: Duration = Duration::from_secs(1);

/// The bodies of one budget: how many readers wait for more, and how often any was polled. Kept apart from the host's lock,
/// because each frame of each body touches it.
#[derive(Debug, Default)]
pub(crate) struct BodyMeter {
    readers: AtomicU32,
    polls: AtomicU64,
}

impl BodyMeter {
    /// A body was polled.
    pub(crate) fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody waits for more of a body, or does not any more.
    pub(crate) fn set_reading(&self, reading: bool) {
        if reading {
            self.readers.fetch_add(1, Ordering::AcqRel);
        } else {
            self.readers.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// The number of polls so far, if nobody waits for more of a body.
    pub(super) fn unread(&self) -> Option<u64> {
        let unread = self.readers.load(Ordering::Acquire) == 0;
        unread.then(|| self.polls.load(Ordering::Acquire))
    }
}

/// How long the head of a queue has waited for unread bodies alone.
#[derive(Debug, Default)]
pub(crate) struct UnreadBodyTimeout {
    head_since: Option<Instant>,
    /// The number of polls, and when it was read.
    unread_at: Option<(u64, Instant)>,
}

impl UnreadBodyTimeout {
    /// Somebody else is the head.
    pub(super) fn reset(&mut self) {
        self.head_since = None;
    }

    /// When to check again; `None` when the time is over. `unread` counts the polls of the bodies that hold all permits, as
    /// long as nobody reads them.
    pub(super) fn check(
        &mut self,
        now: Instant,
        timeout: Duration,
        unread: impl FnOnce() -> Option<u64>,
    ) -> Option<Instant> {
        let since = *self.head_since.get_or_insert(now);
        let ends = since.checked_add(timeout).unwrap_or(now + UNREAD);
        let watch_from = since
            .checked_add(timeout.saturating_sub(UNREAD))
            .unwrap_or(ends);
        if now < watch_from {
            return Some(watch_from);
        }
        let window = UNREAD.min(timeout);
        let unread = unread();
        match (self.unread_at, unread) {
            (Some((before, at)), Some(polls)) if before == polls => {
                let ends = ends.max(at + window);
                (now < ends).then_some(ends)
            }
            _ => {
                self.unread_at = unread.map(|polls| (polls, now));
                let soonest = now + window.max(Duration::from_millis(1));
                Some(ends.max(soonest))
            }
        }
    }
}
