use std::num::NonZeroU32;

use etiquette_core::Origin;

use super::replay::{CloneWith, EmptyBodies};
use crate::Hosts;

/// Obeys Retry-After; see the [module](crate::retry_after).
#[derive(Clone, Debug)]
#[must_use]
pub struct RetryAfterLayer<C = EmptyBodies> {
    pub(super) config: RetryAfterConfig,
    pub(super) bodies: C,
}

#[derive(Clone, Debug)]
pub(super) struct RetryAfterConfig {
    pub(super) hosts: Hosts,
    pub(super) attempts: NonZeroU32,
    pub(super) retry_failures: bool,
    pub(super) never_wait: bool,
    pub(super) origin: Option<Origin>,
}

/// The first, one after the pause that it met, and one more.
const ATTEMPTS: NonZeroU32 = NonZeroU32::new(3).expect("three is not zero");

impl RetryAfterLayer {
    /// Pauses `hosts` as they ask for it, and sends requests with an empty body again.
    pub fn new(hosts: Hosts) -> Self {
        Self {
            config: RetryAfterConfig {
                hosts,
                attempts: ATTEMPTS,
                retry_failures: false,
                never_wait: false,
                origin: None,
            },
            bodies: EmptyBodies,
        }
    }
}

impl<C> RetryAfterLayer<C> {
    /// Copies bodies by `clone`, which returns `None` for one that cannot be sent twice. `|_| None` never sends a
    /// request again, and serves bodies without a default.
    pub fn clone_body<F>(self, clone: F) -> RetryAfterLayer<CloneWith<F>> {
        RetryAfterLayer {
            config: self.config,
            bodies: CloneWith(clone),
        }
    }

    /// The same settings over other host state.
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.config.hosts = hosts;
        self
    }

    /// How often a request is sent at most. Default 3; 1 hands every response on as received.
    pub fn attempts(mut self, attempts: NonZeroU32) -> Self {
        self.config.attempts = attempts;
        self
    }

    /// Whether idempotent requests are sent again after a connection error or another 5xx. Default no. They count
    /// as attempts, and a delay lies between them at least.
    pub fn retry_failures(mut self, retry: bool) -> Self {
        self.config.retry_failures = retry;
        self
    }

    /// Refuses a request during a pause, with the time at which to come back, instead of letting it wait.
    pub fn never_wait(mut self) -> Self {
        self.config.never_wait = true;
        self
    }

    /// The origin of requests whose URI is relative. Without it they are refused.
    pub fn origin(mut self, origin: Origin) -> Self {
        self.config.origin = Some(origin);
        self
    }
}
