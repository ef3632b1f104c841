//! What all clones of [`Hosts`](super::Hosts) share: the hosts, how they are found, and who is told of them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use etiquette_core::decide::host::{GroupBy, HostPolicy, ResponseRecord};
use etiquette_core::vocabulary::refusal::HostRefused;
use etiquette_core::{Clock, Now, Origin, Refusal};

use super::entry::Host;
use super::queue::Denied;
use super::store::{Journal, JournalWrite, StoreClient};
use super::table::Table;
use crate::events::{self, EventScope};

pub(super) struct Registry {
    /// Tells these hosts from others; never 0.
    pub(super) id: u32,
    pub(super) table: Table,
    pub(super) group_by: GroupBy,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) store: Option<Arc<StoreClient>>,
    pub(super) journal: OnceLock<Journal>,
    pub(super) scope: EventScope,
    pub(super) jitter: Jitter,
}

impl Registry {
    /// The policy of hosts that have none of their own.
    pub(super) fn policy(&self) -> &HostPolicy {
        &self.table.policies.common
    }

    /// The host of an origin, if it is remembered.
    pub(super) fn find(&self, origin: &Origin) -> Option<Arc<Host>> {
        let now = self.clock.monotonic();
        self.group_by.name(origin, |name| self.table.get(name, now))
    }

    /// The host of an origin, made if it is new; `None` when the table is full.
    pub(super) fn host(&self, origin: &Origin, now: Instant) -> Option<Arc<Host>> {
        self.group_by
            .name(origin, |name| self.table.get_or_insert(name, now))
    }

    /// Records a response and tells what it changed. It is handed on when the write to the journal is done, where there is one.
    pub(super) fn record(
        &self,
        host: &Arc<Host>,
        now: Instant,
        response: &ResponseRecord,
        body_follows: bool,
    ) -> Option<JournalWrite> {
        let changes = host.record(now, response, body_follows);
        changes.emit(self.scope, &host.name, &self.clock);
        self.journal.get()?.keep(host, self.clock.now())
    }
}

/// Tells that a host refuses a request, and returns the refusal.
pub(super) fn refuse(
    scope: EventScope,
    host: &str,
    origin: &Origin,
    contact: Option<&Arc<str>>,
    now: Now,
    denied: Denied,
) -> Refusal {
    let Denied { why, retry_at } = denied;
    let retry_in = retry_at.map(|at| at.saturating_duration_since(now.monotonic));
    events::refused(scope, host, why, retry_in);
    let retry_at = retry_at.map(|at| now.wall_at(at));
    HostRefused::new(origin.clone(), why, retry_at, contact.cloned()).into()
}

/// Random numbers that spread what processes do at once; not for secrets.
#[derive(Debug)]
pub(super) struct Jitter(AtomicU64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number from 0 to 1.
    pub(super) fn next(&self) -> f64 {
        // SplitMix64.
        let mut x = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        (x >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts")
            .field("id", &self.id)
            .field("policy", self.policy())
            .field("group_by", &self.group_by)
            .finish_non_exhaustive()
    }
}
