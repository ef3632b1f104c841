//! A request's way to a permit of one budget: queue, rules, store, start.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};

use etiquette_core::vocabulary::refusal::HostRefusal;
use etiquette_core::{Now, Origin, PurposeKind, Refusal};
use http::Extensions;
use tokio::time::sleep;

use super::monitor;
use super::options::AcquireOptions;
use super::permit::{Permit, Started};
use super::queue::{Class, Denied, QueuePoll};
use super::registry::{RefusedRequest, Registry};
use super::slot::Slot;
use super::store::origin_number;
use super::target::Target;
use super::timer::Timer;
use crate::context::Context;
use crate::events::{self, EventScope};
use crate::start_check::{StartCheck, StartDecision};

/// A request that wants to start. Dropping it leaves the queue and gives back what is reserved.
#[derive(Debug)]
pub(super) struct Acquire {
    slot: Slot,
    requester: Requester,
    outer: OuterBudget,
    entered: Instant,
    /// It had to wait, and somebody was told.
    waits: bool,
    /// What the origin's robots.txt said when it was last checked.
    crawl_delay: Option<Option<Duration>>,
}

/// Who asks, for what, and under which rules.
#[derive(Debug)]
struct Requester {
    origin: Origin,
    contact: Option<Arc<str>>,
    start_check: Option<Arc<dyn StartCheck>>,
    /// It does not read robots.txt.
    page: bool,
}

/// What budgets further out have done for the request.
#[derive(Clone, Copy, Debug)]
struct OuterBudget {
    /// Its start was counted on the same hosts, without a permit.
    counted: bool,
    /// The delay of a budget elsewhere that has started it.
    delay: Duration,
}

impl Acquire {
    pub(super) fn new(
        registry: &Arc<Registry>,
        origin: &Origin,
        extensions: &Extensions,
        options: &AcquireOptions,
    ) -> Result<Self, Refusal> {
        let context = extensions.get::<Context>();
        let requester = Requester::new(origin, context);
        let now = registry.clock.now();
        let full = |host: &str| {
            let denied = Denied::new(HostRefusal::HostsFull);
            requester.refuse(registry.scope, host, now, denied)
        };
        let host = registry.host(origin, now.monotonic);
        let mut target = Target {
            host: host.ok_or_else(|| full(origin.host()))?,
            registry: Arc::clone(registry),
            api: None,
        };
        if let Some(api) = &options.api
            && registry.store.is_none()
            && !target.open_api(api, now.monotonic)
        {
            return Err(full(&target.host.name));
        }
        let visit = context.and_then(|context| context.visit.clone());
        if let (Some(visit), PurposeKind::UserFetch) = (&visit, options.purpose) {
            visit.with(|state| state.one_delay = true);
        }
        let class = match options.purpose {
            _ if !requester.page => Class::RobotsTxt,
            PurposeKind::UserFetch => Class::UserFetch,
            _ => Class::Crawl,
        };
        Ok(Self {
            slot: Slot::new(target, visit, options, class, now),
            requester,
            outer: OuterBudget {
                counted: context.is_some_and(|context| context.counted_by.contains(registry.id)),
                delay: context.map_or(Duration::ZERO, |context| context.delay),
            },
            entered: now.monotonic,
            waits: false,
            crawl_delay: None,
        })
    }

    /// The same request in the queue of what its host shares with others, called `name`: the host knows rules and waits
    /// already.
    pub(super) fn at_address(
        &self,
        registry: &Arc<Registry>,
        name: &Origin,
        extensions: &Extensions,
        options: &AcquireOptions,
    ) -> Result<Self, Refusal> {
        let acquire = Self::new(registry, name, extensions, options);
        let mut acquire = acquire.map_err(|mut refusal| {
            // The caller does not know the address.
            if let Refusal::Host(leaf) = &mut refusal {
                leaf.origin = self.origin().clone();
            }
            refusal
        })?;
        acquire.requester.origin = self.origin().clone();
        acquire.requester.start_check = None;
        Ok(acquire.until(self.deadline()))
    }

