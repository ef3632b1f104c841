//! What is remembered of a host across a restart.
//!
//! **Flow**: whenever a response changes pause, backoff level or rate, [`HostState::mark`] differs and [`HostState::to_record`]
//! gives what a [`HostJournal`](crate::store::journal::HostJournal) keeps. The next process takes it over with
//! [`HostState::recall`] before its first request.
//!
//! **Clocks**: a restart leaves only the wall clock to count with. A record says when it was written and how much of the
//! pause was left then, so that a pause never grows beyond what it was. A clock that was set back between adds to the
//! wait, at most up to the recorded length: one that stands before the record gives all of it. A clock that was set
//! forward looks like time that has passed, and nothing tells the two apart.
//!
//! **Scope**: pauses, backoff level, rate, and the runs that go with them. **Non-goals**: the tokens of APIs, whose buckets are
//! full after a restart, though without a burst as long as a backoff level is left; the delay of a host that never
//! complained, and runs of failures and refusals that have not led to a pause yet: they would cost a write for each
//! request.

use std::time::{Duration, Instant, SystemTime};

use super::runs::Runs;
use super::state::HostState;
use crate::Now;
use crate::clock::later;
use crate::store::codec::{Decoder, Encoder};

const FORMAT: u8 = 1;

/// A host with a backoff level is remembered so long after its pause: a day, as in a process that goes on, and the hour for
/// which activity may go unwritten.
const KEPT_AFTER_PAUSE: Duration = Duration::from_secs(25 * 3_600);

/// The state of a host that is paused or slowed down, in the form that a journal keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRecord {
    written: SystemTime,
    /// What was left of the pause.
    pause: Duration,
    backoff_level: u32,
    rate: f64,
    learnt: Duration,
    latency: Duration,
    last_start: Option<Moment>,
    recover_from: Option<Moment>,
    last_epoch: Option<Moment>,
    good_minute: Option<u64>,
    good_half_hour: Option<u64>,
    failures: u32,
    failed_pauses: u32,
    refusals: u32,
    blocks: u32,
}

/// An instant by its distance from the writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before(Duration),
    After(Duration),
}

/// What a journal has to know of a host: it is written again when this differs. Opaque but for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMark {
    pause_until: Option<Instant>,
    backoff_level: u32,
    rate: u64,
    runs: [u32; 4],
    /// The hour since the last pause in which the host was last asked.
    hour: u64,
}

impl Moment {
    fn of(instant: Instant, written: Instant) -> Self {
        match written.checked_duration_since(instant) {
            Some(before) => Self::Before(before),
            None => Self::After(instant.saturating_duration_since(written)),
        }
    }

    /// The instant for a process that reads it `elapsed` after the writing. What lies before the clock's beginning
    /// counts as now: the later, the slower.
    fn at(self, elapsed: Duration, now: Instant) -> Instant {
        let back = match self {
            Self::Before(before) => before.saturating_add(elapsed),
            Self::After(after) if after > elapsed => return later(now, after - elapsed),
            Self::After(after) => elapsed - after,
        };
        now.checked_sub(back).unwrap_or(now)
    }
}

impl HostState {
    /// What a journal has to know at `now`; `None` where nothing is to be kept: no pause and no backoff.
    pub fn mark(&mut self, now: Instant) -> Option<HostMark> {
        self.apply_recovery(now);
        let pause_until = self.paused_until(now);
        let backoff = &self.backoff;
        if pause_until.is_none() && backoff.level == 0 {
            return None;
        }
        let runs = self.longest_runs();
        let since = match (backoff.level, self.last_start_of_any()) {
            (1.., Some(start)) => backoff
                .recovery
                .from
                .map_or(Duration::ZERO, |from| start.saturating_duration_since(from)),
            _ => Duration::ZERO,
        };
        Some(HostMark {
            pause_until,
            backoff_level: backoff.level,
            rate: backoff.rate.to_bits(),
            runs: [
                runs.failures,
                runs.failed_pauses,
                runs.refusals,
                runs.blocks,
            ],
            hour: since.as_secs() / 3_600,
        })
    }

    /// What a journal keeps at `now`; `None` when there is nothing to keep.
    pub fn to_record(&mut self, now: Now) -> Option<HostRecord> {
        self.mark(now.monotonic)?;
        let moment = |instant: Option<Instant>| instant.map(|at| Moment::of(at, now.monotonic));
        let pause_until = self.paused_until(now.monotonic);
        let runs = self.longest_runs();
        let backoff = &self.backoff;
        Some(HostRecord {
            written: now.wall,
            pause: pause_until.map_or(Duration::ZERO, |until| until - now.monotonic),
            backoff_level: backoff.level,
            rate: backoff.rate,
            learnt: backoff.learnt,
            latency: self.latency.0,
            last_start: moment(self.last_start_of_any()),
            recover_from: moment(backoff.recovery.from),
            last_epoch: moment(self.last_epoch()),
            good_minute: backoff.recovery.good_minute,
            good_half_hour: backoff.recovery.good_half_hour,
            failures: runs.failures,
            failed_pauses: runs.failed_pauses,
            refusals: runs.refusals,
            blocks: runs.blocks,
        })
    }

