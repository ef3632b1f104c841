//! A request's way through the line: turn, readiness of the inner service, start.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{ApiQuota, HostPolicy, StartOptions};
use etiquette_core::vocabulary::purpose::Api;
use etiquette_core::vocabulary::refusal::{HostRefusal, HostRefused};
use etiquette_core::{Now, Origin, PurposeKind, Refusal};
use http::Extensions;
use tokio::time::{Sleep, sleep};
use tower_service::Service;

use super::Hosts;
use super::host::{Host, Starting, Tap};
use super::line::{Look, Looker, Vigil};
use super::permit::Permit;
use super::queue::{Class, Denied, Position};
use super::second::{Beside, Second};
use super::shared::{Lease, Reply, number_of};
use crate::BoxError;
use crate::events::{self, Event, Voice};
use crate::ext::{AtStart, Context, Rules, Visit};
use crate::ready::ready;

/// A request that wants to start. Dropping it leaves the line and gives back what it has reserved.
#[derive(Debug)]
pub(crate) struct Ticket {
    hosts: Hosts,
    host: Arc<Host>,
    origin: Origin,
    rules: Option<Arc<dyn Rules>>,
    visit: Option<Visit>,
    contact: Option<Arc<str>>,
    page: bool,
    ask: StartOptions,
    /// The API that has a line and a limit of its own.
    tap: Option<Tap>,
    /// The limit of an API whose line is the host's, where that is shared with other processes.
    policy: Option<Box<HostPolicy>>,
    position: Position,
    entered: Instant,
    deadline: Instant,
    never_wait: bool,
    vigil: Vigil,
    /// Its start was counted already, when a layer further out let it go.
    counted: bool,
    /// The delay of a budget elsewhere that has started it.
    elsewhere: Duration,
    /// It had a grant before: the line was not full when it joined.
    returning: bool,
    holding: Holding,
    /// What the origin's robots.txt said when it was last asked.
    crawl_delay: Option<Option<Duration>>,
    /// The permit that other processes see.
    lease: Option<Lease>,
    /// It had to wait in the line, and somebody was told.
    waits: bool,
}

/// What has to be given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    Nothing,
    /// Perhaps a position in the queue.
    Line,
    /// A permit of the host.
    Grant,
}

/// How a layer lets requests wait.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// Why the request is made.
    pub(crate) purpose: PurposeKind,
    /// The API that it uses, to keep its limit.
    pub(crate) api: Option<Api>,
    /// Only pauses hold requests: no permits, no delay.
    pub(crate) pauses_only: bool,
    /// A budget on other hosts keeps the delay already.
    pub(crate) paced_elsewhere: bool,
    /// Refuse rather than wait.
    pub(crate) never_wait: bool,
    /// Not before this, whatever the host allows.
    pub(crate) not_before: Option<Instant>,
}

/// Waits for the turn of a request to `origin`, makes a clone of `inner` ready and stamps the start.
///
/// Nothing of the inner service is held while it waits for the host. Between the turn and the start pause, delay and rules
/// are checked once more, so that a pause that arrives while the inner service gets ready holds the request.
///
/// # Cancel safety
/// Dropping it leaves the line, gives a reserved permit back and drops the inner clone with what it reserved.
pub(crate) async fn admit<S, R>(
    hosts: &Hosts,
    origin: &Origin,
    extensions: &Extensions,
    manner: Manner,
    second: Option<&Second>,
    inner: S,
) -> Result<(S, Permit), BoxError>
where
    S: Service<R> + Clone,
    S::Error: Into<BoxError>,
{
    let not_before = manner.not_before;
    let mut ticket = Ticket::new(hosts, origin, extensions, &manner)?;
    ticket.wait_for_the_visit(not_before).await?;
    let mut beside = second.map(|second| Beside::new(second, extensions, manner.clone()));
    loop {
        if let Some(beside) = &mut beside {
            beside.give_back();
        }
        ticket.turn().await?;
        if let Some(beside) = &mut beside {
            beside.turn(&ticket).await?;
        }
        let mut service = inner.clone();
        ready(&mut service).await.map_err(Into::into)?;
        if !ticket.ask_the_others().await? {
            continue;
        }
        let Some(beside) = &mut beside else {
            match ticket.start()? {
                Some(permit) => return Ok((service, permit)),
                None => continue,
            }
        };
        // The host first, because it has more reasons to refuse: a start that is stamped and not used costs a delay.
        if !beside.is_due() {
            ticket.give_back();
        } else if let Some(permit) = ticket.start()? {
            if let Some((address, shared)) = beside.start()? {
                return Ok((service, permit.beside(address, shared)));
            }
            // It has cost the host a delay, and is a new request there; its time goes on.
            drop(permit);
            let deadline = ticket.deadline;
            ticket = Ticket::new(hosts, origin, extensions, &manner)?;
            ticket.deadline = deadline;
        }
    }
}

