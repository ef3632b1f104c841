//! The handle that programs and layers hold.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::decide::host::{
    HostPolicy, HostResponse, HostSnapshot, HostState, ResponseRecord,
};
use etiquette_core::store::host::HostReport;
use etiquette_core::store::journal::HostJournal;
use etiquette_core::vocabulary::refusal::{HostRefusal, NoOrigin};
use etiquette_core::{Clock, InvalidOrigin, Now, Origin, PurposeKind, Refusal};
use http::{HeaderMap, StatusCode, Uri};

use super::budget::{Budget, Terms};
use super::entry::Host;
use super::permit::{Permit, Start};
use super::queue::Denied;
use super::registry::{Registry, refuse};
use super::report::{self, HostsTotals};
use super::restore;
use super::store::{JournalWrite, event_of};
use super::target::Target;
use crate::events::{self, EventScope};

/// The budgets, pauses and queues of all hosts that a client asks. Cloning it shares them.
#[derive(Clone, Debug)]
pub struct Hosts(pub(super) Arc<Registry>);

/// For programs.
impl Hosts {
    /// The policy of hosts that have none of their own.
    #[must_use]
    pub fn policy(&self) -> &HostPolicy {
        self.0.policy()
    }

    /// Where these hosts read the present.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.0.clock
    }

    /// The wall time at which a request to `uri` could start if it were the only one, for callers with a queue of
    /// their own. Others may come first, so that the layers decide once more.
    ///
    /// # Errors
    /// [`InvalidOrigin`] when the URI is not an absolute `http` or `https` one.
    pub fn next_allowed(&self, uri: &Uri) -> Result<SystemTime, InvalidOrigin> {
        let origin = Origin::of(uri)?;
        let now = self.0.clock.now();
        let due = self.look_up(&origin, |host, budget| {
            budget.due(Terms::pace(&host.policy, now.monotonic))
        });
        Ok(due.map_or(now.wall, |due| now.wall_at(due)))
    }

    /// Why the host of `uri` is asked at its pace; `None` where nothing is remembered.
    ///
    /// # Errors
    /// [`InvalidOrigin`] when the URI is not an absolute `http` or `https` one.
    pub fn snapshot(&self, uri: &Uri) -> Result<Option<HostSnapshot>, InvalidOrigin> {
        let origin = Origin::of(uri)?;
        let now = self.0.clock.now();
        let host = self.0.find(&origin);
        Ok(host.map(|host| report::snapshot(&host, now)))
    }

    /// The `most` hosts with the most requests under way and waiting, the busiest first.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Vec<HostSnapshot> {
        report::busiest(&self.0.table, most, self.0.clock.now())
    }

    /// Counts over all hosts. Visits each of them, and forgets those who are owed nothing.
    #[must_use]
    pub fn totals(&self) -> HostsTotals {
        HostsTotals::of(&self.0.table, self.0.clock.monotonic())
    }

    /// Starts a request to `origin` now, or refuses with the time at which to come back: for callers with a queue and a
    /// client of their own. What comes back is told to the [`Start`], which is dropped at the end of the body.
    ///
    /// # Errors
    /// [`HostRefused`](etiquette_core::vocabulary::refusal::HostRefused) when pause, delay or permits do not allow it now, or
    /// somebody waits already; always, without a time, where hosts are shared through a store, which cannot be asked in an
    /// instant.
    pub fn try_start(&self, origin: &Origin) -> Result<Start, Refusal> {
        let now = self.0.clock.monotonic();
        let Some(host) = self.0.host(origin, now) else {
            let denied = Denied::new(HostRefusal::HostsFull);
            return Err(self.refusal(origin, origin.host(), self.0.clock.now(), denied));
        };
        let started = if self.0.store.is_some() {
            Err(Denied::new(HostRefusal::Paused))
        } else {
            host.start_now(now)
        };
        if let Err(denied) = started {
            return Err(self.refusal(origin, &host.name, self.0.clock.now(), denied));
        }
        events::started(self.0.scope, &host.name, Duration::ZERO);
        Ok(Start(Permit::new(Target::new(&self.0, host), now)))
    }

    fn refusal(&self, origin: &Origin, host: &str, now: Now, denied: Denied) -> Refusal {
        refuse(self.0.scope, host, origin, None, now, denied)
    }

    /// Keeps pauses and backoff levels in `journal` from now on, and takes over those that it has; `false` when these hosts
    /// have a journal already, which then stays.
    ///
    /// Do it before the first request. The names in the journal are those of the groups of origins: a journal that was
    /// kept under another grouping is of no use.
    ///
    /// The next process never asks sooner than this one would have: by the wall clock, which is all that a restart leaves.
    /// A clock that was set back adds to a pause, up to its length when it was written; one that was set forward counts
    /// as time.
    pub fn keep_in(&self, journal: Arc<dyn HostJournal>) -> bool {
        restore::keep_in(&self.0, journal)
    }
}

