//! What a process knows about the hosts it asks: budgets, pauses, queues.
//!
//! [`Hosts`] is a cheap handle. Every layer that is given a clone of it shares one state for each host; layers that are
//! given hosts of their own share nothing. The builder of the stack uses [`Hosts::process_wide`], because two clients
//! built in two permits of one program must not double the rate at which a site is asked.
//!
//! A process that restarts forgets pauses and backoff levels, unless [`Hosts::keep_in`] gives it a journal such as the folder of
//! feature `disk`.

mod host;
mod journal;
mod line;
#[cfg(test)]
mod model;
mod permit;
mod queue;
mod second;
mod shared;
mod sync;
mod table;
mod ticket;
mod watch;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::decide::host::{
    GroupBy, HostPolicy, HostResponse, HostSnapshot, HostState, ResponseRecord, StartOptions,
};
use etiquette_core::store::host::{HostReport, HostStore};
use etiquette_core::store::journal::HostJournal;
use etiquette_core::vocabulary::purpose::Api;
use etiquette_core::vocabulary::refusal::{HostRefusal, HostRefused, NoOrigin};
use etiquette_core::{Clock, InvalidOrigin, Now, Origin, PurposeKind, Refusal};
use http::{HeaderMap, StatusCode, Uri};

use crate::TokioClock;
use crate::events::{self, Changes, Voice};
use host::Host;
use journal::{Journal, Keeping};
use shared::{Link, event};
use table::Table;

pub(crate) use permit::Permit;
pub(crate) use second::Second;
#[cfg(feature = "client")]
pub(crate) use second::{Locate, Located};
pub(crate) use ticket::{Manner, admit};

/// How many hosts are remembered unless told otherwise.
const MAX_HOSTS: usize = 1_000_000;

/// The budgets, pauses and queues of all hosts that a client asks. Cloning it shares them.
#[derive(Clone)]
pub struct Hosts(Arc<Inner>);

struct Inner {
    id: u32,
    policy: Arc<HostPolicy>,
    own_policies: HashMap<String, Arc<HostPolicy>>,
    group_by: GroupBy,
    clock: Arc<dyn Clock>,
    keys: RandomState,
    table: Table,
    link: Option<Link>,
    voice: Voice,
    journal: OnceLock<Journal>,
    /// Spreads the ends of pauses; not for secrets.
    dice: AtomicU64,
}

/// Makes [`Hosts`] with settings beyond one policy.
#[derive(Debug)]
#[must_use]
pub struct HostsBuilder {
    policy: HostPolicy,
    own_policies: HashMap<String, Arc<HostPolicy>>,
    group_by: GroupBy,
    max_hosts: usize,
    clock: Arc<dyn Clock>,
    store: Option<Arc<dyn HostStore>>,
    voice: Voice,
    journal: Option<Arc<dyn HostJournal>>,
}

/// A request that was started by [`Hosts::try_start`] and holds a permit of its host. Drop it when the body has ended.
#[derive(Debug)]
#[must_use = "dropping it says that the request is over"]
pub struct Start(Permit);

impl Start {
    /// Records the head of the answer.
    pub fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        let answer = self.0.read(status, headers);
        self.0.answered(answer);
    }

    /// Records that no answer came.
    pub fn failed(&mut self) {
        self.0.failed();
    }

    /// Waits until what was recorded is in the journal of these hosts, if they have one: at most 5 s. Wait for it before
    /// the answer is handed on, or a crash could undo the pause that somebody heard of. Needs a tokio runtime.
    ///
    /// # Cancel safety
    /// Dropped, the record goes on its way.
    pub async fn kept(&mut self) {
        self.0.kept().await;
    }
}

