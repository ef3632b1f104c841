//! A host that is at rest, in 24 bytes.
//!
//! Of a host without pause, backoff and Crawl-delay little has to be known: when it was last asked, how fast it was, and
//! the runs that are not over. Times are kept in microseconds and rounded up: what is unpacked asks no sooner.

use std::time::{Duration, Instant};

use super::latency::Latency;
use super::pause::Pause;
use super::runs::Runs;
use super::spacing::Spacing;
use super::starts::Starts;
use super::state::HostState;

/// What [`HostState::pack`] keeps of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedHost([u32; 6]);

impl HostState {
    /// Packs a host that is at rest at `now`; `None` where more is known about it than fits. `base` is an instant before
    /// the host was first asked.
    #[must_use]
    pub fn pack(&self, base: Instant, now: Instant) -> Option<PackedHost> {
        let at_rest = self.under_way() == 0
            && self.backoff.level == 0
            && self.backoff.learnt.is_zero()
            && self.runs.failed_pauses == 0
            && self.runs.blocks == 0
            && self.apis.is_empty()
            && self.paused_until(now).is_none()
            && self.spacing.spaced_until().is_none_or(|until| until <= now)
            && self.crawl_delays.is_empty();
        if !at_rest {
            return None;
        }
        let start = self.spacing.last_start_of_any()?;
        let micros = |span: Duration| u64::try_from(span.as_nanos().div_ceil(1_000)).ok();
        let started_at = micros(start.checked_duration_since(base)?)?;
        let end = match self.spacing.last_end() {
            Some(end) => micros(end.saturating_duration_since(start))?,
            None => 0,
        };
        let runs = [
            u8::try_from(self.runs.failures).ok()?,
            u8::try_from(self.runs.refusals).ok()?,
        ];
        let [epoch_low, epoch_high] = u16::try_from(self.pause.epoch()).ok()?.to_le_bytes();
        Some(PackedHost([
            (started_at >> 32) as u32,
            started_at as u32,
            u32::try_from(end).ok()?,
            u32::try_from(micros(self.latency.0)?).ok()?,
            u32::try_from(self.starts.total()).ok()?,
            u32::from_le_bytes([runs[0], runs[1], epoch_low, epoch_high]),
        ]))
    }

    /// The host as it was packed with the same `base`, or a little later.
    #[must_use]
    pub fn unpack(packed: PackedHost, base: Instant) -> Self {
        let [high, low, end, latency, started, rest] = packed.0;
        let [failures, refusals, epoch_low, epoch_high] = rest.to_le_bytes();
        let start = base + Duration::from_micros(u64::from(high) << 32 | u64::from(low));
        let end = start + Duration::from_micros(end.into());
        Self {
            spacing: Spacing::new(start, end),
            starts: Starts::new(started.into()),
            latency: Latency(Duration::from_micros(latency.into())),
            pause: Pause::new(u16::from_le_bytes([epoch_low, epoch_high]).into()),
            runs: Runs {
                failures: failures.into(),
                refusals: refusals.into(),
                ..Runs::default()
            },
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::host::{HostPolicy, HostResponse, ResponseRecord, StartOptions};

    #[test]
    fn unpacked_it_asks_no_sooner_and_hardly_later() {
        let policy = HostPolicy::new();
        let base = Instant::now();
        let mut state = HostState::new();
        let mut now = base + Duration::from_nanos(123_456_789);
        state.reserve();
        state.start(now);
        let received = ResponseRecord::new(now, HostResponse::failure(), true, 0.0);
        now += Duration::from_nanos(765_432_101);
        state.record_response(&policy, now, &received);
        assert_eq!(state.pack(base, now), None, "under way");
        state.finish(now);
        let packed = state.pack(base, now).unwrap();
        let mut unpacked = HostState::unpack(packed, base);
        let due = state.due(&policy, now, StartOptions::pace());
        let later = unpacked.due(&policy, now, StartOptions::pace());
        // Start, end and latency are each rounded up by less than 1 µs, and the delay is five times the latency.
        assert!(later >= due && later <= due + Duration::from_micros(7));
        assert_eq!((unpacked.runs.failures, unpacked.started()), (1, 1));
    }

    #[test]
    fn what_is_owed_does_not_fit() {
        let policy = HostPolicy::new();
        let base = Instant::now();
        let mut state = HostState::new();
        state.reserve();
        state.start(base);
        state.finish(base);
        assert!(state.pack(base, base).is_some());
        state.crawl_delay(1, Some(Duration::from_secs(5)), base);
        assert_eq!(state.pack(base, base), None);
        state.crawl_delay(1, None, base);
        let mut paused = HostResponse::failure();
        paused.signal = crate::decide::host::Signal::Throttled;
        state.record_response(&policy, base, &ResponseRecord::new(base, paused, true, 0.0));
        assert_eq!(
            state.pack(base, base + Duration::from_secs(3_600)),
            None,
            "backed off"
        );
    }
}
