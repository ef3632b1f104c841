//! What the layer, its services and their requests have in common.

use std::fmt;
use std::sync::Arc;

use etiquette_core::decide::cache_policy::CachePolicy;

use super::background::Background;
use super::singleflight::Singleflight;
use crate::Clock;

/// What a layer and its services share.
pub(super) struct CacheConfig<St> {
    pub(super) cache: Arc<Cache<St>>,
    /// Its tasks hold the cache and not this, so that they end with the last layer and service.
    pub(super) background: Arc<Background>,
}

/// What a request needs.
pub(super) struct Cache<St> {
    pub(super) settings: Settings,
    pub(super) store: Arc<St>,
    pub(super) flights: Singleflight,
}

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) policy: CachePolicy,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) max_body: usize,
    /// Heads are stored without their bodies.
    pub(super) validators_only: bool,
}

impl<St> CacheConfig<St> {
    pub(super) fn new(
        settings: Settings,
        store: Arc<St>,
        flights: Singleflight,
        background: Arc<Background>,
    ) -> Arc<Self> {
        let cache = Arc::new(Cache {
            settings,
            store,
            flights,
        });
        Arc::new(Self { cache, background })
    }
}

impl<St: fmt::Debug> fmt::Debug for CacheConfig<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheConfig")
            .field("policy", &self.cache.settings.policy)
            .field("store", &self.cache.store)
            .field("max_body", &self.cache.settings.max_body)
            .finish_non_exhaustive()
    }
}
