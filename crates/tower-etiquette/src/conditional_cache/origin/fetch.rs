//! A GET to the origin, and what its response is about: what is stored, or something new (RFC 9111, 4.3.3).

use std::sync::Arc;

use bytes::Bytes;
use etiquette_core::Refusal;
use etiquette_core::decide::cache_policy::{
    CacheStatus, Extent, Forward, Selecting, make_conditional, make_conditional_on_any,
};
use etiquette_core::store::{ResponseStore, Variant};
use http::header::{HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::request::Parts;
use http::{Response, StatusCode};

use super::super::context::CacheContext;
use super::super::delivery::SharedError;
use super::super::lookup::Forwarding;
use super::super::singleflight::{FetchOutcome, FlightGuard};
use super::upstream::Upstream;
use crate::{BoxError, Facts};

/// A GET that is forwarded to the origin.
pub(crate) struct Fetch<St> {
    pub(super) context: Arc<CacheContext<St>>,
    /// The caller's request.
    pub(super) parts: Parts,
    pub(crate) forwarding: Forwarding,
    /// The stored responses that a new one replaces.
    pub(super) replaced: Vec<Selecting>,
    /// A stored part of what is requested.
    pub(super) part: Option<Variant>,
    /// The stored responses that other requests for the URL selected.
    pub(super) others: Vec<Variant>,
}

/// What the forwarded request is conditional on.
pub(super) enum Condition {
    None,
    /// The stored response (RFC 9111, 4.3.1).
    Validate(Variant),
    /// Any of the stored responses that other requests selected (RFC 9111, 4.1).
    Select,
    /// It is for the bytes that a stored part lacks (RFC 9111, 3.3).
    Complete(Variant, Bytes),
}

impl<St: ResponseStore> Fetch<St> {
    pub(crate) fn new(
        context: Arc<CacheContext<St>>,
        parts: Parts,
        forwarding: Forwarding,
        variants: &[Variant],
    ) -> Self {
        let selected = |variant: &&Variant| variant.head.selecting().matches(&parts.headers);
        let replaced = variants.iter().filter(selected);
        let replaced = replaced.map(|variant| variant.head.selecting().clone());
        // In a session: a validator that another request brought would tell the site that the two belong together.
        let personal = context.partition.is_personal();
        let max = context.cache.settings.max_body as u64;
        let held = variants
            .iter()
            .filter(|variant| !personal && variant.length <= max);
        let mut parts_of_it = held
            .clone()
            .filter(|variant| matches!(variant.head.extent(), Extent::Part { .. }));
        let others = held.filter(|variant| {
            // What one user was given is not told to the site beside another one's name.
            forwarding.reason == Forward::VaryMiss
                && variant.head.extent() == Extent::Whole
                && variant.head.status().is_success()
                && !variant.head.selecting().holds_credentials()
        });
        Self {
            replaced: replaced.collect(),
            part: parts_of_it.find(selected).cloned(),
            others: others.cloned().collect(),
            context,
            parts,
            forwarding,
        }
    }

    /// Asks the origin, once or, when its response is of no use, a second time without any condition.
    ///
    /// # Cancel safety
    /// Dropping it drops the request; the store is as it was, or has the whole of a change.
    pub(crate) async fn run(self, mut upstream: impl Upstream, guard: FlightGuard) -> FetchOutcome {
        let mut parts = self.parts.clone();
        let condition = self.add_condition(&mut parts.headers).await;
        let fetched = match upstream.send(parts).await {
            Ok(fetched) => fetched,
            Err(error) => return self.failed(error),
        };
        let status = fetched.response.status();
        if self.forwarding.stale_if_error.covers(status)
            && let Some(variant) = &self.forwarding.stored
        {
            return self.serve_stale(variant, Some(status), facts(&fetched.response));
        }
        let received = match (condition, status) {
            (Condition::Validate(variant), StatusCode::NOT_MODIFIED) => {
                match self.freshen(&variant, fetched).await {
                    Ok(outcome) => return outcome,
                    Err(received) => received,
                }
            }
            (Condition::Select, StatusCode::NOT_MODIFIED) => {
                match self.select_validated(fetched, &guard).await {
                    Some(outcome) => return outcome,
                    None => None,
                }
            }
            (Condition::Complete(part, bytes), StatusCode::PARTIAL_CONTENT) => {
                self.complete(&part, &bytes, fetched)
            }
            (Condition::Complete(..), StatusCode::RANGE_NOT_SATISFIABLE) => {
                drop(fetched);
                None
            }
            _ => Some(fetched),
        };
        match received {
            Some(fetched) => self.store(fetched, guard).await,
            None => self.run_unconditionally(upstream, guard).await,
        }
    }

    /// Makes the request conditional on what is stored.
    async fn add_condition(&self, request: &mut HeaderMap) -> Condition {
        if let Some(stored) = &self.forwarding.stored {
            return match make_conditional(request, stored.head.headers()) {
                true => Condition::Validate(stored.clone()),
                false => Condition::None,
            };
        }
        if let Some((part, bytes)) = self.request_missing_range(request).await {
            return Condition::Complete(part, bytes);
        }
        match make_conditional_on_any(request, self.others.iter().map(|o| o.head.headers())) {
            true => Condition::Select,
            false => Condition::None,
        }
    }

    /// Asks once more, without any condition.
    async fn run_unconditionally(
        mut self,
        mut upstream: impl Upstream,
        guard: FlightGuard,
    ) -> FetchOutcome {
        self.forwarding.stored = None;
        let mut parts = self.parts.clone();
        for condition in [IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_RANGE, RANGE] {
            parts.headers.remove(condition);
        }
        match upstream.send(parts).await {
            Ok(fetched) => self.store(fetched, guard).await,
            Err(error) => self.failed(error),
        }
    }

    /// There is no response.
    fn failed(&self, error: BoxError) -> FetchOutcome {
        match &self.forwarding.stored {
            // A refusal of our own layers does not mean that the origin is unreachable: its caller is to know the reason.
            Some(variant)
                if self.forwarding.stale_if_error.unreachable
                    && Refusal::find(&*error).is_none() =>
            {
                self.serve_stale(variant, None, Box::default())
            }
            _ => FetchOutcome::Failed(SharedError::new(error)),
        }
    }

    /// Serves the stored response although it is stale (RFC 9111, 4.2.4; RFC 5861, 4).
    fn serve_stale(
        &self,
        variant: &Variant,
        status: Option<StatusCode>,
        facts: Box<Facts>,
    ) -> FetchOutcome {
        let ttl = self.forwarding.ttl;
        FetchOutcome::Stored {
            variant: variant.clone(),
            status: CacheStatus::StaleOnError { status, ttl },
            facts,
        }
    }
}

pub(super) fn facts<B>(response: &Response<B>) -> Box<Facts> {
    Box::new(Facts::of(response).cloned().unwrap_or_default())
}
