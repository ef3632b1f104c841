//! What a process knows of a host through the store that it shares with others.

use std::time::{Duration, Instant};

use etiquette_core::decide::host::Decision;
use etiquette_core::store::host::SharedView;

/// While the store fails, the head of a queue asks again this often.
pub(crate) const ASK_AGAIN: Duration = Duration::from_secs(1);
/// No wait that a store asks for is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3_600);
/// No pause that others report is.
const LONGEST_PAUSE: Duration = Duration::from_secs(365 * 24 * 3_600);
/// The most that is added to a wait, so that processes that were told the same do not come back at one instant.
const MAX_JITTER: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(crate) struct StoreView {
    /// A request of this host is asking.
    pub(crate) asking: bool,
    /// The store is not asked again before.
    pub(crate) not_before: Option<Instant>,
    /// The delay for all processes, as last heard.
    pub(crate) delay: Duration,
    /// The last start of any process, as last heard.
    pub(crate) last_start: Option<Instant>,
    /// [`SharedView::started`] at this process's last start.
    pub(crate) started: u64,
    /// Since when the store fails, and the share of a delay that is waited in addition before going on without it.
    failing: Option<(Instant, f64)>,
}

impl StoreView {
    /// The decision of the host's own state, and what the store said.
    pub(crate) fn decide(&self, decision: Decision, now: Instant) -> Decision {
        let not_before = self.not_before.filter(|at| *at > now);
        match (decision, not_before) {
            (Decision::Full(due), Some(at)) => Decision::Full(due.max(at)),
            (Decision::Admit, _) if self.asking => Decision::Full(not_before.unwrap_or(now)),
            (Decision::Admit, Some(at)) => Decision::Wait(at),
            (Decision::Wait(due), Some(at)) => Decision::Wait(due.max(at)),
            (decision, _) => decision,
        }
    }

    /// Takes over what all processes know together; the end of a pause that is reported.
    pub(crate) fn learn(&mut self, now: Instant, shared: &SharedView) -> Option<Instant> {
        self.failing = None;
        self.delay = shared.delay;
        let start = shared.since_start.and_then(|ago| now.checked_sub(ago));
        self.last_start = self.last_start.max(start);
        let pause = shared.pause.min(LONGEST_PAUSE);
        (!pause.is_zero()).then(|| now + pause)
    }

    /// The store asked to come back after `wait`.
    pub(super) fn wait(&mut self, now: Instant, wait: Duration, jitter: f64) {
        let jitter = wait.mul_f64(0.1 * jitter).min(MAX_JITTER);
        self.not_before = Some(now + wait.min(LONGEST_WAIT) + jitter);
    }

    /// When a process may go on without the store, which has failed since the first of these calls: not before it has held
    /// everything for `hold` and a random part of a delay. `None` where that is never.
    pub(crate) fn hold_end(
        &mut self,
        now: Instant,
        hold: Duration,
        delay: Duration,
        jitter: f64,
    ) -> Option<Instant> {
        let (since, share) = *self.failing.get_or_insert((now, jitter));
        since.checked_add(hold)?.checked_add(delay.mul_f64(share))
    }
}