    /// May not wait longer than until `deadline`.
    pub(super) fn until(mut self, deadline: Instant) -> Self {
        self.slot.deadline = self.slot.deadline.min(deadline);
        self
    }

    pub(super) fn deadline(&self) -> Instant {
        self.slot.deadline
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.requester.origin
    }

    pub(super) fn contact(&self) -> Option<&Arc<str>> {
        self.requester.contact.as_ref()
    }

    /// Gives back what is reserved and keeps the position in the queue.
    pub(super) fn release(&mut self) {
        self.slot.release();
    }

    /// Whether pause and delay would let it start now.
    pub(super) fn is_due(&self) -> bool {
        let now = self.slot.target.monotonic();
        self.slot.due(now) <= now
    }

    /// A redirect may have asked its follower to wait, wherever it leads: outside the queue, which it must not hold up.
    pub(super) async fn wait_for_redirect(
        &self,
        not_before: Option<Instant>,
    ) -> Result<(), Refusal> {
        let visit = self.slot.visit.as_ref();
        let visit = visit.and_then(|visit| visit.with(|state| state.not_before));
        let Some(until) = visit.max(not_before) else {
            return Ok(());
        };
        loop {
            let now = self.slot.target.now();
            if until <= now.monotonic {
                return Ok(());
            }
            if until > self.deadline() {
                return Err(self.paused(now, until));
            }
            sleep(until - now.monotonic).await;
        }
    }

    /// Waits until a permit is reserved for this request.
    pub(super) async fn reserve(&mut self) -> Result<(), Refusal> {
        let mut timer = Timer::default();
        loop {
            let now = self.slot.target.now();
            if !self.check_rules(now)? {
                self.refresh_rules(now).await?;
                continue;
            }
            let mut checked_at = Some(now.monotonic);
            let outcome = poll_fn(|task| self.poll_reserve(task, &mut checked_at, &mut timer));
            match outcome.await {
                QueuePoll::Granted => return Ok(()),
                QueuePoll::Denied(denied) => {
                    return Err(self.refusal(self.slot.target.now(), denied));
                }
                _ => {}
            }
        }
    }

    /// `checked_at` is the instant at which the rules were checked, until the first poll has made use of it.
    fn poll_reserve(
        &mut self,
        task: &mut Task<'_>,
        checked_at: &mut Option<Instant>,
        timer: &mut Timer,
    ) -> Poll<QueuePoll> {
        loop {
            let checked = checked_at.take();
            let now = checked.unwrap_or_else(|| self.slot.target.monotonic());
            let after = match self.slot.poll(now, checked.is_some(), task.waker()) {
                QueuePoll::Head(next) => next.saturating_duration_since(now),
                QueuePoll::Behind { start_monitor } => {
                    timer.clear();
                    if start_monitor {
                        monitor::spawn(self.slot.target.clone());
                    }
                    self.tell_wait();
                    return Poll::Pending;
                }
                outcome => return Poll::Ready(outcome),
            };
            if timer.poll(after, task).is_pending() {
                self.tell_wait();
                return Poll::Pending;
            }
        }
    }

    /// Checks the rules for this moment; `false` when they have to be refreshed first.
    fn check_rules(&mut self, now: Now) -> Result<bool, Refusal> {
        let Some(start_check) = &self.requester.start_check else {
            return Ok(true);
        };
        let crawl_delay = match start_check.check(now) {
            StartDecision::Start { crawl_delay } => crawl_delay,
            StartDecision::Refuse(refusal) => return Err(*refusal),
            StartDecision::Refresh => return Ok(false),
        };
        let Target { registry, host, .. } = &self.slot.target;
        let longest = host.policy.get_max_crawl_delay();
        if let Some(delay) = crawl_delay.filter(|delay| *delay > longest) {
            let why = HostRefusal::CrawlDelayTooLong;
            let retry_at = Some(now.after(delay));
            return Err(self.refusal(now, Denied { why, retry_at }));
        }
        let key = registry.table.key_of(&self.requester.origin);
        host.set_crawl_delay(key, crawl_delay, now.monotonic);
        self.crawl_delay = Some(crawl_delay);
        Ok(true)
    }

