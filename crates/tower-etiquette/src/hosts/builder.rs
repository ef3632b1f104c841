//! How [`Hosts`] are made.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use etiquette_core::Clock;
use etiquette_core::decide::host::{GroupBy, HostPolicy};
use etiquette_core::store::host::HostStore;
use etiquette_core::store::journal::HostJournal;

use super::handle::Hosts;
use super::registry::{Jitter, Registry};
use super::store::StoreClient;
use super::table::{Policies, Table};
use crate::TokioClock;
use crate::events::EventScope;

/// How many hosts are remembered unless told otherwise.
const MAX_HOSTS: usize = 1_000_000;

/// Makes [`Hosts`] with settings beyond one policy.
#[derive(Debug)]
#[must_use]
pub struct HostsBuilder {
    policies: Policies,
    group_by: GroupBy,
    max_hosts: usize,
    clock: Arc<dyn Clock>,
    store: Option<Arc<dyn HostStore>>,
    scope: EventScope,
    journal: Option<Arc<dyn HostJournal>>,
}

impl Hosts {
    /// Hosts of their own, all under one policy.
    #[must_use]
    pub fn new(policy: HostPolicy) -> Self {
        Self::builder().policy(policy).build()
    }

    /// Hosts with further settings.
    pub fn builder() -> HostsBuilder {
        HostsBuilder {
            policies: Policies::default(),
            group_by: GroupBy::default(),
            max_hosts: MAX_HOSTS,
            clock: Arc::new(TokioClock),
            store: None,
            scope: EventScope::default(),
            journal: None,
        }
    }

    /// The hosts of this process, under the default policy: what the stack's builder uses unless told otherwise.
    #[must_use]
    pub fn process_wide() -> Self {
        static PROCESS: OnceLock<Hosts> = OnceLock::new();
        PROCESS.get_or_init(Self::default).clone()
    }
}

impl Default for Hosts {
    fn default() -> Self {
        Self::new(HostPolicy::default())
    }
}

impl HostsBuilder {
    /// The policy of all hosts that have none of their own, and the longest waits of all.
    pub fn policy(mut self, policy: HostPolicy) -> Self {
        self.policies.common = Arc::new(policy);
        self
    }

    /// A policy for one host, by the name of its group in lower case. The longest waits stay those of the common policy.
    pub fn host(mut self, name: impl Into<String>, policy: HostPolicy) -> Self {
        self.policies.own.insert(name.into(), Arc::new(policy));
        self
    }

    /// Which origins share one budget. Default: those on one host.
    pub fn group_by(mut self, group_by: GroupBy) -> Self {
        self.group_by = group_by;
        self
    }

    /// How many hosts are remembered at most. Default 1,000,000. Hosts that are owed a pause, a delay or a lower rate are
    /// never forgotten for others: when all of them are, new ones are refused.
    pub fn max_hosts(mut self, hosts: usize) -> Self {
        self.max_hosts = hosts;
        self
    }

    /// Shares budgets, pauses and pace with other processes through a store. Needs a tokio runtime.
    ///
    /// The local queue stays; its head asks the store before it starts. The store decides where the two differ, and never
    /// towards an earlier start.
    pub fn store(mut self, store: Arc<dyn HostStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Whether the metrics of these hosts, and of the retries on them, have the label `host`. Default no: a crawl has too
    /// many hosts for a label.
    #[cfg(feature = "metrics")]
    pub fn label_hosts(mut self, label: bool) -> Self {
        self.scope.label_hosts = label;
        self
    }

    /// Keeps pauses and backoff levels across restarts; see [`Hosts::keep_in`].
    pub fn journal(mut self, journal: Arc<dyn HostJournal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Of what the budgets are, in events.
    #[cfg(feature = "client")]
    pub(crate) fn event_scope(mut self, scope: &'static str) -> Self {
        self.scope.name = scope;
        self
    }

    /// Where the present is read. Default [`TokioClock`].
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The hosts.
    #[must_use]
    pub fn build(self) -> Hosts {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let keys = RandomState::new();
        let jitter = Jitter::new(keys.hash_one(0_u8));
        let first_lease = keys.hash_one(1_u8);
        let clock = Arc::clone(&self.clock);
        let client = |store| StoreClient::new(store, clock, self.scope, first_lease);
        let hosts = Hosts(Arc::new(Registry {
            id: NEXT.fetch_add(1, Ordering::Relaxed).max(1),
            table: Table::new(self.max_hosts, self.policies, keys, self.clock.monotonic()),
            group_by: self.group_by,
            store: self.store.map(client).map(Arc::new),
            clock: self.clock,
            journal: OnceLock::new(),
            scope: self.scope,
            jitter,
        }));
        if let Some(journal) = self.journal {
            hosts.keep_in(journal);
        }
        hosts
    }
}
