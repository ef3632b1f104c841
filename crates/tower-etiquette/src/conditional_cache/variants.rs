//! What a 304 says about the stored variants of a URL: which one it is about, and under which head that one goes on.

use std::sync::Arc;

use etiquette_core::decide::cache_policy::{
    CachePolicy, CacheStatus, ResponseTimes, Selecting, StoredResponse, names_other_tags,
    selected_by,
};
use etiquette_core::store::{ResponseStore, Variant};
use http::header::HeaderMap;

use super::fetch::Fetch;
use super::flights::{Landed, Ticket};
use crate::Facts;

impl<St: ResponseStore> Fetch<St> {
    /// The stored variant that a 304 selects for this request; it is kept for requests like this one too.
    pub(super) async fn chosen(
        &self,
        answer: &HeaderMap,
        facts: Box<Facts>,
        exchange: &ResponseTimes,
        ticket: &Ticket,
    ) -> Option<Landed> {
        let (policy, parts) = (&self.shared.policy, &self.parts);
        let heads = self.hints.others.iter().map(|other| other.head.headers());
        let other = &self.hints.others[selected_by(answer, heads)?];
        let body = self.scope.body(&self.key, other).await?;
        let selecting = merged_selecting(policy, &parts.headers, &other.head, answer);
        let news = other
            .head
            .freshen(answer, selecting, exchange, policy.shared, false);
        let head = news?;
        let (method, uri, status) = (&parts.method, &parts.uri, head.status());
        let storing = policy.may_store(method, uri, &parts.headers, status, head.headers());
        if storing.is_some() && !ticket.is_outdated() {
            let (head, body) = (head.clone(), body.clone());
            self.scope.put(&self.key, head, body, &self.replaced).await;
        }
        Some(Landed::Stored {
            variant: Variant {
                head: Arc::new(head),
                length: body.len() as u64,
                body: Some(body),
            },
            status: CacheStatus::Validated {
                forward: self.forward,
                collapsed: false,
            },
            facts,
        })
    }

    /// Takes a 304 as news about the stored response; `None` when it is about another one.
    pub(super) fn news(
        &self,
        old: &StoredResponse,
        answer: &HeaderMap,
        exchange: &ResponseTimes,
    ) -> Option<StoredResponse> {
        let policy = &self.shared.policy;
        let request = &self.parts.headers;
        let selecting = merged_selecting(policy, request, old, answer);
        let others = names_other_tags(request, old.headers());
        old.freshen(answer, selecting, exchange, policy.shared, others)
    }

    /// The stored response is right, under its new head.
    pub(super) async fn validated(
        &self,
        variant: &Variant,
        head: StoredResponse,
        facts: Box<Facts>,
    ) -> Landed {
        let old = variant.head.selecting();
        let says = head.directives();
        // The answer is right whether the store takes note of it or not.
        if says.no_store && !says.must_understand {
            self.scope.remove(&self.key, old).await;
        } else {
            self.scope.update(&self.key, old, head.clone()).await;
        }
        Landed::Stored {
            variant: Variant {
                head: Arc::new(head),
                ..variant.clone()
            },
            status: CacheStatus::Validated {
                forward: self.forward,
                collapsed: false,
            },
            facts,
        }
    }
}

/// The selecting fields of a response after a 304, which may bring another Vary.
fn merged_selecting(
    policy: &CachePolicy,
    request: &HeaderMap,
    old: &StoredResponse,
    answer: &HeaderMap,
) -> Selecting {
    let vary = if answer.contains_key(http::header::VARY) {
        answer
    } else {
        old.headers()
    };
    policy
        .selecting(request, vary)
        .unwrap_or_else(|| old.selecting().clone())
}
