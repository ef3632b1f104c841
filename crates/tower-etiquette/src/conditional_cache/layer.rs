//! [`ConditionalCacheLayer`]: the settings and the store.

use std::sync::Arc;
use std::time::Duration;

use etiquette_core::decide::cache_policy::{CachePolicy, Heuristic};
use etiquette_core::store::ResponseStore;

use super::config::{CacheConfig, Settings};
use super::singleflight::Singleflight;
use super::store::MemoryStore;
use crate::{Clock, TokioClock};

/// Serves stored responses where RFC 9111 allows it, and validates them where it does not.
///
/// See the [module](super). Clones, and all services made from one layer and its clones, share the store and the
/// requests under way.
#[derive(Debug)]
#[must_use]
pub struct ConditionalCacheLayer<St = MemoryStore> {
    pub(super) config: Arc<CacheConfig<St>>,
}

impl ConditionalCacheLayer {
    /// The largest body that is stored unless another limit is given: 4 MiB.
    pub const DEFAULT_MAX_BODY: usize = 4 << 20;

    /// A private cache in memory, with the defaults of the [module](super).
    pub fn new() -> Self {
        let settings = Settings {
            policy: CachePolicy::default(),
            clock: Arc::new(TokioClock),
            max_body: Self::DEFAULT_MAX_BODY,
            validators_only: false,
        };
        Self::of(settings, Arc::default())
    }

    /// At most so many bytes of heads and bodies in memory; what was not used for longest is evicted first. Default: 64 MiB.
    ///
    /// The layer begins with an empty store. For another store, see [`ConditionalCacheLayer::store`].
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.store(MemoryStore::new(bytes))
    }
}

impl Default for ConditionalCacheLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<St: ResponseStore> ConditionalCacheLayer<St> {
    fn of(settings: Settings, store: Arc<St>) -> Self {
        let config = CacheConfig::new(settings, store, Singleflight::default(), Arc::default());
        Self { config }
    }

    /// Stores responses in `store`.
    pub fn store<Other: ResponseStore>(self, store: Other) -> ConditionalCacheLayer<Other> {
        self.with_store(Arc::new(store))
    }

    /// Stores responses in a store that others hold too.
    pub fn with_store<Other: ResponseStore>(
        self,
        store: Arc<Other>,
    ) -> ConditionalCacheLayer<Other> {
        ConditionalCacheLayer::of(self.config.cache.settings.clone(), store)
    }

    /// The cache serves several users, as in a gateway (RFC 9111, 1.1): it obeys `private`, `s-maxage` and
    /// `proxy-revalidate`, and stores responses to requests with Authorization only where they allow it. Default: private.
    pub fn shared(self) -> Self {
        self.change(|settings| settings.policy.shared = true)
    }

    /// The largest body that is stored as a whole, in bytes. Larger ones pass through, and are stored on their way by a
    /// store that takes them in chunks ([`ResponseStore::write`]). Default: 4 MiB.
    ///
    /// As much is held in memory for a body under way, so that concurrent callers share it. A larger one is for each
    /// caller by itself, and no more of it is held than a chunk.
    pub fn max_body(self, bytes: usize) -> Self {
        self.change(|settings| settings.max_body = bytes)
    }

    /// Estimates a lifetime from Last-Modified for responses that state none (RFC 9111, 4.2.2). Default: they are validated
    /// each time.
    pub fn heuristic(self, heuristic: Heuristic) -> Self {
        self.change(|settings| settings.policy.heuristic = Some(heuristic))
    }

    /// The lifetime of responses that state none, may be stored, and have none estimated. Default: none.
    pub fn default_ttl(self, ttl: Duration) -> Self {
        self.change(|settings| settings.policy.default_ttl = Some(ttl))
    }

    /// "Not again within": a stored response younger than this is served whatever it says about its lifetime. A response with
    /// `no-store` is not stored all the same. Default: none.
    pub fn not_again_within(self, floor: Duration) -> Self {
        self.change(|settings| settings.policy.floor = Some(floor))
    }

    /// No response counts as fresh for longer than this. Default: no limit.
    pub fn at_most_for(self, ceiling: Duration) -> Self {
        self.change(|settings| settings.policy.ceiling = Some(ceiling))
    }

    /// How long after the end of its lifetime a stored response is served for an origin that does not respond at all, where
    /// the response does not forbid it. Default: a day. Zero: never.
    pub fn stale_if_unreachable(self, span: Duration) -> Self {
        self.change(|settings| settings.policy.stale_if_unreachable = span)
    }

    /// Stores the validators of responses and not their bodies, for callers with a database of their own: what they have
    /// had before comes as a 304, from the origin, or from the store while it is fresh. Default: off.
    ///
    /// A 304 says "you have it": [`Facts::cache_status`](crate::Facts::cache_status) tells whether the origin was asked
    /// ([`CacheStatus::Validated`](super::CacheStatus::Validated)), the response is fresh
    /// ([`CacheStatus::Hit`](super::CacheStatus::Hit)) or the origin did not respond
    /// ([`CacheStatus::StaleOnError`](super::CacheStatus::StaleOnError)). A request with a condition or a range of its
    /// own, and one with a [`UserGrant`](crate::UserGrant), is handled as without this setting.
    ///
    /// The validators are stored when a body of any size has come to its end, so that a caller must have kept the page by
    /// the time it has read its last byte. One that has lost it removes the URL from the [store](Self::get_store) before
    /// it asks again.
    pub fn validators_only(self) -> Self {
        self.change(|settings| settings.validators_only = true)
    }

    /// Reads the time from `clock`. Default: tokio's monotonic clock and the system's wall clock.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.change(|settings| settings.clock = clock)
    }

    /// The store, to look at it or to clear it.
    #[must_use]
    pub fn get_store(&self) -> &Arc<St> {
        &self.config.cache.store
    }

    fn change(self, change: impl FnOnce(&mut Settings)) -> Self {
        let CacheConfig { cache, background } = &*self.config;
        let mut settings = cache.settings.clone();
        change(&mut settings);
        let (store, flights) = (Arc::clone(&cache.store), cache.flights.clone());
        let config = CacheConfig::new(settings, store, flights, Arc::clone(background));
        Self { config }
    }
}

impl<St> Clone for ConditionalCacheLayer<St> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}
