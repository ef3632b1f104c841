use std::num::NonZeroU32;

use etiquette_core::Origin;
use tower_layer::Layer;

use super::replay::{CloneWith, EmptyBodies};
use super::service::{RetryAfter, Settings};
use crate::Hosts;

/// Obeys Retry-After; see the [module](crate::retry_after).
#[derive(Clone, Debug)]
pub struct RetryAfterLayer<C = EmptyBodies> {
    settings: Settings,
    bodies: C,
}

impl RetryAfterLayer {
    /// Pauses `hosts` as they ask for it, and sends requests with an empty body again.
    #[must_use]
    pub fn new(hosts: Hosts) -> Self {
        Self {
            settings: Settings::new(hosts),
            bodies: EmptyBodies,
        }
    }
}

impl<C> RetryAfterLayer<C> {
    /// Has a body a second time by `clone`, which returns `None` for one that cannot be sent twice. `|_| None` never
    /// sends a request again, and serves bodies without a default.
    #[must_use]
    pub fn clone_body<F>(self, clone: F) -> RetryAfterLayer<CloneWith<F>> {
        RetryAfterLayer {
            settings: self.settings,
            bodies: CloneWith(clone),
        }
    }

    /// The same settings over other host state.
    #[must_use]
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.settings.hosts = hosts;
        self
    }

    /// How often a request is sent at most. Default 3; 1 hands every answer on as received.
    #[must_use]
    pub fn attempts(mut self, attempts: NonZeroU32) -> Self {
        self.settings.attempts = attempts;
        self
    }

    /// Whether idempotent requests are sent again after a connection error or another 5xx. Default no. The attempts are
    /// the same ones, and a delay lies between them at least.
    #[must_use]
    pub fn retry_failures(mut self, retry: bool) -> Self {
        self.settings.retry_failures = retry;
        self
    }

    /// Refuses a request during a pause, with the time at which to come back, instead of letting it wait.
    #[must_use]
    pub fn never_wait(mut self) -> Self {
        self.settings.never_wait = true;
        self
    }

    /// The origin of requests whose URI is relative. Without it they are refused.
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.settings.origin = Some(origin);
        self
    }
}

impl<S, C: Clone> Layer<S> for RetryAfterLayer<C> {
    type Service = RetryAfter<S, C>;

    fn layer(&self, inner: S) -> Self::Service {
        RetryAfter::with_settings(inner, self.settings.clone(), self.bodies.clone())
    }
}