    /// Lets others pass until the rules are known again.
    async fn refresh_rules(&mut self, now: Now) -> Result<(), Refusal> {
        let Some(start_check) = &self.requester.start_check else {
            return Ok(());
        };
        let suspended = self.slot.suspend(now.monotonic);
        suspended.map_err(|denied| self.refusal(now, denied))?;
        let mut refresh = start_check.refresh();
        let denied = poll_fn(|task| match self.slot.poll_suspended(task.waker()) {
            None => refresh.as_mut().poll(task).map(|()| None),
            denied => Poll::Ready(denied),
        });
        match denied.await {
            Some(denied) => Err(self.refusal(self.slot.target.now(), denied)),
            None => Ok(()),
        }
    }

    /// Asks the store that other processes share, if there is one; `false` when the request has to return to its queue.
    pub(super) async fn ask_store(&mut self) -> Result<bool, Refusal> {
        if self.slot.target.registry.store.is_none() {
            return Ok(true);
        }
        let crawl_delay = self.crawl_delay;
        let crawl_delay = crawl_delay.map(|delay| (origin_number(self.origin()), delay));
        let may_start = self.slot.ask_store(self.outer.counted, crawl_delay).await;
        if !may_start && self.slot.never_wait {
            let now = self.slot.target.now();
            return Err(self.paused(now, self.slot.due(now.monotonic)));
        }
        Ok(may_start)
    }

    /// Stamps the start. `None` when it may not start after all: the position in the queue is kept and the permit is not.
    pub(super) fn start(&mut self) -> Result<Option<Permit>, Refusal> {
        let now = self.slot.target.now();
        if !self.check_rules(now)? {
            self.release();
            return Ok(None);
        }
        let let_go = (self.waits && self.slot.ask.delay_taken).then_some(self.outer.delay);
        let start = self.slot.start(now.monotonic, self.outer.counted, let_go);
        let Some((number, lease)) = start else {
            return Ok(None);
        };
        let Slot {
            target, visit, ask, ..
        } = &self.slot;
        if let Some(start_check) = &self.requester.start_check {
            start_check.started();
        }
        if let Some(visit) = visit {
            visit.with(|state| state.started(target.host.key, number));
        }
        let started = Started {
            at: now.monotonic,
            waited: now.monotonic.saturating_duration_since(self.entered),
            page: self.requester.page,
            holds_permit: !ask.pauses_only,
            visit: visit.clone(),
            lease,
        };
        // What is held for pauses only starts further in, and is told of only where it was held indeed.
        if self.waits || !ask.pauses_only {
            events::started(self.event_scope(), &target.host.name, started.waited);
        }
        Ok(Some(Permit::new(target.clone(), started)))
    }

    fn tell_wait(&mut self) {
        if !std::mem::replace(&mut self.waits, true) {
            let (scope, host) = (self.event_scope(), &*self.slot.target.host.name);
            events::queued(scope, host);
        }
    }

    fn event_scope(&self) -> EventScope {
        let mut scope = self.slot.target.registry.scope;
        if self.slot.ask.pauses_only {
            scope.name = "pause";
        }
        scope
    }

    fn paused(&self, now: Now, until: Instant) -> Refusal {
        let why = HostRefusal::Paused;
        let retry_at = Some(until);
        self.refusal(now, Denied { why, retry_at })
    }

    fn refusal(&self, now: Now, denied: Denied) -> Refusal {
        let host = &self.slot.target.host.name;
        self.requester.refuse(self.event_scope(), host, now, denied)
    }
}

impl Requester {
    fn new(origin: &Origin, context: Option<&Context>) -> Self {
        Self {
            origin: origin.clone(),
            contact: context.and_then(Context::contact),
            start_check: context.and_then(|context| context.start_check.clone()),
            page: !context.is_some_and(|context| context.fetches_robots_txt),
        }
    }

    fn refuse(&self, scope: EventScope, host: &str, now: Now, denied: Denied) -> Refusal {
        let request = RefusedRequest {
            scope,
            host,
            origin: &self.origin,
            contact: self.contact.as_ref(),
        };
        request.refuse(now, denied)
    }
}
