//! The lines of a host: who may join one, who starts next, and who is sent away.

use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::{Duration, Instant};

use etiquette_core::decide::host::{Decision, HostPolicy, StartOptions};
use etiquette_core::vocabulary::refusal::HostRefusal;

use super::host::{Core, Host, wake};
use super::queue::{Class, Denied, Position, Queue, Waiter};

const FULL: Denied = Denied {
    why: HostRefusal::QueueFull,
    retry_at: None,
};

/// A body counts as being read when something of it was polled within so long.
const UNREAD: Duration = Duration::from_secs(1);

/// What a look at the line came to.
#[derive(Debug)]
pub(super) enum Look {
    /// A permit is reserved for it.
    Granted,
    /// It could be granted one; its rules are asked before.
    Due,
    /// It waits; it is first, and looks again at the instant.
    First(Instant),
    /// It waits behind others, and has to begin a watch of the line if there is none yet.
    Behind {
        /// Whether there is none.
        watch: bool,
    },
    /// It may not wait.
    Denied(Denied),
}

/// A request that looks at the line.
#[derive(Debug)]
pub(super) struct Looker<'a> {
    pub(super) position: Position,
    pub(super) ask: StartOptions,
    /// What it is held to where that is stricter than the host's own policy.
    pub(super) policy: Option<&'a HostPolicy>,
    /// The number of the visit's last start here: as long as nobody else has started since, its delay is taken.
    pub(super) delay_taken_at: Option<u64>,
    pub(super) deadline: Instant,
    /// Its rules were asked at this very moment.
    pub(super) asked: bool,
    /// Refuse rather than wait.
    pub(super) never_wait: bool,
    /// It had stood in the line before.
    pub(super) returning: bool,
    pub(super) waker: &'a Waker,
    pub(super) vigil: &'a mut Vigil,
}

/// What the first of a line has seen of the bodies that block it.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    first_since: Option<Instant>,
    seen: Option<(u64, Instant)>,
}

/// Those who wait for one budget: the host's own, or that of an API.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) queue: Queue,
    /// Requests under way of which only the body is left.
    pub(super) bodies: u32,
}

impl Host {
    /// Joins the line or looks again. Wakes whoever has to know.
    pub(super) fn look(&self, now: Instant, mut looker: Looker<'_>) -> Look {
        let mut wakers = Vec::new();
        let look = self.look_locked(&mut self.core(), now, &mut looker, &mut wakers);
        wake(wakers);
        look
    }

    fn look_locked(
        &self,
        core: &mut Core,
        now: Instant,
        looker: &mut Looker<'_>,
        wakers: &mut Vec<Waker>,
    ) -> Look {
        let position = looker.position;
        let policy = looker.policy.unwrap_or(&self.policy);
        looker.ask.delay_taken |= core.delay_taken(looker.delay_taken_at);
        let ask = looker.ask;
        let queue = core.queue(ask);
        if let Some(denied) = queue.take_denied(position) {
            return Look::Denied(denied);
        }
        queue.step_in(position);
        if queue.get_mut(position).is_none() {
            if queue.is_first(position) && core.decide(policy, now, ask) == Decision::Admit {
                if !looker.asked {
                    return Look::Due;
                }
                core.reserve(ask);
                return Look::Granted;
            }
            if let Some(denied) = self.may_join(core, now, looker) {
                return Look::Denied(denied);
            }
            let waiter = Waiter {
                waker: None,
                deadline: looker.deadline,
                ask,
            };
            core.queue(ask).insert(position, waiter);
        }
        if !core.queue(ask).is_first(position) {
            looker.vigil.first_since = None;
            core.remember(position, looker);
            let watch = core.queue(ask).lacks_a_watch();
            return Look::Behind { watch };
        }
        let decision = core.decide(policy, now, ask);
        let (due, full) = match decision {
            Decision::Admit if looker.asked => {
                let delay = if ask.pauses_only || ask.delay_taken {
                    Duration::ZERO
                } else {
                    let saved = core.saved_up(now, ask);
                    core.delay(policy, now, ask).saturating_sub(saved)
                };
                core.queue(ask).remove_first(position, delay);
                core.reserve(ask);
                // With a delay the next one learns its turn when this one has started.
                if delay.is_zero() {
                    wakers.extend(core.queue(ask).call_first());
                }
                return Look::Granted;
            }
            Decision::Admit => return Look::Due,
            Decision::Full(due) => (due, true),
            Decision::Wait(due) => (due, false),
            _ => (now + UNREAD, false),
        };
        let by = core.queue(ask).first_by();
        if by.is_none_or(|by| due.max(now) > by) {
            self.review(core, ask.api.map(|api| api.number), now, wakers);
            let queue = core.queue(ask);
            if let Some(denied) = queue.take_denied(position) {
                wakers.extend(queue.call_first());
                return Look::Denied(denied);
            }
        }
        let mut again = if full { None } else { Some(due) };
        if full {
            match self.watch_bodies(core, now, looker) {
                Ok(look_at) => again = Some(look_at),
                Err(denied) => {
                    let queue = core.queue(ask);
                    queue.leave(position);
                    wakers.extend(queue.call_first());
                    return Look::Denied(denied);
                }
            }
        }
        core.remember(position, looker);
        let by = core.queue(ask).first_by().unwrap_or(looker.deadline);
        // Just after the deadline, because at it a start is still in time.
        let by = by + Duration::from_millis(1);
        let again = again.map_or(by, |again| again.min(by));
        core.queue(ask).looked(again);
        Look::First(again)
    }

