//! What a 304 says about the stored responses for a URL (RFC 9111, 4.3.3 and 4.3.4).

use std::sync::Arc;

use etiquette_core::decide::cache_policy::{
    CacheStatus, Forward, StoredResponse, names_other_tags, names_tag_of, selected_by,
};
use etiquette_core::store::{ResponseStore, Variant};
use http::Method;
use http::header::VARY;
use http::request::Parts;
use http_body_util::BodyExt;

use super::super::background::Background;
use super::super::context::CacheContext;
use super::super::lookup::Forwarding;
use super::super::singleflight::{Collapsing, Entry, FetchOutcome, FlightGuard};
use super::fetch::{Fetch, facts};
use super::upstream::{Fetched, Upstream};
use crate::Facts;
use crate::flight::Flight;

impl<St: ResponseStore> Fetch<St> {
    /// Freshens the stored response that the request was conditional on (RFC 9111, 4.3.4). When the 304 is about another
    /// representation, the stored one is removed, and the 304 comes back if it satisfies the caller's own condition.
    pub(super) async fn freshen(
        &self,
        variant: &Variant,
        fetched: Fetched,
    ) -> Result<FetchOutcome, Option<Fetched>> {
        let (stored, request) = (&variant.head, &self.parts.headers);
        let others = names_other_tags(request, stored.headers());
        let Some(head) = self.freshened(stored, &fetched, others) else {
            self.remove(variant).await;
            let satisfies = names_tag_of(request, fetched.response.headers());
            return Err(satisfies.then_some(fetched));
        };
        let facts = facts(&fetched.response);
        drop(fetched);
        let says = head.directives();
        // The response is right whether the store takes note of it or not.
        if says.no_store && !says.must_understand {
            self.remove(variant).await;
        } else {
            let partition = &self.context.partition;
            partition.update(stored.selecting(), head.clone()).await;
        }
        let variant = Variant {
            head: Arc::new(head),
            ..variant.clone()
        };
        Ok(self.validated(variant, facts))
    }

    /// The stored response that a 304 selects for this request (RFC 9111, 4.1); it is stored for requests like this one
    /// too.
    pub(super) async fn select_validated(
        &self,
        fetched: Fetched,
        guard: &FlightGuard,
    ) -> Option<FetchOutcome> {
        let stored = self.others.iter().map(|other| other.head.headers());
        let other = &self.others[selected_by(fetched.response.headers(), stored)?];
        let facts = facts(&fetched.response);
        let head = self.freshened(&other.head, &fetched, false);
        drop(fetched);
        let partition = &self.context.partition;
        let body = partition.body(other).await?;
        let head = head?;
        let storable = self.storable(head.status(), head.headers()).is_some();
        if storable && !guard.is_invalidated() {
            let (head, body) = (head.clone(), body.clone());
            partition.put(head, body, &self.replaced).await;
        }
        Some(self.validated(Variant::new(head, body), facts))
    }

    /// The stored head, freshened by a 304.
    fn freshened(
        &self,
        stored: &StoredResponse,
        fetched: &Fetched,
        others_asked: bool,
    ) -> Option<StoredResponse> {
        let (policy, new) = (self.context.policy(), fetched.response.headers());
        // The 304 may bring another Vary.
        let vary = match new.contains_key(VARY) {
            true => new,
            false => stored.headers(),
        };
        let selecting = policy.selecting(&self.parts.headers, vary);
        let selecting = selecting.unwrap_or_else(|| stored.selecting().clone());
        stored.freshen(new, selecting, &fetched.times, policy.shared, others_asked)
    }

    fn validated(&self, variant: Variant, facts: Box<Facts>) -> FetchOutcome {
        FetchOutcome::Stored {
            variant,
            status: CacheStatus::Validated {
                forward: self.forwarding.reason,
                collapsed: false,
            },
            facts,
        }
    }

    /// Removes a stored response that is not valid any more.
    pub(super) async fn remove(&self, variant: &Variant) {
        let partition = &self.context.partition;
        partition.remove(variant.head.selecting()).await;
    }
}

/// Validates a stored response without letting the caller wait for it (RFC 5861, 3).
pub(crate) fn revalidate_in_background<St: ResponseStore>(
    context: &Arc<CacheContext<St>>,
    background: &Background,
    upstream: impl Upstream,
    mut parts: Parts,
    variant: Variant,
) {
    parts.method = Method::GET;
    let variants = [variant.clone()];
    let forwarding = Forwarding {
        stored: Some(variant),
        ..Forwarding::new(Forward::Stale)
    };
    let fetch = Fetch::new(Arc::clone(context), parts, forwarding, &variants);
    let (flights, key) = (context.flights(), &context.partition.key);
    let entry = flights.enter(key, Collapsing::Join, |guard| {
        Flight::new(fetch.run(upstream, guard))
    });
    let Entry::Leader(flight) = entry else {
        return;
    };
    background.start(async move {
        // What is stored is stored while it is read.
        if let Ok(FetchOutcome::Received {
            response,
            tee: Some(_),
        }) = flight.await
            && let Some(response) = response.take()
        {
            let mut body = response.into_body();
            while let Some(Ok(_)) = body.frame().await {}
        }
    });
}
