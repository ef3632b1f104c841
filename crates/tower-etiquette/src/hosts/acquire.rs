//! A request's way to a permit of one budget: rules, queue, store, start.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use etiquette_core::store::host::AcquireRequest;
use etiquette_core::vocabulary::refusal::HostRefusal;
use etiquette_core::{Now, Origin, PurposeKind, Refusal};
use http::Extensions;
use tokio::time::sleep;

use super::monitor;
use super::permit::Permit;
use super::queue::{Denied, LockedQueue, PollContext, QueuePoll, QueuedRequest};
use super::registry::Registry;
use super::request::{AcquireOptions, Requester};
use super::store::{self, Lease, StoreReply, origin_number};
use super::target::Target;
use super::timer::Timer;
use crate::context::Context;
use crate::events::{self, EventScope};
use crate::start_check::StartDecision;

/// A request that wants to start. Dropping it leaves the queue, or gives a reserved permit back.
#[derive(Debug)]
pub(super) struct Acquire {
    target: Target,
    state: AcquireState,
    request: QueuedRequest,
    requester: Requester,
    entered: Instant,
    /// It had to wait, and somebody was told.
    waits: bool,
    /// What the origin's robots.txt said when it was last checked.
    crawl_delay: Option<Option<Duration>>,
}

#[derive(Debug)]
enum AcquireState {
    /// Nothing has to be given back: it has not been polled yet, or has started.
    Outside,
    /// Perhaps it is in the queue.
    Queued,
    /// A permit of the host is reserved, under a lease where other processes see it.
    Reserved(Option<Lease>),
}

