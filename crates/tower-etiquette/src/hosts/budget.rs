//! What a request of a host is held to: the state machine, and what the store of other processes said.

use std::time::{Duration, Instant};

use etiquette_core::decide::host::{Decision, HostPolicy, HostState, StartOptions};
use etiquette_core::store::host::{Outage, SharedView};
use etiquette_core::vocabulary::refusal::HostRefusal;

use super::queue::{Denied, Schedule};
use super::store::{ASK_AGAIN, LONGEST_PAUSE, StoreView};
use crate::events::HostChanges;

#[derive(Debug, Default)]
pub(super) struct Budget {
    pub(super) state: HostState,
    /// Where the host is shared with other processes.
    store: Option<Box<StoreView>>,
}

impl Budget {
    pub(super) fn new(state: HostState) -> Self {
        Self { state, store: None }
    }

    /// Whether a request may start: [`HostState::decide`], and what the store said.
    pub(super) fn decide(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
    ) -> Decision {
        let decision = self.state.decide(policy, now, ask);
        match &self.store {
            Some(view) => view.decide(decision, now),
            None => decision,
        }
    }

    /// The earliest start: [`HostState::due`], and what the store said.
    pub(super) fn due(&mut self, policy: &HostPolicy, now: Instant, ask: StartOptions) -> Instant {
        let due = self.state.due(policy, now, ask);
        let not_before = self.store.as_ref().and_then(|view| view.not_before);
        not_before.map_or(due, |at| due.max(at))
    }

    /// The delay that all processes keep together.
    pub(super) fn delay(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
    ) -> Duration {
        let delay = self.state.delay_of(policy, now, ask);
        let shared = self.store.as_ref().map(|view| view.delay);
        shared.map_or(delay, |shared| delay.max(shared))
    }

    /// What may be taken of the delays at once: [`HostState::saved_up`].
    pub(super) fn saved_up(&mut self, now: Instant, ask: StartOptions) -> Duration {
        match ask.api {
            Some(api) if !ask.pauses_only => self.state.saved_up(now, api),
            _ => Duration::ZERO,
        }
    }

    pub(super) fn schedule(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
    ) -> Schedule {
        Schedule {
            pause_end: self.due(policy, now, StartOptions::pauses()),
            due: self.due(policy, now, ask),
            delay: self.delay(policy, now, ask),
            saved: self.saved_up(now, ask),
        }
    }

    /// Whether the last start is that of the visit, whose delay is then taken.
    pub(super) fn delay_taken(&self, visit_start: Option<u64>) -> bool {
        visit_start.is_some_and(|start| start == self.state.started())
    }

    /// Why a request may not start before `at`.
    pub(super) fn denied(&self, policy: &HostPolicy, now: Instant, at: Instant) -> Denied {
        let paused = self.state.paused_until(now);
        let blocked = paused.is_some() && self.state.is_blocked(policy);
        Denied {
            why: if blocked {
                HostRefusal::Blocked
            } else {
                HostRefusal::Paused
            },
            // The end of the pause is what the site asked for; after it the queue decides.
            retry_at: Some(paused.unwrap_or(at)),
        }
    }

    /// The permits that such requests hold.
    pub(super) fn in_flight(&self, ask: StartOptions) -> u32 {
        match ask.api {
            Some(api) => self.state.api_in_flight(api.number),
            None => self.state.in_flight(),
        }
    }

    /// Takes a permit for a request that is about to start.
    pub(super) fn reserve(&mut self, ask: StartOptions) {
        match ask.api {
            _ if ask.pauses_only => {}
            Some(api) => self.state.reserve_api(api),
            None => self.state.reserve(),
        }
    }

    /// Gives a permit back that was not used.
    pub(super) fn unreserve(&mut self, ask: StartOptions) {
        match ask.api {
            _ if ask.pauses_only => {}
            Some(api) => self.state.unreserve_api(api.number),
            None => self.state.unreserve(),
        }
    }

    /// Stamps the start of a request whose permit is reserved.
    pub(super) fn start(&mut self, now: Instant, ask: StartOptions) {
        match ask.api {
            _ if ask.pauses_only => self.state.start_without_permit(now),
            Some(api) => self.state.start_api(now, api),
            None => self.state.start(now),
        }
    }

    /// Gives the permit of a started request back.
    pub(super) fn finish(&mut self, now: Instant, api: Option<u64>) {
        match api {
            Some(number) => self.state.finish_api(number),
            None => self.state.finish(now),
        }
    }

    /// What is known through the store.
    pub(super) fn store(&mut self) -> &mut StoreView {
        self.store.get_or_insert_default()
    }

    /// Takes over what all processes know together.
    pub(super) fn learn(&mut self, now: Instant, shared: &SharedView) -> HostChanges {
        let paused = self.state.paused_until(now);
        if !shared.pause.is_zero() {
            let until = now + shared.pause.min(LONGEST_PAUSE);
            self.state.learn_pause(now, until);
        }
        self.store().learn(now, shared);
        HostChanges::shared(paused, &self.state, now)
    }

    /// The store failed: when to ask again, or `None` to start without it. A permit is reserved for the one who asks.
    pub(super) fn retry_store_at(
        &mut self,
        policy: &HostPolicy,
        now: Instant,
        ask: StartOptions,
        outage: Outage,
        jitter: f64,
    ) -> Option<Instant> {
        let delay = self.delay(policy, now, ask).saturating_mul(outage.nodes);
        let ask_again = now + ASK_AGAIN;
        let view = self.store.get_or_insert_default();
        let Some(mut due) = view.hold_end(now, outage.hold, delay, jitter) else {
            return Some(ask_again);
        };
        let mut busy = false;
        if !ask.pauses_only {
            let local = self.state.last_start().max(self.state.last_end());
            let last = local.max(view.last_start);
            due = due.max(last.and_then(|last| last.checked_add(delay)).unwrap_or(due));
            // One permit is that of the request itself.
            busy = self.state.in_flight() > 1;
        }
        if now < due {
            Some(due.min(ask_again))
        } else {
            busy.then_some(ask_again)
        }
    }
}