    /// Steps out of the line while the rules are renewed; `Err` when it may not wait at all.
    pub(super) fn step_out(
        &self,
        now: Instant,
        position: Position,
        deadline: Instant,
        ask: StartOptions,
    ) -> Result<(), Denied> {
        let mut wakers = Vec::new();
        let outcome = {
            let mut core = self.core();
            if let Some(denied) = core.queue(ask).take_denied(position) {
                Err(denied)
            } else if core.due(&self.policy, now, StartOptions::pauses()) > deadline {
                core.queue(ask).leave(position);
                Err(self.denied(&core, now, deadline))
            } else if !core.queue(ask).holds(position)
                && self.line_is_full(core.queue(ask), position)
            {
                Err(FULL)
            } else {
                let queue = core.queue(ask);
                let first = queue.is_first(position);
                queue.step_out(
                    position,
                    Waiter {
                        waker: None,
                        deadline,
                        ask,
                    },
                );
                if first {
                    wakers.extend(queue.call_first());
                }
                Ok(())
            }
        };
        wake(wakers);
        outcome
    }

    /// Whether somebody who stepped out was sent away meanwhile; remembers whom to wake then.
    pub(super) fn sent_away(
        &self,
        position: Position,
        ask: StartOptions,
        waker: &Waker,
    ) -> Option<Denied> {
        let mut core = self.core();
        let queue = core.queue(ask);
        if let Some(denied) = queue.take_denied(position) {
            return Some(denied);
        }
        if let Some(waiter) = queue.away_mut(position) {
            remember(waiter, waker);
        }
        None
    }

    /// When the watch of a line has to look again; `None` when it is over.
    pub(super) fn watch(&self, now: Instant, api: Option<u64>, watcher: &Waker) -> Option<Instant> {
        let mut wakers = Vec::new();
        let until = {
            let mut core = self.core();
            core.line(api).queue.watch(now, watcher, &mut wakers)
        };
        wake(wakers);
        until
    }

    /// A line's watch is gone.
    pub(super) fn unwatched(&self, api: Option<u64>) {
        let wakers = self.core().line(api).queue.unwatched();
        wake(wakers);
    }

    /// Leaves the line for good.
    pub(super) fn leave(&self, position: Position, ask: StartOptions) {
        let mut core = self.core();
        let queue = core.queue(ask);
        // The watch has to hear of a line that has become short.
        let calls = queue.is_first(position) || queue.len() <= 2;
        queue.leave(position);
        let wakers = calls.then(|| queue.call_first());
        drop(core);
        wake(wakers.into_iter().flatten());
    }

