//! What several processes share about a host, and what a store of it has to do.
//!
//! **Flow**: the head of a host's local queue, and nobody else, calls [`HostStore::acquire`]. Granted, it starts under a
//! lease that is renewed with [`HostStore::report`] until its body has ended; otherwise it asks again after the wait that
//! came back. Responses are reported as they come, so that the store keeps the state of
//! [`HostState`](crate::decide::host::HostState) for all processes together.
//!
//! **Scope**: one group of origins at a time, named by host. **Non-goals**: the queue itself, and what a process does while
//! the store fails: both belong to the layers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::decide::host::{HostPolicy, HostResponse, StartOptions};
use crate::store::StoreFailed;

/// A future of a [`HostStore`].
pub type HostStoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreFailed>> + Send + 'a>>;

/// The state of hosts that several processes share: pauses, backoff level, pace and permits.
///
/// All times are relative, because no two processes read one clock; a store counts with a clock of its own. It answers
/// within a bounded time, and what it does not know, or has forgotten, never leads to an earlier start.
pub trait HostStore: fmt::Debug + Send + Sync + 'static {
    /// Asks for a start, and for a permit until the body has ended.
    ///
    /// # Cancel safety
    /// A dropped future may leave a permit taken. Whoever drops it reports [`LeaseUpdate::Unused`] for its lease.
    fn acquire<'a>(
        &'a self,
        local: LocalView<'a>,
        request: AcquireRequest,
    ) -> HostStoreFuture<'a, Acquired>;

    /// Reports what became of a request. Where the report does not arrive, its lease expires.
    fn report<'a>(&'a self, local: LocalView<'a>, report: HostReport) -> HostStoreFuture<'a, ()>;

    /// How long a permit is kept for a process that reports nothing. It renews its leases about three times as often.
    fn lease(&self) -> Duration;

    /// What a process does while the store fails.
    fn outage(&self) -> Outage;
}

/// A host, and what the asking process knows of it: a store that lost the host learns it again, and keeps the later of the
/// two where they differ.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LocalView<'a> {
    /// The name of the group of origins: a host name, in lower case.
    pub host: &'a str,
    /// What the client allows itself on it.
    pub policy: &'a HostPolicy,
    /// How much of a pause is left.
    pub pause: Duration,
    /// How long ago this process last started a request.
    pub since_start: Option<Duration>,
    /// How long ago the last body of this process ended.
    pub since_end: Option<Duration>,
}

impl<'a> LocalView<'a> {
    /// A host of which nothing is known.
    #[must_use]
    pub fn new(host: &'a str, policy: &'a HostPolicy) -> Self {
        Self {
            host,
            policy,
            pause: Duration::ZERO,
            since_start: None,
            since_end: None,
        }
    }
}

/// A permit, by the number under which a process knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub u64);

/// What the head of a queue asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// Under which number a permit is taken; new for each request.
    pub lease: LeaseId,
    /// Whether it needs a permit and the delay.
    pub options: StartOptions,
    /// [`SharedView::started`] as of the process's last start: a delay is taken only as long as nobody else started since.
    pub started: u64,
    /// What the robots.txt of one origin says, if it was just asked: the origin, as a number that all processes derive
    /// alike, and its Crawl-delay.
    pub crawl_delay: Option<(u64, Option<Duration>)>,
    /// The start was counted already, when a layer further out started it without a permit.
    pub counted: bool,
}

impl AcquireRequest {
    /// Asks for a permit and the delay.
    #[must_use]
    pub fn new(lease: LeaseId, options: StartOptions) -> Self {
        Self {
            lease,
            options,
            started: 0,
            crawl_delay: None,
            counted: false,
        }
    }
}

/// What a store replies to a request.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Acquired {
    /// Start now.
    Granted(SharedView),
    /// Ask again after this.
    Wait(Duration, SharedView),
}

/// What all processes together know of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SharedView {
    /// How much of a pause is left.
    pub pause: Duration,
    /// The delay as known now.
    pub delay: Duration,
    /// How long ago any process last started a request.
    pub since_start: Option<Duration>,
    /// How many requests were started; this one included when it was granted.
    pub started: u64,
    /// The pauses that backed off and are not forgiven yet.
    pub backoff_level: u32,
}

/// What became of the lease of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseUpdate {
    /// It is still needed.
    Renewed(LeaseId),
    /// The body has ended.
    Ended(LeaseId),
    /// The request was not sent.
    Unused(LeaseId),
}

/// A response as it is reported to others.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct HostEvent {
    /// What came back.
    pub response: HostResponse,
    /// Whether it was a page; robots.txt is none.
    pub page: bool,
    /// The share that is added to a pause.
    pub jitter: f64,
    /// How long ago the request was started.
    pub since_start: Duration,
    /// From the start to the head of the response, if that is the site's latency.
    pub latency: Option<Duration>,
}

impl HostEvent {
    /// A response to a request that was started `since_start` ago.
    #[must_use]
    pub fn new(response: HostResponse, page: bool, jitter: f64, since_start: Duration) -> Self {
        Self {
            response,
            page,
            jitter,
            since_start,
            latency: None,
        }
    }
}

/// What became of a request: of its permit, and what came back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HostReport {
    /// Of the lease of its permit, if it holds one.
    pub lease: Option<LeaseUpdate>,
    /// What came back, if that is not reported yet.
    pub event: Option<HostEvent>,
}

impl HostReport {
    /// What became of a permit, and what came back.
    #[must_use]
    pub fn new(lease: Option<LeaseUpdate>, event: Option<HostEvent>) -> Self {
        Self { lease, event }
    }
}

/// What a process does while its store fails: always towards politeness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outage {
    /// Nothing starts for so long, because most outages are shorter. [`Duration::MAX`]: not before the store is back.
    pub hold: Duration,
    /// After that a process keeps a budget of its own, of one permit and the delay times this number of processes.
    pub nodes: u32,
}

impl Outage {
    /// Holds everything for `hold`, then shares the budget among `nodes` processes that do not see each other.
    #[must_use]
    pub fn new(hold: Duration, nodes: u32) -> Self {
        Self {
            hold,
            nodes: nodes.max(1),
        }
    }
}
