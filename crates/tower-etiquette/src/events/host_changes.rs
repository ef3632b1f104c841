//! What a response changes about a host: compared under the host's lock, emitted after it.

use std::sync::Arc;
use std::time::Instant;

use etiquette_core::Clock;
use etiquette_core::decide::host::{HostPolicy, HostState, ResponseRecord, Signal};

use super::emit::emit_host;
use super::event::{ENABLED, EventScope, HostEvent, cause_of};

/// The backoff level of a host that was last reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastReported {
    #[cfg(any(feature = "tracing", feature = "metrics"))]
    backoff_level: u32,
}

impl LastReported {
    /// Of a host that begins, or is found again, in this state.
    pub(crate) fn of(state: &HostState) -> Self {
        let mut reported = Self::default();
        reported.replace(state.backoff_level());
        reported
    }

    /// Notes the backoff level, and returns what was noted before.
    fn replace(&mut self, backoff_level: u32) -> u32 {
        #[cfg(any(feature = "tracing", feature = "metrics"))]
        return std::mem::replace(&mut self.backoff_level, backoff_level);
        #[cfg(not(any(feature = "tracing", feature = "metrics")))]
        backoff_level
    }
}

/// A host before a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PaceSnapshot(Option<Before>);

#[derive(Clone, Copy, Debug)]
struct Before {
    paused: Option<Instant>,
    blocked: bool,
    backoff_level: u32,
}

/// What the response changed.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub(crate) struct HostChanges(Option<Changed>);

#[derive(Clone, Copy, Debug)]
struct Changed {
    paused: Option<(Instant, &'static str)>,
    blocked: bool,
    /// Levels that time has forgiven since the last response, and those that it left.
    forgiven: u32,
    left: u32,
    backed_off: bool,
    backoff_level: u32,
    rate: f64,
}

impl PaceSnapshot {
    pub(crate) fn of(state: &mut HostState, policy: &HostPolicy, now: Instant) -> Self {
        Self(ENABLED.then(|| {
            // Applies what time alone changes.
            state.delay(policy, now);
            Before {
                paused: state.paused_until(now),
                blocked: state.is_blocked(policy),
                backoff_level: state.backoff_level(),
            }
        }))
    }

    /// Compares with the host after the response.
    pub(crate) fn changes(
        self,
        state: &mut HostState,
        reported: &mut LastReported,
        policy: &HostPolicy,
        now: Instant,
        received: &ResponseRecord,
    ) -> HostChanges {
        let Some(before) = self.0 else {
            return HostChanges::default();
        };
        let blocked = state.is_blocked(policy);
        let cause = match received.response.signal {
            // A single refused page pauses the host only where it asks for it.
            Signal::Refused if !blocked => "asked",
            signal => cause_of(signal),
        };
        let paused = state.paused_until(now);
        let backoff_level = state.backoff_level();
        HostChanges(Some(Changed {
            paused: paused
                .filter(|until| before.paused < Some(*until))
                .map(|until| (until, cause)),
            blocked: blocked && !before.blocked,
            forgiven: reported
                .replace(backoff_level)
                .saturating_sub(before.backoff_level),
            left: before.backoff_level,
            backed_off: backoff_level > before.backoff_level,
            backoff_level,
            rate: state.pace(policy, now).rate,
        }))
    }
}

impl HostChanges {
    /// A pause that another process has learnt of.
    pub(crate) fn shared(before: Option<Instant>, state: &HostState, now: Instant) -> Self {
        let paused = state
            .paused_until(now)
            .filter(|until| before < Some(*until));
        Self(paused.filter(|_| ENABLED).map(|until| Changed {
            paused: Some((until, "shared")),
            blocked: false,
            forgiven: 0,
            left: state.backoff_level(),
            backed_off: false,
            backoff_level: state.backoff_level(),
            rate: 1.0,
        }))
    }

    /// Emits what changed, the recovery first.
    pub(crate) fn emit(self, scope: EventScope, host: &str, clock: &Arc<dyn Clock>) {
        let Some(changed) = self.0 else {
            return;
        };
        let emit = |what| emit_host(scope, host, what);
        if changed.forgiven > 0 {
            emit(HostEvent::Recovered {
                backoff_level: changed.left,
                forgiven: changed.forgiven,
            });
        }
        if let Some((until, cause)) = changed.paused {
            let now = clock.now();
            emit(HostEvent::Paused {
                cause,
                span: until.saturating_duration_since(now.monotonic),
                until: now.wall_at(until),
            });
        }
        if changed.blocked {
            emit(HostEvent::Blocked);
        }
        if changed.backed_off {
            emit(HostEvent::BackedOff {
                backoff_level: changed.backoff_level,
                rate: changed.rate,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(any(feature = "tracing", feature = "metrics")))]
    fn costs_no_memory_when_nobody_can_listen() {
        assert_eq!(size_of::<LastReported>(), 0);
    }

    #[test]
    #[cfg(any(feature = "tracing", feature = "metrics"))]
    fn pauses_and_backoffs_are_seen() {
        use etiquette_core::decide::host::HostResponse;
        use http::{HeaderMap, StatusCode};
        use std::time::{Duration, SystemTime};

        let policy = HostPolicy::new().jitter(0.0, 0.0);
        let start = Instant::now();
        let mut state = HostState::new();
        let mut reported = LastReported::of(&state);
        let mut answer = |status: StatusCode, started: Instant, now: Instant| {
            let before = PaceSnapshot::of(&mut state, &policy, now);
            let answer =
                HostResponse::read(&policy, status, &HeaderMap::new(), SystemTime::UNIX_EPOCH);
            let received = ResponseRecord::new(started, answer, true, 0.0);
            state.record_response(&policy, now, &received);
            before
                .changes(&mut state, &mut reported, &policy, now, &received)
                .0
                .expect("somebody listens")
        };
        let after = |seconds| start + Duration::from_secs(seconds);

        let first = answer(StatusCode::OK, start, after(1));
        assert_eq!(
            (first.paused, first.backed_off, first.forgiven),
            (None, false, 0)
        );
        let second = answer(StatusCode::TOO_MANY_REQUESTS, after(2), after(3));
        assert_eq!(second.paused, Some((after(63), "throttled")));
        assert_eq!(
            (second.backed_off, second.backoff_level, second.rate),
            (true, 1, 0.5)
        );
        let late = answer(StatusCode::OK, after(2), after(4));
        assert_eq!(late.paused, None, "the pause has not moved");
        let success = answer(StatusCode::OK, after(70), after(71));
        assert_eq!((success.backed_off, success.forgiven), (false, 0));
        // A backoff level is forgiven and the next one made before either was reported.
        let again = answer(StatusCode::TOO_MANY_REQUESTS, after(2_000), after(2_001));
        assert_eq!((again.forgiven, again.left), (1, 0));
        assert_eq!((again.backed_off, again.backoff_level), (true, 1));
    }
}
