//! [`CacheContext`]: what one request needs of the cache.

use std::sync::Arc;

use etiquette_core::Now;
use etiquette_core::decide::cache_policy::{CachePolicy, RequestDirectives};
use etiquette_core::store::{ResponseKey, ResponseStore, Variant};
use http::Response;
use http::request::Parts;

use super::body::{ResponseBody, StoredChunks};
use super::config::Cache;
use super::lookup::{Plan, Reply, Selected, add_callers_validators, select};
use super::singleflight::FlightTable;
use super::store::Partition;

/// The cache, and the stored responses for the request's URL.
pub(super) struct CacheContext<St> {
    pub(super) cache: Arc<Cache<St>>,
    pub(super) partition: Partition<St>,
}

impl<St: ResponseStore> CacheContext<St> {
    pub(super) fn new(cache: &Arc<Cache<St>>, parts: &Parts, key: ResponseKey) -> Self {
        Self {
            cache: Arc::clone(cache),
            partition: Partition::of(parts, &cache.store, key),
        }
    }

    pub(super) fn policy(&self) -> &CachePolicy {
        &self.cache.settings.policy
    }

    pub(super) fn now(&self) -> Now {
        self.cache.settings.clock.now()
    }

    /// The requests under way that this one may collapse with.
    pub(super) fn flights(&self) -> &FlightTable {
        self.cache.flights.table(self.partition.is_personal())
    }

    /// Whether heads are stored without their bodies: what a person asked for has no other place than its session.
    pub(super) fn stores_heads_only(&self) -> bool {
        self.cache.settings.validators_only && !self.partition.is_personal()
    }

    /// What is stored for the request.
    pub(super) async fn lookup(&self, parts: &Parts, now: &Now) -> Vec<Variant> {
        let request = RequestDirectives::of(&parts.headers);
        self.partition.lookup(self.policy(), &request, now).await
    }

    /// What to do with the request, given what is stored for it.
    pub(super) fn select<'a>(
        &self,
        parts: &mut Parts,
        variants: &'a [Variant],
        now: &Now,
    ) -> Plan<'a> {
        if self.stores_heads_only() {
            add_callers_validators(parts, variants);
        }
        select(self.policy(), parts, variants, now)
    }

    /// The response of a selected variant; `None` when the store does not have its body any more.
    pub(super) async fn reuse(
        &self,
        selected: &Selected<'_>,
        now: &Now,
    ) -> Option<Response<ResponseBody>> {
        let body = self.body(selected.variant, &selected.reply).await?;
        Some(selected.respond(body, now))
    }

    /// The stored body, as far as the reply needs it; `None` when the store does not have it any more.
    pub(super) async fn body(&self, variant: &Variant, reply: &Reply) -> Option<ResponseBody> {
        let Some((from, length)) = reply.bytes(variant) else {
            return Some(ResponseBody::empty());
        };
        if variant.body.is_some() || variant.length <= self.cache.settings.max_body as u64 {
            let body = self.partition.body(variant).await?;
            return Some(reply.cut(variant, &body));
        }
        let reader = self.partition.read(variant, from).await?;
        let chunks = StoredChunks::open(reader, length).await?;
        Some(ResponseBody::chunks(chunks))
    }
}