    /// Whether a new request may wait: the line has an end, and the wait a limit.
    fn may_join(&self, core: &mut Core, now: Instant, looker: &Looker<'_>) -> Option<Denied> {
        let policy = looker.policy.unwrap_or(&self.policy);
        let ask = looker.ask;
        let due = core.due(policy, now, ask);
        let delay = core.delay(policy, now, ask);
        if looker.never_wait {
            // Where only a permit is missing, nobody knows when it comes back: not before a delay has passed.
            let at = if due > now {
                due
            } else {
                now.checked_add(delay).unwrap_or(now)
            };
            return Some(self.denied(core, now, at));
        }
        let ahead = core.queue(ask).ahead(looker.position);
        let before = if ask.pauses_only {
            Duration::ZERO
        } else {
            delay
                .saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX))
                .saturating_sub(core.saved_up(now, ask))
        };
        let at = due.checked_add(before).unwrap_or(due);
        if at > looker.deadline {
            return Some(self.denied(core, now, at));
        }
        (!looker.returning && self.line_is_full(core.queue(ask), looker.position)).then_some(FULL)
    }

    /// A line of pages does not keep robots.txt out, of which few wait at a time.
    fn line_is_full(&self, queue: &Queue, position: Position) -> bool {
        let limit = match position.class {
            Class::RobotsTxt => self
                .policy
                .get_queue_limit()
                .saturating_mul(2)
                .saturating_add(1),
            Class::Person | Class::Crawl => self.policy.get_queue_limit(),
        };
        queue.len() >= limit
    }

    /// A request that cannot start before `at`.
    pub(super) fn denied(&self, core: &Core, now: Instant, at: Instant) -> Denied {
        let blocked = core.state.is_blocked(&self.policy);
        let paused = core.state.paused_until(now);
        Denied {
            why: if blocked && paused.is_some() {
                HostRefusal::Blocked
            } else {
                HostRefusal::Paused
            },
            // The end of the pause is what the site asked for; behind it the line decides.
            retry_at: Some(paused.unwrap_or(at)),
        }
    }

    /// Sends those of a line away who cannot start in time any more.
    pub(super) fn review(
        &self,
        core: &mut Core,
        api: Option<u64>,
        now: Instant,
        wakers: &mut Vec<Waker>,
    ) {
        if core.line(api).queue.is_empty() {
            return;
        }
        let ask = core.common_ask(api);
        let due = core.due(&self.policy, now, ask);
        let delay = core.delay(&self.policy, now, ask);
        let saved = core.saved_up(now, ask);
        let why = self.denied(core, now, due);
        let paused = core.state.paused_until(now).is_some();
        let deny = |at| Denied {
            retry_at: if paused { why.retry_at } else { Some(at) },
            ..why
        };
        let pause_end = core.due(&self.policy, now, StartOptions::pauses());
        let queue = &mut core.line(api).queue;
        queue.review(pause_end, due, delay, saved, deny, wakers);
    }

    /// When the permits come from unread bodies alone for too long, waiting for them is pointless: the one who holds
    /// them may be the one who waits.
    fn watch_bodies(
        &self,
        core: &mut Core,
        now: Instant,
        looker: &mut Looker<'_>,
    ) -> Result<Instant, Denied> {
        let vigil = &mut *looker.vigil;
        let held = self.policy.get_unread_body_timeout();
        let since = *vigil.first_since.get_or_insert(now);
        let judge_at = since.checked_add(held).unwrap_or(now + UNREAD);
        let watch_from = since
            .checked_add(held.saturating_sub(UNREAD))
            .unwrap_or(judge_at);
        if now < watch_from {
            return Ok(watch_from);
        }
        let api = looker.ask.api.map(|api| api.number);
        let in_flight = match api {
            Some(number) => core.state.api_in_flight(number),
            None => core.state.in_flight(),
        };
        let bodies = core.line(api).bodies;
        let meter = core.meter(&self.meter, api);
        let blocked =
            bodies > 0 && bodies >= in_flight && meter.reading.load(Ordering::Acquire) == 0;
        let polls = meter.polls.load(Ordering::Acquire);
        match vigil.seen {
            Some((seen, at)) if blocked && seen == polls => {
                let judge_at = judge_at.max(at + UNREAD.min(held));
                if now >= judge_at {
                    Err(Denied {
                        why: HostRefusal::UnreadBody,
                        retry_at: None,
                    })
                } else {
                    Ok(judge_at)
                }
            }
            _ => {
                vigil.seen = blocked.then_some((polls, now));
                Ok(judge_at
                    .max(now + UNREAD.min(held))
                    .max(now + Duration::from_millis(1)))
            }
        }
    }
}

impl Core {
    fn remember(&mut self, position: Position, looker: &Looker<'_>) {
        if let Some(waiter) = self.queue(looker.ask).get_mut(position) {
            remember(waiter, looker.waker);
        }
    }
}

fn remember(waiter: &mut Waiter, waker: &Waker) {
    match &mut waiter.waker {
        Some(known) => known.clone_from(waker),
        none => *none = Some(waker.clone()),
    }
}
