//! What the head of a response says about its host.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};

use super::policy::HostPolicy;
use super::ratelimit;
use super::signal::Signal;
use crate::RetryAfter;

/// A response as far as it concerns its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostResponse {
    /// What it says.
    pub signal: Signal,
    /// How long the host asks not to be sent requests, counted from the receipt.
    pub wait: Option<Duration>,
    /// Whether it is a redirect: the request that follows it waits too (RFC 9110, 10.2.3).
    pub redirect: bool,
    /// Whether its time may lower the latency that the delay follows: fast errors do not.
    pub counts_for_latency: bool,
}

impl HostResponse {
    /// Reads the head of a response that was received at the wall time `now`.
    #[must_use]
    pub fn read(
        policy: &HostPolicy,
        status: StatusCode,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Self {
        let signal = policy
            .classifier
            .as_ref()
            .and_then(|classifier| classifier(status, headers))
            .unwrap_or_else(|| Signal::of(status));
        // Retry-After takes precedence; on a 2xx it speaks about the result of a job and not about the host. A wait of zero
        // says nothing that the status does not say.
        let redirect = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
        let complaint = redirect || status.as_u16() >= 400;
        let asked = complaint
            .then(|| RetryAfter::of(headers, now).wait())
            .flatten()
            .filter(|wait| !wait.is_zero());
        let wait = asked.or_else(|| {
            policy
                .ratelimit
                .then(|| ratelimit::exhausted_for(headers))
                .flatten()
        });
        Self {
            signal,
            wait,
            redirect,
            counts_for_latency: status.is_success(),
        }
    }

    /// Whether it tells this client to come back later: a 429 or 503, or what counts as one.
    #[must_use]
    pub fn asks_to_come_back_later(&self) -> bool {
        matches!(self.signal, Signal::Throttled | Signal::Unavailable)
    }

    /// No response: the request failed before a head arrived.
    #[must_use]
    pub fn failure() -> Self {
        Self {
            signal: Signal::Failed,
            wait: None,
            redirect: false,
            counts_for_latency: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&'static str, &'static str)]) -> HostResponse {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let policy = HostPolicy::new().classify(|status, headers| {
            (status == 403 && headers.contains_key("retry-after")).then_some(Signal::Throttled)
        });
        let status = StatusCode::from_u16(status).unwrap();
        HostResponse::read(&policy, status, &map, SystemTime::UNIX_EPOCH)
    }

    #[test]
    fn retry_after_takes_precedence_over_ratelimit() {
        let both = [("retry-after", "10"), ("ratelimit", "\"d\";r=0;t=5")];
        assert_eq!(read(429, &both).wait, Some(Duration::from_secs(10)));
        assert_eq!(
            read(200, &both[1..]).wait,
            Some(Duration::from_secs(5)),
            "alone it counts"
        );
    }

    #[test]
    fn zero_is_no_wait_and_a_job_s_retry_after_no_complaint() {
        assert_eq!(read(429, &[("retry-after", "0")]).wait, None);
        assert_eq!(read(202, &[("retry-after", "10")]).wait, None);
    }

    #[test]
    fn the_hook_reads_before_the_status() {
        assert_eq!(
            read(403, &[("retry-after", "10")]).signal,
            Signal::Throttled
        );
        assert_eq!(read(403, &[]).signal, Signal::Refused);
        assert_eq!(read(304, &[]).signal, Signal::Success);
        assert!(!read(304, &[]).counts_for_latency);
    }
}
