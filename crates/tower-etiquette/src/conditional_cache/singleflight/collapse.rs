//! What each caller gets of a request that is for several of them (RFC 9111, 4).

use std::sync::Arc;

use etiquette_core::decide::cache_policy::{
    CacheStatus, Extent, Forward, RequestDirectives, RequestedRange, Selecting, StaleIfError,
    is_anonymous, is_for_anybody, requested_range,
};
use etiquette_core::store::{ResponseStore, Variant};
use http::Response;
use http::request::Parts;

use super::super::body::{ResponseBody, Tee};
use super::super::context::CacheContext;
use super::super::lookup::{Forwarding, Reply, respond};
use super::super::origin::{Fetch, Upstream};
use super::table::{Collapsing, Entry, FetchOutcome};
use crate::flight::Flight;
use crate::{BoxError, Facts};

impl<St: ResponseStore> CacheContext<St> {
    /// Makes the request, unless one that is under way satisfies it too. `None` when that did not satisfy it after all, and
    /// it is to be made `alone`, or when the store does not have the body of a variant any more, which is among the `lost`
    /// then.
    pub(crate) async fn collapse(
        &self,
        fetch: Fetch<St>,
        upstream: &mut impl Upstream,
        parts: &Parts,
        alone: bool,
        lost: &mut Vec<Selecting>,
    ) -> Result<Option<Response<ResponseBody>>, BoxError> {
        let collapsing = self.collapsing(parts, &fetch.forwarding, alone);
        let stale_if_error = fetch.forwarding.stale_if_error;
        let entry = self
            .flights()
            .enter(&self.partition.key, collapsing, |guard| {
                Flight::new(fetch.run(upstream.fork(), guard))
            });
        match entry {
            Entry::Leader(flight) => self.lead(flight.await?, parts, lost).await,
            Entry::Follower(flight) => self.follow(flight.await?, parts, stale_if_error).await,
            Entry::Reader(tee) => Ok(self.read_along(&tee, parts).await),
        }
    }

    /// How the request goes with others for its URL.
    ///
    /// People share what they ask for anonymously, and only what nobody's session knows: a validator stays there.
    fn collapsing(&self, parts: &Parts, to: &Forwarding, alone: bool) -> Collapsing {
        let shares =
            !self.partition.is_personal() || (to.stored.is_none() && is_anonymous(&parts.headers));
        let whole = requested_range(&parts.headers) == RequestedRange::Whole;
        if !shares || !whole || to.reason == Forward::Request {
            Collapsing::Never
        } else if alone {
            Collapsing::Lead
        } else {
            Collapsing::Join
        }
    }

    /// The response for the caller whose request it was.
    async fn lead(
        &self,
        outcome: FetchOutcome,
        parts: &Parts,
        lost: &mut Vec<Selecting>,
    ) -> Result<Option<Response<ResponseBody>>, BoxError> {
        let (variant, status, facts) = match outcome {
            FetchOutcome::Stored {
                variant,
                status,
                facts,
            } => (variant, status, facts),
            FetchOutcome::Received { response, .. } => return Ok(response.take()),
            FetchOutcome::Failed(error) => return Err(error.take()),
        };
        let now = self.now();
        let reply = Reply::of(&variant, parts, &now).unwrap_or(match variant.head.extent() {
            // Validated in the caller's name.
            Extent::HeadOnly => Reply::NotModified,
            _ => Reply::Full,
        });
        let Some(body) = self.body(&variant, &reply).await else {
            lost.push(variant.head.selecting().clone());
            return Ok(None);
        };
        let mut response = respond(&variant, &reply, body, status, &now);
        response.extensions_mut().insert(Facts {
            cache_status: Some(status),
            ..*facts
        });
        Ok(Some(response))
    }

    /// The response for another caller, if what came satisfies its request too.
    async fn follow(
        &self,
        outcome: FetchOutcome,
        parts: &Parts,
        stale_if_error: StaleIfError,
    ) -> Result<Option<Response<ResponseBody>>, BoxError> {
        match outcome {
            FetchOutcome::Stored {
                variant, status, ..
            } => Ok(self.share(&variant, status, parts, stale_if_error).await),
            FetchOutcome::Received { tee: Some(tee), .. } => Ok(self.read_along(&tee, parts).await),
            FetchOutcome::Received { tee: None, .. } => Ok(None),
            FetchOutcome::Failed(error) => Err(error.copy()),
        }
    }

    async fn share(
        &self,
        variant: &Variant,
        mut status: CacheStatus,
        parts: &Parts,
        stale_if_error: StaleIfError,
    ) -> Option<Response<ResponseBody>> {
        let now = self.now();
        let satisfies = match &mut status {
            CacheStatus::StaleOnError { status, .. } => match status {
                Some(status) => stale_if_error.covers(*status),
                None => stale_if_error.unreachable,
            },
            CacheStatus::Validated { collapsed, .. } => {
                *collapsed = true;
                let request = RequestDirectives::of(&parts.headers);
                self.policy().shareable(&request, &variant.head, &now)
            }
            _ => false,
        };
        if !satisfies || !variant.head.selecting().matches(&parts.headers) {
            return None;
        }
        let reply = Reply::of(variant, parts, &now)?;
        let body = self.body(variant, &reply).await?;
        Some(respond(variant, &reply, body, status, &now))
    }

    /// Reads the body that another caller's request brought, if it satisfies this request too.
    async fn read_along(&self, tee: &Arc<Tee>, parts: &Parts) -> Option<Response<ResponseBody>> {
        let head = tee.head();
        let request = RequestDirectives::of(&parts.headers);
        let personal = self.partition.is_personal();
        let satisfies = head.extent() == Extent::Whole
            && (!personal || is_for_anybody(head.headers()))
            && head.selecting().matches(&parts.headers)
            && self.policy().shareable(&request, head, &self.now());
        if !satisfies {
            return None;
        }
        let reader = tee.join().await?;
        let now = self.now();
        let status = CacheStatus::Forwarded {
            forward: Forward::UriMiss,
            stored: !personal,
            collapsed: true,
        };
        let variant = Variant {
            head: Arc::clone(head),
            body: None,
            length: 0,
        };
        let (reply, body) = match Reply::of(&variant, parts, &now) {
            Some(Reply::NotModified) => (Reply::NotModified, ResponseBody::empty()),
            _ => (Reply::Full, ResponseBody::tee(reader)),
        };
        Some(respond(&variant, &reply, body, status, &now))
    }
}