impl Ticket {
    fn new(
        hosts: &Hosts,
        origin: &Origin,
        extensions: &Extensions,
        manner: &Manner,
    ) -> Result<Self, Refusal> {
        let context = extensions.get::<Context>();
        let purpose = manner.purpose;
        let now = hosts.clock().now();
        let reads_robots_txt = context.is_some_and(|context| context.reads_robots_txt);
        let class = match purpose {
            _ if reads_robots_txt => Class::RobotsTxt,
            PurposeKind::UserFetch => Class::Person,
            _ => Class::Crawl,
        };
        let contact = context.and_then(|context| context.contact());
        let Some(host) = hosts.host(origin, now.monotonic) else {
            let why = HostRefusal::HostsFull;
            events::refused(hosts.voice(), origin.host(), why, None);
            return Err(HostRefused::new(origin.clone(), why, None, contact).into());
        };
        let position = host.position(class);
        let mut ask = if manner.pauses_only {
            StartOptions::pauses()
        } else {
            StartOptions::pace()
        };
        ask.delay_taken = manner.paced_elsewhere;
        let (mut tap, mut policy) = (None, None);
        match &manner.api {
            // A store knows no limits of APIs: the request keeps the host's shared budget, and its own limit as a delay.
            Some(api) if hosts.0.link.is_some() => {
                policy = Some(Box::new(host.policy.within(api.limit())));
            }
            Some(api) => {
                let api = ApiQuota::new(hosts.number_of(api), api.limit());
                tap = host.tap(api, now.monotonic);
                if tap.is_none() {
                    let why = HostRefusal::HostsFull;
                    events::refused(hosts.voice(), &host.name, why, None);
                    return Err(HostRefused::new(origin.clone(), why, None, contact).into());
                }
                ask.api = Some(api);
            }
            None => {}
        }
        let visit = context.and_then(|context| context.visit.clone());
        if let (Some(visit), PurposeKind::UserFetch) = (&visit, purpose) {
            visit.with(|journey| journey.one_delay = true);
        }
        let max_wait = if manner.never_wait {
            Duration::ZERO
        } else {
            hosts.policy().max_wait_for(purpose)
        };
        Ok(Self {
            hosts: hosts.clone(),
            origin: origin.clone(),
            rules: context.and_then(|context| context.rules.clone()),
            visit,
            contact,
            page: !reads_robots_txt,
            ask,
            tap,
            policy,
            position,
            entered: now.monotonic,
            deadline: now.after(max_wait),
            never_wait: manner.never_wait,
            vigil: Vigil::default(),
            counted: context.is_some_and(|context| context.counted_by.contains(hosts.id())),
            elsewhere: context.map_or(Duration::ZERO, |context| context.delay),
            returning: false,
            holding: Holding::Nothing,
            crawl_delay: None,
            lease: None,
            waits: false,
            host,
        })
    }

    /// The same request in the line of what its host shares with others: the host knows rules and waits already.
    pub(super) fn beside(
        &self,
        hosts: &Hosts,
        name: &Origin,
        extensions: &Extensions,
        manner: &Manner,
    ) -> Result<Self, Refusal> {
        let ticket = Self::new(hosts, name, extensions, manner);
        let mut ticket = ticket.map_err(|mut refusal| {
            // Who asked does not know the address.
            if let Refusal::Host(leaf) = &mut refusal {
                leaf.origin = self.origin.clone();
            }
            refusal
        })?;
        ticket.origin = self.origin.clone();
        ticket.rules = None;
        ticket.deadline = ticket.deadline.min(self.deadline);
        Ok(ticket)
    }

