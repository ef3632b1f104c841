//! What a request of a host is held to: the state machine, and what the store of other processes said.

use std::time::{Duration, Instant};

use etiquette_core::decide::host::{Decision, HostPolicy, HostState, StartOptions};
use etiquette_core::store::host::{Outage, SharedView};
use etiquette_core::vocabulary::refusal::HostRefusal;

use super::queue::{Denied, Schedule};
use super::store::{ASK_AGAIN, StoreView};
use crate::events::HostChanges;

#[derive(Debug, Default)]
pub(super) struct Budget {
    pub(super) state: HostState,
    /// Where the host is shared with other processes.
    store: Option<Box<StoreView>>,
}

/// What a request asks for at `now`, and under which policy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    policy: &'a HostPolicy,
    now: Instant,
    pub(super) options: StartOptions,
}

impl<'a> Terms<'a> {
    pub(super) fn new(policy: &'a HostPolicy, now: Instant, options: StartOptions) -> Self {
        Self {
            policy,
            now,
            options,
        }
    }

    pub(super) fn pace(policy: &'a HostPolicy, now: Instant) -> Self {
        Self::new(policy, now, StartOptions::pace())
    }
}

impl Budget {
    pub(super) fn new(state: HostState) -> Self {
        Self { state, store: None }
    }

    /// Whether a request may start: [`HostState::decide`], and what the store said.
    pub(super) fn decide(&mut self, terms: Terms<'_>) -> Decision {
        let decision = self.state.decide(terms.policy, terms.now, terms.options);
        match &self.store {
            Some(view) => view.decide(decision, terms.now),
            None => decision,
        }
    }

    /// The earliest start: [`HostState::due`], and what the store said.
    pub(super) fn due(&mut self, terms: Terms<'_>) -> Instant {
        let due = self.state.due(terms.policy, terms.now, terms.options);
        let not_before = self.store.as_ref().and_then(|view| view.not_before);
        not_before.map_or(due, |at| due.max(at))
    }

    /// The earliest start of what is held by pauses only.
    pub(super) fn pause_end(&mut self, policy: &HostPolicy, now: Instant) -> Instant {
        self.due(Terms::new(policy, now, StartOptions::pauses()))
    }

    /// The delay that all processes keep together.
    pub(super) fn delay(&mut self, terms: Terms<'_>) -> Duration {
        let delay = self.state.delay_of(terms.policy, terms.now, terms.options);
        let shared = self.store.as_ref().map(|view| view.delay);
        shared.map_or(delay, |shared| delay.max(shared))
    }

    /// What may be taken of the delays at once: [`HostState::saved_up`].
    pub(super) fn saved_up(&mut self, terms: Terms<'_>) -> Duration {
        match terms.options.api {
            Some(api) if !terms.options.pauses_only => self.state.saved_up(terms.now, api),
            _ => Duration::ZERO,
        }
    }

    pub(super) fn schedule(&mut self, terms: Terms<'_>) -> Schedule {
        Schedule {
            pause_end: self.pause_end(terms.policy, terms.now),
            due: self.due(terms),
            delay: self.delay(terms),
            saved: self.saved_up(terms),
        }
    }

    /// Why a request may not start before `at`.
    pub(super) fn denied(&self, policy: &HostPolicy, now: Instant, at: Instant) -> Denied {
        let (why, at) = match self.state.paused_until(now) {
            Some(until) if self.state.is_blocked(policy) => (HostRefusal::Blocked, until),
            // The end of the pause is what the site asked for; after it the queue decides.
            paused => (HostRefusal::Paused, paused.unwrap_or(at)),
        };
        let retry_at = Some(at);
        Denied { why, retry_at }
    }

    /// The permits that such requests hold.
    pub(super) fn in_flight(&self, options: StartOptions) -> u32 {
        match options.api {
            Some(api) => self.state.api_in_flight(api.number),
            None => self.state.in_flight(),
        }
    }

    /// Takes a permit for a request that is about to start.
    pub(super) fn reserve(&mut self, options: StartOptions) {
        match options.api {
            _ if options.pauses_only => {}
            Some(api) => self.state.reserve_api(api),
            None => self.state.reserve(),
        }
    }

    /// Gives a permit back that was not used.
    pub(super) fn unreserve(&mut self, options: StartOptions) {
        match options.api {
            _ if options.pauses_only => {}
            Some(api) => self.state.unreserve_api(api.number),
            None => self.state.unreserve(),
        }
    }

    /// Stamps the start of a request whose permit is reserved.
    pub(super) fn start(&mut self, now: Instant, options: StartOptions) {
        match options.api {
            _ if options.pauses_only => self.state.start_without_permit(now),
            Some(api) => self.state.start_api(now, api),
            None => self.state.start(now),
        }
    }

    /// What is known through the store.
    pub(super) fn store(&mut self) -> &mut StoreView {
        self.store.get_or_insert_default()
    }

    /// Takes over what all processes know together.
    pub(super) fn learn(&mut self, now: Instant, shared: &SharedView) -> HostChanges {
        let paused = self.state.paused_until(now);
        if let Some(until) = self.store().learn(now, shared) {
            self.state.learn_pause(now, until);
        }
        HostChanges::shared(paused, &self.state, now)
    }

    /// The store failed: when to ask again, or `None` to start without it. A permit is reserved for the one who asks.
    pub(super) fn retry_store_at(
        &mut self,
        terms: Terms<'_>,
        outage: Outage,
        jitter: f64,
    ) -> Option<Instant> {
        let now = terms.now;
        let delay = self.delay(terms).saturating_mul(outage.nodes);
        let ask_again = now + ASK_AGAIN;
        let view = self.store.get_or_insert_default();
        let Some(mut due) = view.hold_end(now, outage.hold, delay, jitter) else {
            return Some(ask_again);
        };
        let mut busy = false;
        if !terms.options.pauses_only {
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
