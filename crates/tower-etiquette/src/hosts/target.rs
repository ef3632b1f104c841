//! The budget that a request is held to: a host's own, or that of an API on it.

use std::sync::Arc;
use std::time::Instant;

use etiquette_core::Now;
use etiquette_core::decide::host::ApiQuota;
use etiquette_core::vocabulary::purpose::Api;

use super::entry::Host;
use super::queue::{ApiSlot, BodyMeter, LockedQueue};
use super::registry::Registry;

#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) registry: Arc<Registry>,
    pub(super) host: Arc<Host>,
    /// The API that has a queue and a limit of its own.
    pub(super) api: Option<ApiSlot>,
}

impl Target {
    /// The host's own budget.
    pub(super) fn new(registry: &Arc<Registry>, host: Arc<Host>) -> Self {
        let registry = Arc::clone(registry);
        let api = None;
        Self {
            registry,
            host,
            api,
        }
    }

    pub(super) fn now(&self) -> Now {
        self.registry.clock.now()
    }

    pub(super) fn monotonic(&self) -> Instant {
        self.registry.clock.monotonic()
    }

    /// Takes the queue and the limit of an API; `false` when too many of this host are in use.
    pub(super) fn open_api(&mut self, api: &Api, now: Instant) -> bool {
        // Declarations of one prefix and key are one API.
        let number = self
            .registry
            .table
            .key_of((api.origin(), api.prefix(), api.key()));
        let quota = ApiQuota::new(number, api.limit());
        self.api = self.host.open_api(quota, now);
        self.api.is_some()
    }

    /// The number of the API.
    pub(super) fn api(&self) -> Option<u64> {
        self.api.as_ref().map(|slot| slot.quota.number)
    }

    /// As [`Host::with_queue`].
    pub(super) fn with_queue<T>(&self, change: impl FnOnce(&mut LockedQueue<'_>) -> T) -> T {
        self.host.with_queue(self.api(), change)
    }

    pub(super) fn bodies(&self) -> &BodyMeter {
        match &self.api {
            Some(slot) => &slot.bodies,
            None => &self.host.bodies,
        }
    }
}
