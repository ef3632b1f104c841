//! How long a host takes to respond, and the delay that follows from it.

use std::time::Duration;

use super::policy::HostPolicy;

/// How long the latency is remembered of a host that is not asked: it makes a good pace better, and no promise rests on it.
pub(super) const LATENCY_KEPT: Duration = Duration::from_secs(600);

/// The latency that the delay of a host follows: from the start of a request to the head of its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Latency(pub(super) Duration);

impl Latency {
    /// It goes up at once and down by half, and down only where `may_fall`: errors are often faster than pages, and a site
    /// that begins to fail must not be asked faster for it. Scrapy's AutoThrottle has the same rule.
    pub(super) fn measure(&mut self, latency: Duration, may_fall: bool) {
        if latency > self.0 {
            self.0 = latency;
        } else if may_fall {
            self.0 = (self.0 + latency) / 2;
        }
    }

    /// The delay that it asks for, at most [`HostPolicy::max_delay`].
    pub(super) fn delay(self, policy: &HostPolicy) -> Duration {
        let delay = self.0.saturating_mul(policy.latency_factor);
        delay.min(policy.max_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_at_once_and_down_by_half() {
        let millis = Duration::from_millis;
        let mut latency = Latency::default();
        latency.measure(millis(800), false);
        latency.measure(millis(200), false);
        assert_eq!(latency.0, millis(800));
        latency.measure(millis(200), true);
        assert_eq!(latency.delay(&HostPolicy::new()), millis(5 * 500));
        latency.measure(millis(60_000), false);
        assert_eq!(latency.delay(&HostPolicy::new()), millis(30_000));
    }
}
