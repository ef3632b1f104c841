//! [`ConditionalCacheLayer`]: the settings, the store and what is under way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use etiquette_core::decide::cache_policy::{CachePolicy, Heuristic};
use etiquette_core::store::ResponseStore;
use tower_layer::Layer;

use super::background::Background;
use super::flights::Flights;
use super::memory::MemoryStore;
use super::service::ConditionalCache;
use crate::{Clock, TokioClock};

/// Answers from stored responses where RFC 9111 allows it, and asks conditionally where it does not.
///
/// See the [module](super). Clones, and all services made from one layer and its clones, share the store and the
/// requests under way.
pub struct ConditionalCacheLayer<St = MemoryStore> {
    pub(super) shared: Arc<Shared<St>>,
    pub(super) background: Arc<Background>,
}

/// What clones have in common.
pub(super) struct Shared<St> {
    pub(super) policy: CachePolicy,
    pub(super) store: Arc<St>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) max_body: usize,
    /// Heads are kept without their bodies.
    pub(super) validators_only: bool,
    pub(super) flights: Arc<Flights>,
    /// Those for people, who share with each other and with no crawl.
    pub(super) visits: Arc<Flights>,
}

impl<St> Clone for Shared<St> {
    fn clone(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            max_body: self.max_body,
            validators_only: self.validators_only,
            flights: Arc::clone(&self.flights),
            visits: Arc::clone(&self.visits),
        }
    }
}

impl ConditionalCacheLayer {
    /// The largest body that is stored unless another limit is given: 4 MiB.
    pub const DEFAULT_MAX_BODY: usize = 4 << 20;

    /// A private cache in memory, with the defaults of the [module](super).
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                policy: CachePolicy::default(),
                store: Arc::default(),
                clock: Arc::new(TokioClock),
                max_body: Self::DEFAULT_MAX_BODY,
                validators_only: false,
                flights: Arc::default(),
                visits: Arc::default(),
            }),
            background: Arc::default(),
        }
    }

    /// At most so many bytes of heads and bodies in memory; what was unused for longest goes first. Default: 64 MiB.
    ///
    /// The layer begins with an empty store. For another store, see [`ConditionalCacheLayer::store`].
    #[must_use]
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
    /// Keeps responses in `store`.
    #[must_use]
    pub fn store<Other: ResponseStore>(self, store: Other) -> ConditionalCacheLayer<Other> {
        self.with_store(Arc::new(store))
    }

    /// Keeps responses in a store that others hold too.
    #[must_use]
    pub fn with_store<Other: ResponseStore>(
        self,
        store: Arc<Other>,
    ) -> ConditionalCacheLayer<Other> {
        let shared = &*self.shared;
        ConditionalCacheLayer {
            shared: Arc::new(Shared {
                policy: shared.policy.clone(),
                store,
                clock: Arc::clone(&shared.clock),
                max_body: shared.max_body,
                validators_only: shared.validators_only,
                flights: Arc::default(),
                visits: Arc::default(),
            }),
            background: Arc::default(),
        }
    }

    /// The cache serves several users, as in a gateway (RFC 9111, 1.1): it obeys `private`, `s-maxage` and
    /// `proxy-revalidate`, and keeps answers to requests with Authorization only where they allow it. Default: private.
    #[must_use]
    pub fn shared(self) -> Self {
        self.change(|shared| shared.policy.shared = true)
    }

    /// The largest body that is stored as a whole, in bytes. Larger ones pass through, and are stored on their way by a
    /// store that takes pieces ([`ResponseStore::write`]). Default: 4 MiB.
    ///
    /// As much is held in memory for a body under way, so that concurrent callers share it. A larger one is for each
    /// caller by itself, and no more of it is held than a piece.
    #[must_use]
    pub fn max_body(self, bytes: usize) -> Self {
        self.change(|shared| shared.max_body = bytes)
    }

    /// Guesses a lifetime from Last-Modified for responses that state none (RFC 9111, 4.2.2). Default: they are asked
    /// for each time, conditionally.
    #[must_use]
    pub fn heuristic(self, heuristic: Heuristic) -> Self {
        self.change(|shared| shared.policy.heuristic = Some(heuristic))
    }

    /// The lifetime of responses that state none, may be kept, and have none guessed. Default: none.
    #[must_use]
    pub fn default_ttl(self, ttl: Duration) -> Self {
        self.change(|shared| shared.policy.default_ttl = Some(ttl))
    }

    /// "Not again within": a stored response younger than this answers whatever it says about its life. A response with
    /// `no-store` is not stored all the same. Default: none.
    #[must_use]
    pub fn not_again_within(self, floor: Duration) -> Self {
        self.change(|shared| shared.policy.floor = Some(floor))
    }

    /// No response counts as fresh for longer than this. Default: no limit.
    #[must_use]
    pub fn at_most_for(self, ceiling: Duration) -> Self {
        self.change(|shared| shared.policy.ceiling = Some(ceiling))
    }

    /// How long after the end of its life a stored response stands in for an origin that does not answer at all, where
    /// the response does not forbid it. Default: a day. Zero: never.
    #[must_use]
    pub fn stale_if_unreachable(self, span: Duration) -> Self {
        self.change(|shared| shared.policy.stale_if_unreachable = span)
    }

    /// Keeps the validators of responses and not their bodies, for callers with a database of their own: what they have
    /// had before is answered with a 304, from the site, or from the store while it is fresh. Default: off.
    ///
    /// A 304 says "you have it": [`Facts::cache_status`](crate::Facts::cache_status) tells whether the site was asked
    /// ([`CacheStatus::Validated`](super::CacheStatus::Validated)), the response is fresh
    /// ([`CacheStatus::Hit`](super::CacheStatus::Hit)) or the site did not answer
    /// ([`CacheStatus::StaleOnError`](super::CacheStatus::StaleOnError)). A request with a condition or a range of its
    /// own, and one with a [`UserGrant`](crate::UserGrant), is answered as without this setting.
    ///
    /// The validators are stored when a body of any size has come to its end, so that a caller must have kept the page by
    /// the time it has read its last byte. One that has lost it removes the URL from the [store](Self::get_store) before
    /// it asks again.
    #[must_use]
    pub fn validators_only(self) -> Self {
        self.change(|shared| shared.validators_only = true)
    }

    /// Reads the time from `clock`. Default: tokio's monotonic clock and the system's wall clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.change(|shared| shared.clock = clock)
    }

    /// The store, to look at it or to clear it.
    #[must_use]
    pub fn get_store(&self) -> &Arc<St> {
        &self.shared.store
    }

    fn change(self, change: impl FnOnce(&mut Shared<St>)) -> Self {
        let mut shared = (*self.shared).clone();
        change(&mut shared);
        Self {
            shared: Arc::new(shared),
            background: self.background,
        }
    }
}

impl<S, St> Layer<S> for ConditionalCacheLayer<St> {
    type Service = ConditionalCache<S, St>;

    fn layer(&self, inner: S) -> Self::Service {
        ConditionalCache {
            inner,
            shared: Arc::clone(&self.shared),
            background: Arc::clone(&self.background),
        }
    }
}

impl<St> Clone for ConditionalCacheLayer<St> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            background: Arc::clone(&self.background),
        }
    }
}

impl<St: fmt::Debug> fmt::Debug for ConditionalCacheLayer<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConditionalCacheLayer")
            .field("policy", &self.shared.policy)
            .field("store", &self.shared.store)
            .field("max_body", &self.shared.max_body)
            .finish_non_exhaustive()
    }
}