    pub(super) fn contact(&self) -> Option<&Arc<str>> {
        self.contact.as_ref()
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Gives back what is reserved and keeps the position in the queue.
    pub(super) fn give_back(&mut self) {
        self.lease = None;
        if self.holding == Holding::Grant {
            self.host.unreserve(self.ask);
            self.holding = Holding::Line;
        }
    }

    /// Whether pause and delay would let it start now.
    pub(super) fn is_due(&self) -> bool {
        let now = self.hosts.clock().monotonic();
        let taken = self.delay_taken_at();
        let mut ask = self.ask;
        let mut core = self.host.core();
        ask.delay_taken |= core.delay_taken(taken);
        core.due(&self.host.policy, now, ask) <= now
    }

    /// The number of the visit's last start here.
    fn delay_taken_at(&self) -> Option<u64> {
        self.visit
            .as_ref()
            .and_then(|visit| visit.with(|journey| journey.last_start(self.host.key)))
    }

    /// A redirect may have asked its follower to wait, wherever it leads: outside the line, which it must not hold up.
    async fn wait_for_the_visit(&self, not_before: Option<Instant>) -> Result<(), Refusal> {
        let visit = self
            .visit
            .as_ref()
            .and_then(|visit| visit.with(|journey| journey.not_before));
        let Some(until) = visit.max(not_before) else {
            return Ok(());
        };
        loop {
            let now = self.hosts.clock().now();
            if until <= now.monotonic {
                return Ok(());
            }
            if until > self.deadline {
                return Err(self.refusal(
                    now,
                    Denied {
                        why: HostRefusal::Paused,
                        retry_at: Some(until),
                    },
                ));
            }
            sleep(until - now.monotonic).await;
        }
    }

    /// Waits until a permit is reserved for this request.
    pub(super) async fn turn(&mut self) -> Result<(), Refusal> {
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        loop {
            let now = self.hosts.clock().now();
            if !self.ask_the_rules(now)? {
                self.renew_the_rules(now).await?;
                continue;
            }
            let mut asked = Some(now);
            let look = poll_fn(|task| self.poll_turn(task, &mut asked, &mut timer)).await;
            match look {
                Look::Granted => return Ok(()),
                Look::Denied(denied) => {
                    return Err(self.refusal(self.hosts.clock().now(), denied));
                }
                _ => {}
            }
        }
    }

    fn poll_turn(
        &mut self,
        task: &mut Task<'_>,
        asked: &mut Option<Now>,
        timer: &mut Option<Pin<Box<Sleep>>>,
    ) -> Poll<Look> {
        let taken = self.delay_taken_at();
        loop {
            let just_asked = asked.take();
            let now = just_asked
                .unwrap_or_else(|| self.hosts.clock().now())
                .monotonic;
            self.holding = Holding::Line;
            let look = self.host.look(
                now,
                Looker {
                    position: self.position,
                    ask: self.ask,
                    policy: self.policy.as_deref(),
                    delay_taken_at: taken,
                    deadline: self.deadline,
                    asked: just_asked.is_some(),
                    never_wait: self.never_wait,
                    returning: self.returning,
                    waker: task.waker(),
                    vigil: &mut self.vigil,
                },
            );
            match look {
                Look::Granted => {
                    self.holding = Holding::Grant;
                    self.returning = true;
                    return Poll::Ready(look);
                }
                Look::Due | Look::Denied(_) => return Poll::Ready(look),
                Look::Behind { watch } => {
                    *timer = None;
                    if watch {
                        self.hosts.watch(&self.host, self.tap.as_ref());
                    }
                    self.tell_wait();
                    return Poll::Pending;
                }
                Look::First(again) => {
                    let span = again.saturating_duration_since(now);
                    let timer = match timer {
                        Some(timer) => {
                            timer.as_mut().reset(tokio::time::Instant::now() + span);
                            timer
                        }
                        None => timer.insert(Box::pin(sleep(span))),
                    };
                    if timer.as_mut().poll(task).is_pending() {
                        self.tell_wait();
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    fn tell_wait(&mut self) {
        if !std::mem::replace(&mut self.waits, true) {
            let (voice, host) = (self.voice(), &*self.host.name);
            events::tell(|| Event::Waits { voice, host });
        }
    }

    /// What is held for pauses only starts further in, and is told of only where it was held indeed.
    fn tell_start(&self, waited: Duration) {
        if self.waits || !self.ask.pauses_only {
            events::starts(self.voice(), &self.host.name, waited);
        }
    }

    fn voice(&self) -> Voice {
        let mut voice = self.hosts.voice();
        if self.ask.pauses_only {
            voice.scope = "pause";
        }
        voice
    }

    /// Asks the rules for this moment; `false` when they have to be renewed first.
    fn ask_the_rules(&mut self, now: Now) -> Result<bool, Refusal> {
        let Some(rules) = &self.rules else {
            return Ok(true);
        };
        match rules.at_start(now) {
            AtStart::Go { crawl_delay } => {
                let longest = self.host.policy.get_max_crawl_delay();
                if let Some(delay) = crawl_delay.filter(|delay| *delay > longest) {
                    let why = HostRefusal::CrawlDelayTooLong;
                    let retry_at = Some(now.after(delay));
                    return Err(self.refusal(now, Denied { why, retry_at }));
                }
                let key = self.hosts.key_of(&self.origin);
                self.host.crawl_delay(key, crawl_delay, now.monotonic);
                self.crawl_delay = Some(crawl_delay);
                Ok(true)
            }
            AtStart::Refuse(refusal) => Err(*refusal),
            AtStart::Renew => Ok(false),
        }
    }

    /// Steps out of the line until the rules are known again.
    async fn renew_the_rules(&mut self, now: Now) -> Result<(), Refusal> {
        let Some(rules) = &self.rules else {
            return Ok(());
        };
        self.holding = Holding::Line;
        self.host
            .step_out(now.monotonic, self.position, self.deadline, self.ask)
            .map_err(|denied| self.refusal(now, denied))?;
        let mut renewal = rules.renew();
        let sent_away = poll_fn(|task| {
            if let Some(denied) = self.host.sent_away(self.position, self.ask, task.waker()) {
                return Poll::Ready(Some(denied));
            }
            renewal.as_mut().poll(task).map(|()| None)
        })
        .await;
        match sent_away {
            Some(denied) => Err(self.refusal(self.hosts.clock().now(), denied)),
            None => Ok(()),
        }
    }

    /// Asks the store that other processes share, if there is one; `false` when the request returns to its line.
    async fn ask_the_others(&mut self) -> Result<bool, Refusal> {
        let Some(link) = self.hosts.0.link.clone() else {
            return Ok(true);
        };
        let mut ask = self.ask;
        let taken = self.delay_taken_at();
        ask.delay_taken |= self.host.core().delay_taken(taken);
        let crawl_delay = self
            .crawl_delay
            .map(|delay| (number_of(&self.origin), delay));
        let jitter = self.hosts.jitter();
        let policy = self.policy.as_deref().unwrap_or(&self.host.policy);
        let (host, counted) = (&self.host, self.counted);
        let reply = link.acquire(host, policy, ask, crawl_delay, counted, jitter);
        match reply.await {
            Reply::Start(lease) => {
                self.lease = lease;
                Ok(true)
            }
            Reply::Wait => {
                self.host.unreserve(self.ask);
                self.holding = Holding::Line;
                if self.never_wait {
                    let now = self.hosts.clock().now();
                    let at = self.host.core().due(policy, now.monotonic, ask);
                    let why = HostRefusal::Paused;
                    let retry_at = Some(at);
                    return Err(self.refusal(now, Denied { why, retry_at }));
                }
                Ok(false)
            }
        }
    }

    /// Stamps the start. `None` when it may not start after all: the position in the queue is kept and the grant is gone.
    pub(super) fn start(&mut self) -> Result<Option<Permit>, Refusal> {
        let now = self.hosts.clock().now();
        if !self.ask_the_rules(now)? {
            self.give_back();
            return Ok(None);
        }
        let taken = self.delay_taken_at();
        let mut start = Starting::new(now.monotonic, self.ask);
        start.policy = self.policy.as_deref();
        start.delay_taken_at = taken;
        start.counted = self.counted;
        start.let_go = (self.waits && self.ask.delay_taken).then_some(self.elsewhere);
        let start = self.host.commit(start);
        self.holding = Holding::Line;
        let Ok(started) = start else {
            self.lease = None;
            return Ok(None);
        };
        self.holding = Holding::Nothing;
        if let Some(rules) = &self.rules {
            rules.started();
        }
        if let Some(visit) = &self.visit {
            visit.with(|journey| journey.started(self.host.key, started));
        }
        let waited = now.monotonic.saturating_duration_since(self.entered);
        self.tell_start(waited);
        Ok(Some(
            Permit::new(
                self.hosts.clone(),
                Arc::clone(&self.host),
                now.monotonic,
                waited,
                self.page,
                !self.ask.pauses_only,
                self.visit.clone(),
            )
            .using(self.tap.take())
            .under(self.lease.take()),
        ))
    }

    fn refusal(&self, now: Now, denied: Denied) -> Refusal {
        let retry_in = denied
            .retry_at
            .map(|at| at.saturating_duration_since(now.monotonic));
        events::refused(self.voice(), &self.host.name, denied.why, retry_in);
        let retry_at = denied.retry_at.map(|at| now.wall_at(at));
        HostRefused::new(
            self.origin.clone(),
            denied.why,
            retry_at,
            self.contact.clone(),
        )
        .into()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match self.holding {
            Holding::Nothing => {}
            Holding::Line => self.host.leave(self.position, self.ask),
            Holding::Grant => self.host.unreserve(self.ask),
        }
    }
}