/// For layers.
impl Hosts {
    /// Tells these hosts from others; never 0.
    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    /// Refuses a page at once whose host is in a pause that ends beyond the page's longest wait.
    pub(crate) fn check_pause(
        &self,
        origin: &Origin,
        purpose: PurposeKind,
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(host) = self.0.find(origin) else {
            return Ok(());
        };
        let latest = now.after(self.policy().max_wait_for(purpose));
        let denied = {
            let budget = &host.lock().budget;
            let until = budget.state.paused_until(now.monotonic);
            until
                .filter(|until| *until > latest)
                .map(|until| budget.denied(&host.policy, now.monotonic, until))
        };
        denied.map_or(Ok(()), |denied| {
            Err(self.refusal(origin, &host.name, now, denied))
        })
    }

    /// Differs after each pause and each run of refusals: what is known about the origin is then worth asking again.
    pub(crate) fn epoch(&self, origin: &Origin) -> u64 {
        let epoch = self.look_up(origin, |_, budget| budget.state.epoch());
        epoch.unwrap_or(0)
    }

    /// When the epoch began, as far as that is known.
    pub(crate) fn epoch_began(&self, origin: &Origin) -> Option<Instant> {
        self.look_up(origin, |_, budget| budget.state.last_epoch())?
    }

    /// The delay as known now.
    pub(crate) fn delay(&self, origin: &Origin) -> Duration {
        let now = self.0.clock.monotonic();
        self.look_up(origin, |host, budget| {
            budget.delay(Terms::pace(&host.policy, now))
        })
        .unwrap_or_else(|| HostState::new().delay(self.policy(), now))
    }

    /// The end of the pause, if the host is paused.
    pub(crate) fn paused_until(&self, origin: &Origin, now: Instant) -> Option<Instant> {
        self.look_up(origin, |_, budget| budget.state.paused_until(now))?
    }

    /// Reads what is remembered of the host of an origin.
    fn look_up<T>(&self, origin: &Origin, read: impl FnOnce(&Host, &mut Budget) -> T) -> Option<T> {
        let host = self.0.find(origin)?;
        Some(read(&host, &mut host.lock().budget))
    }

    /// What the head of a response says under the policy of its host.
    pub(crate) fn read(
        &self,
        origin: &Origin,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> HostResponse {
        let now = self.0.clock.now();
        let policies = &self.0.table.policies;
        let policy = self.0.group_by.name(origin, |name| policies.of(name));
        HostResponse::read(policy, status, headers, now.wall)
    }

    /// Records a response for a caller that holds no permit. The response is handed on when the write is done.
    #[must_use]
    pub(crate) fn record(&self, origin: &Origin, record: &ResponseRecord) -> Option<JournalWrite> {
        let now = self.0.clock.monotonic();
        let host = self.0.host(origin, now)?;
        if let Some(store) = &self.0.store {
            let event = event_of(record, now);
            store.report_later(&host, HostReport::new(None, Some(event)));
        }
        self.0.record(&host, now, record, false)
    }

    /// How the events of these hosts are told.
    pub(crate) fn event_scope(&self) -> EventScope {
        self.0.scope
    }

    /// A number from 0 to 1.
    pub(crate) fn jitter(&self) -> f64 {
        self.0.jitter.next()
    }
}

/// The origin of a request: its own, or the configured one where its URI is relative.
pub(crate) fn origin_of(uri: &Uri, configured: Option<Origin>) -> Result<Origin, Refusal> {
    match (Origin::of(uri), configured) {
        (Ok(origin), _) => Ok(origin),
        (Err(InvalidOrigin::Relative), Some(origin)) => Ok(origin),
        (Err(cause), _) => Err(NoOrigin::new(cause).into()),
    }
}