    /// Pages and APIs are not told apart any more after a restart: the longest of each run goes on.
    fn longest_runs(&self) -> Runs {
        self.apis.longest_runs(self.runs)
    }

    /// Takes over what a journal knows. Where something is known already, the slower of the two holds.
    pub fn recall(&mut self, record: &HostRecord, now: Now) {
        let elapsed = record.elapsed(now.wall);
        let at = |moment: Option<Moment>| moment.map(|moment| moment.at(elapsed, now.monotonic));
        let pause_until = Moment::After(record.pause).at(elapsed, now.monotonic);
        self.pause.recall(pause_until, at(record.last_epoch));
        let backoff = &mut self.backoff;
        if backoff.level == 0 {
            backoff.recovery.good_minute = record.good_minute;
            backoff.recovery.good_half_hour = record.good_half_hour;
        } else {
            backoff.recovery.interrupt();
        }
        backoff.recovery.from = backoff.recovery.from.max(at(record.recover_from));
        backoff.level = backoff.level.max(record.backoff_level);
        backoff.rate = backoff.rate.min(record.rate);
        backoff.learnt = backoff.learnt.max(record.learnt);
        self.latency.0 = self.latency.0.max(record.latency);
        if let Some(start) = at(record.last_start) {
            self.spacing.start(start);
        }
        self.runs = self.runs.max(Runs {
            failures: record.failures,
            failed_pauses: record.failed_pauses,
            refusals: record.refusals,
            blocks: record.blocks,
        });
    }
}

impl HostRecord {
    /// The backoff level.
    #[must_use]
    pub fn backoff_level(&self) -> u32 {
        self.backoff_level
    }

    /// The end of the pause by the clock that it was written with.
    #[must_use]
    pub fn paused_until(&self) -> SystemTime {
        later_than(self.written, self.pause)
    }

    /// From then on nothing has to be remembered.
    #[must_use]
    pub fn over_at(&self) -> SystemTime {
        let backoff_level = match self.backoff_level {
            0 => Duration::ZERO,
            _ => KEPT_AFTER_PAUSE,
        };
        later_than(self.paused_until(), backoff_level)
    }

    /// Whether `wall` lies before the writing: a clock was set back, and the record is to be written anew, so that the
    /// pause does not begin again with each restart.
    #[must_use]
    pub fn is_from_the_future(&self, wall: SystemTime) -> bool {
        wall < self.written
    }

    fn elapsed(&self, wall: SystemTime) -> Duration {
        wall.duration_since(self.written).unwrap_or_default()
    }

    /// The record as bytes. [`HostRecord::decode`] reads it back.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(FORMAT);
        out.time(self.written);
        for span in [self.pause, self.learnt, self.latency] {
            out.duration(span);
        }
        out.u64(self.rate.to_bits());
        for count in [
            self.backoff_level,
            self.failures,
            self.failed_pauses,
            self.refusals,
            self.blocks,
        ] {
            out.u32(count);
        }
        for moment in [self.last_start, self.recover_from, self.last_epoch] {
            out.option(moment, |out, moment| {
                let (after, span) = match moment {
                    Moment::Before(span) => (0, span),
                    Moment::After(span) => (1, span),
                };
                out.byte(after);
                out.duration(span);
            });
        }
        for number in [self.good_minute, self.good_half_hour] {
            out.option(number, Encoder::u64);
        }
        out.finish()
    }

    /// Reads what [`HostRecord::encode`] wrote, all of `bytes`; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Decoder::new(bytes, FORMAT)?;
        let moment = |rest: &mut Decoder<'_>| match rest.byte()? {
            0 => rest.duration().map(Moment::Before),
            1 => rest.duration().map(Moment::After),
            _ => None,
        };
        let written = rest.time()?;
        let [pause, learnt, latency] = [rest.duration()?, rest.duration()?, rest.duration()?];
        let rate = f64::from_bits(rest.u64()?);
        let record = Self {
            written,
            pause,
            learnt,
            latency,
            rate,
            backoff_level: rest.u32()?,
            failures: rest.u32()?,
            failed_pauses: rest.u32()?,
            refusals: rest.u32()?,
            blocks: rest.u32()?,
            last_start: rest.option(moment)?,
            recover_from: rest.option(moment)?,
            last_epoch: rest.option(moment)?,
            good_minute: rest.option(Decoder::u64)?,
            good_half_hour: rest.option(Decoder::u64)?,
        };
        rest.finish(record)
            .filter(|record| record.rate > 0.0 && record.rate <= 1.0)
    }
}

fn later_than(time: SystemTime, span: Duration) -> SystemTime {
    // Beyond what the clock can tell is as good as its end.
    time.checked_add(span.min(crate::clock::LONGEST))
        .unwrap_or(time)
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