impl Acquire {
    /// A request to `origin`, under the budget of the host that `name` leads to.
    pub(super) fn new(
        registry: &Arc<Registry>,
        name: &Origin,
        origin: &Origin,
        extensions: &Extensions,
        options: &AcquireOptions,
    ) -> Result<Self, Refusal> {
        let context = extensions.get::<Context>();
        let requester = Requester::new(origin, context, registry.id);
        let now = registry.clock.now();
        let full = |host: &str| {
            let denied = Denied::new(HostRefusal::HostsFull);
            requester.refuse(registry.scope, host, now, denied)
        };
        let host = registry.host(name, now.monotonic);
        let host = host.ok_or_else(|| full(name.host()))?;
        let mut target = Target::new(registry, host);
        if let (Some(api), None) = (&options.api, &registry.store)
            && !target.open_api(api, now.monotonic)
        {
            return Err(full(&target.host.name));
        }
        if let (Some(visit), PurposeKind::UserFetch) = (&requester.visit, options.purpose) {
            visit.with(|state| state.one_delay = true);
        }
        Ok(Self {
            request: requester.queued(&target, options, now),
            target,
            state: AcquireState::Outside,
            requester,
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
        let mut acquire = Self::new(registry, name, self.origin(), extensions, options)?;
        acquire.requester.start_check = None;
        Ok(acquire.until(self.deadline()))
    }

    /// May not wait longer than until `deadline`.
    pub(super) fn until(mut self, deadline: Instant) -> Self {
        self.request.deadline = self.request.deadline.min(deadline);
        self
    }

    pub(super) fn deadline(&self) -> Instant {
        self.request.deadline
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.requester.origin
    }

    pub(super) fn contact(&self) -> Option<&Arc<str>> {
        self.requester.contact.as_ref()
    }

    /// A redirect may have asked its follower to wait, wherever it leads: outside the queue, which it must not hold up.
    pub(super) async fn wait_for_redirect(
        &self,
        not_before: Option<Instant>,
    ) -> Result<(), Refusal> {
        let visit = self.requester.visit.as_ref();
        let visit = visit.and_then(|visit| visit.with(|state| state.not_before));
        let Some(until) = visit.max(not_before) else {
            return Ok(());
        };
        loop {
            let now = self.target.now();
            if until <= now.monotonic {
                return Ok(());
            }
            if until > self.deadline() {
                return Err(self.refusal(now, HostRefusal::Paused, Some(until)));
            }
            sleep(until - now.monotonic).await;
        }
    }

    /// Waits until a permit is reserved for this request.
    pub(super) async fn reserve(&mut self) -> Result<(), Refusal> {
        let mut timer = Timer::default();
        loop {
            let now = self.target.now();
            if !self.check_rules(now)? {
                self.refresh_rules(now).await?;
                continue;
            }
            let mut checked_at = Some(now.monotonic);
            match poll_fn(|cx| self.poll_reserve(cx, &mut checked_at, &mut timer)).await {
                QueuePoll::Granted => return Ok(()),
                QueuePoll::Denied(denied) => return Err(self.denied(self.target.now(), denied)),
                _ => {}
            }
        }
    }

    /// `checked_at` is the instant at which the rules were checked, until the first poll has made use of it.
    fn poll_reserve(
        &mut self,
        cx: &mut TaskContext<'_>,
        checked_at: &mut Option<Instant>,
        timer: &mut Timer,
    ) -> Poll<QueuePoll> {
        loop {
            let checked = checked_at.take();
            let now = checked.unwrap_or_else(|| self.target.monotonic());
            let after = match self.poll_queue(cx, now, checked.is_some()) {
                QueuePoll::Head(next) => next.saturating_duration_since(now),
                QueuePoll::Behind { start_monitor } => {
                    timer.clear();
                    if start_monitor {
                        monitor::spawn(self.target.clone());
                    }
                    self.tell_wait();
                    return Poll::Pending;
                }
                outcome => return Poll::Ready(outcome),
            };
            if timer.poll(after, cx).is_pending() {
                self.tell_wait();
                return Poll::Pending;
            }
        }
    }

    fn poll_queue(&mut self, cx: &TaskContext<'_>, now: Instant, rules_checked: bool) -> QueuePoll {
        self.state = AcquireState::Queued;
        let waker = cx.waker();
        let outcome = self.with_queue(|target, queue, request| {
            let bodies = target.bodies();
            queue.poll(
                request,
                PollContext {
                    now,
                    rules_checked,
                    waker,
                    bodies,
                },
            )
        });
        if let QueuePoll::Granted = outcome {
            self.state = AcquireState::Reserved(None);
            self.request.returning = true;
        }
        outcome
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
        let host = &self.target.host;
        let longest = host.policy.get_max_crawl_delay();
        if let Some(delay) = crawl_delay.filter(|delay| *delay > longest) {
            let why = HostRefusal::CrawlDelayTooLong;
            return Err(self.refusal(now, why, Some(now.after(delay))));
        }
        let key = self.target.registry.table.key_of(self.origin());
        host.set_crawl_delay(key, crawl_delay, now.monotonic);
        self.crawl_delay = Some(crawl_delay);
        Ok(true)
    }

    /// Lets others pass until the rules are known again.
    async fn refresh_rules(&mut self, now: Now) -> Result<(), Refusal> {
        let Some(start_check) = &self.requester.start_check else {
            return Ok(());
        };
        self.state = AcquireState::Queued;
        let (target, request) = (&self.target, &self.request);
        let suspended = target.with_queue(|queue| queue.suspend(request, now.monotonic));
        suspended.map_err(|denied| self.denied(now, denied))?;
        let mut refresh = start_check.refresh();
        let denied = poll_fn(|cx| {
            let (position, waker) = (request.position, cx.waker());
            match target.with_queue(|locked| locked.queue.poll_suspended(position, waker)) {
                None => refresh.as_mut().poll(cx).map(|()| None),
                denied => Poll::Ready(denied),
            }
        });
        match denied.await {
            Some(denied) => Err(self.denied(target.now(), denied)),
            None => Ok(()),
        }
    }

    /// Asks the store that other processes share, if there is one; `false` when the request has to return to its queue.
    pub(super) async fn ask_store(&mut self) -> Result<bool, Refusal> {
        if self.target.registry.store.is_none() {
            return Ok(true);
        }
        let options = self.with_queue(|_, queue, request| queue.options(request));
        let Target { registry, host, .. } = &self.target;
        let Some(client) = &registry.store else {
            return Ok(true);
        };
        let mut question = AcquireRequest::new(client.new_lease(), options);
        question.counted = self.request.counted;
        let origin = self.crawl_delay.map(|_| origin_number(self.origin()));
        question.crawl_delay = origin.zip(self.crawl_delay);
        let policy = self.request.policy.as_deref().unwrap_or(&host.policy);
        let jitter = registry.jitter.next();
        match store::acquire(client, host, policy, question, jitter).await {
            StoreReply::Start(lease) => {
                self.state = AcquireState::Reserved(lease);
                return Ok(true);
            }
            StoreReply::Wait => self.release(),
        }
        if self.request.never_wait {
            let now = self.target.now();
            let due = self.due(now.monotonic);
            return Err(self.refusal(now, HostRefusal::Paused, Some(due)));
        }
        Ok(false)
    }

    /// Stamps the start. `None` when it may not start after all: the position in the queue is kept and the permit is not.
    pub(super) fn start(&mut self) -> Result<Option<Permit>, Refusal> {
        let now = self.target.now();
        if !self.check_rules(now)? {
            self.release();
            return Ok(None);
        }
        let options = self.request.options;
        let spacing = (self.waits && options.delay_taken).then_some(self.requester.outer_delay);
        let start =
            self.with_queue(|_, queue, request| queue.start(request, now.monotonic, spacing));
        let reserved = std::mem::replace(&mut self.state, AcquireState::Queued);
        let (Some(number), AcquireState::Reserved(lease)) = (start, reserved) else {
            return Ok(None);
        };
        self.state = AcquireState::Outside;
        if let Some(start_check) = &self.requester.start_check {
            start_check.started();
        }
        let visit = &self.requester.visit;
        if let Some(visit) = visit {
            visit.with(|state| state.started(self.target.host.key, number));
        }
        let mut permit = Permit::new(self.target.clone(), now.monotonic);
        permit.waited = now.monotonic.saturating_duration_since(self.entered);
        permit.page = self.requester.page;
        permit.holds_permit = !options.pauses_only;
        permit.visit = visit.clone();
        permit.lease = lease;
        // What is held for pauses only starts further in, and is told of only where it was held indeed.
        if self.waits || permit.holds_permit {
            events::started(self.event_scope(), &self.target.host.name, permit.waited);
        }
        Ok(Some(permit))
    }

    /// Gives back what is reserved and keeps the position in the queue.
    pub(super) fn release(&mut self) {
        if let AcquireState::Reserved(_) = self.state {
            self.state = AcquireState::Queued;
            self.with_queue(|_, queue, request| queue.unreserve(request));
        }
    }

    /// Whether pause and delay would let it start now.
    pub(super) fn is_due(&mut self) -> bool {
        let now = self.target.monotonic();
        self.due(now) <= now
    }

    fn due(&mut self, now: Instant) -> Instant {
        self.with_queue(|_, queue, request| queue.due(request, now))
    }

    fn with_queue<T>(
        &mut self,
        change: impl FnOnce(&Target, &mut LockedQueue<'_>, &mut QueuedRequest) -> T,
    ) -> T {
        let (target, request) = (&self.target, &mut self.request);
        let visit = self.requester.visit.as_ref();
        let key = target.host.key;
        request.visit_start = visit.and_then(|visit| visit.with(|state| state.last_start(key)));
        target.with_queue(|queue| change(target, queue, request))
    }

    fn tell_wait(&mut self) {
        if !std::mem::replace(&mut self.waits, true) {
            let (scope, host) = (self.event_scope(), &*self.target.host.name);
            events::queued(scope, host);
        }
    }

    fn event_scope(&self) -> EventScope {
        let mut scope = self.target.registry.scope;
        if self.request.options.pauses_only {
            scope.name = "pause";
        }
        scope
    }

    fn refusal(&self, now: Now, why: HostRefusal, retry_at: Option<Instant>) -> Refusal {
        self.denied(now, Denied { why, retry_at })
    }

    fn denied(&self, now: Now, denied: Denied) -> Refusal {
        let host = &self.target.host.name;
        self.requester.refuse(self.event_scope(), host, now, denied)
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let request = &self.request;
        match self.state {
            AcquireState::Outside => {}
            AcquireState::Queued => self.target.with_queue(|locked| {
                locked.queue.cancel(request.position, locked.wakers);
            }),
            AcquireState::Reserved(_) => self.target.with_queue(|queue| queue.unreserve(request)),
        }
    }
}