/// What all hosts together come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostsTotals {
    /// The hosts that are remembered. Those who are owed nothing are forgotten when they are counted.
    pub hosts: usize,
    /// The hosts in a pause.
    pub paused: usize,
    /// The requests under way, up to the end of their body.
    pub in_flight: u64,
    /// The requests that wait.
    pub waiting: u64,
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
            policy: HostPolicy::default(),
            own_policies: HashMap::new(),
            group_by: GroupBy::default(),
            max_hosts: MAX_HOSTS,
            clock: Arc::new(TokioClock),
            store: None,
            voice: Voice::default(),
            journal: None,
        }
    }

    /// The hosts of this process, under the default policy: what the stack's builder uses unless told otherwise.
    #[must_use]
    pub fn process_wide() -> Self {
        static PROCESS: OnceLock<Hosts> = OnceLock::new();
        PROCESS
            .get_or_init(|| Self::new(HostPolicy::default()))
            .clone()
    }

    /// The policy of hosts that have none of their own.
    #[must_use]
    pub fn policy(&self) -> &HostPolicy {
        &self.0.policy
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
        let due = self.find(&origin).map(|host| {
            let mut core = host.core();
            core.due(&host.policy, now.monotonic, StartOptions::pace())
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
        Ok(self.find(&origin).map(|host| snapshot(&host, now)))
    }

    /// The `most` hosts with the most requests under way and waiting, the busiest first.
    #[must_use]
    pub fn busiest(&self, most: usize) -> Vec<HostSnapshot> {
        let now = self.0.clock.now();
        let mut busy = Vec::new();
        self.0.table.each(|host| {
            let load = host.load();
            if load > 0 {
                busy.push((load, snapshot(host, now)));
            }
        });
        busy.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.name.cmp(&two.1.name)));
        busy.truncate(most);
        busy.into_iter().map(|(_, snapshot)| snapshot).collect()
    }

    /// Counts over all hosts. Visits each of them, and forgets those who are owed nothing.
    #[must_use]
    pub fn totals(&self) -> HostsTotals {
        let now = self.0.clock.monotonic();
        let mut totals = HostsTotals {
            hosts: self.0.table.settle(now),
            ..HostsTotals::default()
        };
        self.0.table.each(|host| {
            let core = host.core();
            totals.paused += usize::from(core.state.paused_until(now).is_some());
            totals.in_flight += u64::from(core.state.under_way());
            totals.waiting += core.waiting() as u64;
        });
        totals
    }

    /// Starts a request to `origin` now, or refuses with the time at which to come back: for callers with a queue and a
    /// client of their own. What comes back is told to the [`Start`], which is dropped at the end of the body.
    ///
    /// # Errors
    /// [`HostRefused`] when pause, delay or permits do not allow it now, or somebody waits already; always, without a time,
    /// where hosts are shared through a store, which cannot be asked in an instant.
    pub fn try_start(&self, origin: &Origin) -> Result<Start, Refusal> {
        let now = self.0.clock.monotonic();
        let Some(host) = self.host(origin, now) else {
            let why = HostRefusal::HostsFull;
            events::refused(self.0.voice, origin.host(), why, None);
            return Err(HostRefused::new(origin.clone(), why, None, None).into());
        };
        if self.0.link.is_some() {
            let why = HostRefusal::Paused;
            events::refused(self.0.voice, &host.name, why, None);
            return Err(HostRefused::new(origin.clone(), why, None, None).into());
        }
        match host.start_at_once(now) {
            Ok(()) => {
                events::starts(self.0.voice, &host.name, Duration::ZERO);
                let waited = Duration::ZERO;
                let permit = Permit::new(self.clone(), host, now, waited, true, true, None);
                Ok(Start(permit))
            }
            Err(denied) => {
                let now = self.0.clock.now();
                let retry_in = denied
                    .retry_at
                    .map(|at| at.saturating_duration_since(now.monotonic));
                events::refused(self.0.voice, &host.name, denied.why, retry_in);
                let retry_at = denied.retry_at.map(|at| now.wall_at(at));
                Err(HostRefused::new(origin.clone(), denied.why, retry_at, None).into())
            }
        }
    }

    /// Tells these hosts from others; never 0.
    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    /// Whether a page would be refused at once, for a pause that ends beyond its longest wait.
    pub(crate) fn outlook(
        &self,
        origin: &Origin,
        purpose: PurposeKind,
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(host) = self.find(origin) else {
            return Ok(());
        };
        let core = host.core();
        let latest = now.after(self.0.policy.max_wait_for(purpose));
        match core.state.paused_until(now.monotonic) {
            Some(until) if until > latest => {
                let why = if core.state.is_blocked(&host.policy) {
                    HostRefusal::Blocked
                } else {
                    HostRefusal::Paused
                };
                let retry_at = Some(now.wall_at(until));
                drop(core);
                let retry_in = until.saturating_duration_since(now.monotonic);
                events::refused(self.0.voice, &host.name, why, Some(retry_in));
                Err(HostRefused::new(origin.clone(), why, retry_at, None).into())
            }
            _ => Ok(()),
        }
    }

    /// Differs after each pause and each run of refusals: what is known about the origin is then worth asking again.
    pub(crate) fn epoch(&self, origin: &Origin) -> u64 {
        self.find(origin)
            .map_or(0, |host| host.core().state.epoch())
    }

    /// When the epoch began, as far as that is known.
    pub(crate) fn epoch_began(&self, origin: &Origin) -> Option<Instant> {
        self.find(origin)?.core().state.last_epoch()
    }

    /// The delay as known now.
    pub(crate) fn delay(&self, origin: &Origin) -> Duration {
        let now = self.0.clock.monotonic();
        match self.find(origin) {
            Some(host) => host.core().delay(&host.policy, now, StartOptions::pace()),
            None => HostState::new().delay(&self.0.policy, now),
        }
    }

    /// The end of the pause, if the host is paused.
    pub(crate) fn paused_until(&self, origin: &Origin, now: Instant) -> Option<Instant> {
        self.find(origin)?.core().state.paused_until(now)
    }

    /// What the head of an answer says under the policy of its host.
    pub(crate) fn read(
        &self,
        origin: &Origin,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> HostResponse {
        let now = self.0.clock.now();
        let own = self
            .0
            .group_by
            .name(origin, |name| self.0.own_policies.get(name));
        HostResponse::read(own.unwrap_or(&self.0.policy), status, headers, now.wall)
    }

    /// Records an answer for one who holds no permit. The answer is handed on when what comes back is done.
    #[must_use]
    pub(crate) fn record(&self, origin: &Origin, received: &ResponseRecord) -> Option<Keeping> {
        let now = self.0.clock.now();
        let host = self.host(origin, now.monotonic)?;
        let changes = host.answered(now.monotonic, received, false);
        self.tell(&host, changes);
        if let Some(link) = &self.0.link {
            let event = event(received, now.monotonic);
            link.tell_later(&host, HostReport::new(None, Some(event)));
        }
        self.0.journal.get()?.keep(&host, now)
    }

    /// Tells what an answer changed.
    fn tell(&self, host: &Host, changes: Changes) {
        changes.tell(self.0.voice, &host.name, &self.0.clock);
    }

    /// How the events of these hosts are told.
    pub(crate) fn voice(&self) -> Voice {
        self.0.voice
    }

    /// A number from 0 to 1.
    pub(crate) fn jitter(&self) -> f64 {
        // SplitMix64.
        let mut x = self
            .0
            .dice
            .fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        (x >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The host's state, made if it is new; `None` when the table is full.
    fn host(&self, origin: &Origin, now: Instant) -> Option<Arc<Host>> {
        self.0.group_by.name(origin, |name| {
            let key = self.0.keys.hash_one(name);
            self.0
                .table
                .get_or_insert(key, now, |state| self.make(key, name, state))
        })
    }

    /// The state of the group of that name, made if it is new, however many there are.
    fn host_named(&self, name: &str, now: Instant) -> Arc<Host> {
        let key = self.0.keys.hash_one(name);
        self.0
            .table
            .insert(key, now, |state| self.make(key, name, state))
    }

    fn find(&self, origin: &Origin) -> Option<Arc<Host>> {
        self.0.group_by.name(origin, |name| {
            let key = self.0.keys.hash_one(name);
            let now = self.0.clock.monotonic();
            self.0
                .table
                .get(key, now, |state| self.make(key, name, state))
        })
    }

    fn make(&self, key: u64, name: &str, state: HostState) -> Host {
        let own = if self.0.own_policies.is_empty() {
            None
        } else {
            self.0.own_policies.get(name)
        };
        let policy = Arc::clone(own.unwrap_or(&self.0.policy));
        Host::new(key, name, policy, state)
    }

    /// Declarations of one prefix and key are one API.
    fn number_of(&self, api: &Api) -> u64 {
        let declared = (api.origin(), api.prefix(), api.key());
        self.0.keys.hash_one(declared)
    }

    /// The origin itself as a key, to tell origins of one group apart.
    fn key_of(&self, origin: &Origin) -> u64 {
        self.0.keys.hash_one(origin)
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

fn snapshot(host: &Host, now: Now) -> HostSnapshot {
    let mut core = host.core();
    let waiting = core.waiting();
    let name = Some(host.name.to_string());
    core.state.snapshot(&host.policy, now, name, waiting)
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts")
            .field("id", &self.0.id)
            .field("policy", &self.0.policy)
            .field("group_by", &self.0.group_by)
            .finish_non_exhaustive()
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
        self.policy = policy;
        self
    }

    /// A policy for one host, by the name of its group in lower case. The longest waits stay those of the common policy.
    pub fn host(mut self, name: impl Into<String>, policy: HostPolicy) -> Self {
        self.own_policies.insert(name.into(), Arc::new(policy));
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
    /// The local line stays; its first asks the store before it starts. The store decides where the two differ, and
    /// never towards an earlier start.
    pub fn store(mut self, store: Arc<dyn HostStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Whether the metrics of these hosts, and of the retries on them, have the label `host`. Default no: a crawl has too
    /// many hosts for a label.
    #[cfg(feature = "metrics")]
    pub fn label_hosts(mut self, label: bool) -> Self {
        self.voice.label_hosts = label;
        self
    }

    /// Keeps pauses and backoff levels across restarts; see [`Hosts::keep_in`].
    pub fn journal(mut self, journal: Arc<dyn HostJournal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Of what the budgets are, in events.
    #[cfg(feature = "client")]
    pub(crate) fn scope(mut self, scope: &'static str) -> Self {
        self.voice.scope = scope;
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
        let dice = AtomicU64::new(keys.hash_one(0_u8));
        let first_lease = keys.hash_one(1_u8);
        let clock = Arc::clone(&self.clock);
        let voice = self.voice;
        let link = self
            .store
            .map(|store| Link::new(store, clock, voice, first_lease));
        let policy = Arc::new(self.policy);
        let base = self.clock.monotonic();
        let hosts = Hosts(Arc::new(Inner {
            id: NEXT.fetch_add(1, Ordering::Relaxed).max(1),
            table: Table::new(self.max_hosts, Arc::clone(&policy), base),
            policy,
            own_policies: self.own_policies,
            group_by: self.group_by,
            clock: self.clock,
            keys,
            dice,
            link,
            voice,
            journal: OnceLock::new(),
        }));
        if let Some(journal) = self.journal {
            hosts.keep_in(journal);
        }
        hosts
    }
}
