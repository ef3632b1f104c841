//! Requests that no stored response satisfies, and what their responses invalidate (RFC 9111, 4 and 4.4).

use std::sync::Arc;

use etiquette_core::decide::cache_policy::{Forward, invalidates};
use etiquette_core::store::{ResponseKey, ResponseStore};
use http::request::Parts;
use http::{Method, Response};

use super::super::body::ResponseBody;
use super::super::config::Cache;
use super::super::context::CacheContext;
use super::super::lookup::Forwarding;
use super::super::singleflight::{FetchOutcome, FlightGuard};
use super::super::store::remove_all;
use super::fetch::Fetch;
use super::upstream::Upstream;
use crate::BoxError;

/// Forwards a request, invalidates what its response invalidates, and stores the response to a POST that is what a GET of
/// the same URL would give (RFC 9110, 9.3.3).
pub(crate) async fn forward<St: ResponseStore>(
    cache: Arc<Cache<St>>,
    mut upstream: impl Upstream,
    parts: Parts,
) -> Result<Response<ResponseBody>, BoxError> {
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let post = post(&cache, &parts);
    let fetched = upstream.send(parts).await?;
    let (status, headers) = (fetched.response.status(), fetched.response.headers());
    // If the URL was changed by another request meanwhile, it is not known which came first at the origin.
    let stored = post.filter(|(fetch, guard)| {
        fetch.storable(status, headers).is_some() && !guard.is_invalidated()
    });
    for uri in invalidates(&method, &uri, status, headers) {
        if let Some(key) = ResponseKey::of(&uri) {
            cache.flights.invalidate(&key);
            remove_all(&*cache.store, &key).await;
        }
    }
    let Some((fetch, _)) = stored else {
        return Ok(fetched.response.map(ResponseBody::upstream));
    };
    let guard = fetch.context.flights().guard(&fetch.context.partition.key);
    let response = match fetch.store(fetched, guard).await {
        FetchOutcome::Received { response, .. } => response.take(),
        _ => None,
    };
    response.ok_or_else(|| "the response has gone to another caller".into())
}

/// A POST whose response may be stored, and whether the URL changes meanwhile.
fn post<St: ResponseStore>(
    cache: &Arc<Cache<St>>,
    parts: &Parts,
) -> Option<(Fetch<St>, FlightGuard)> {
    if parts.method != Method::POST {
        return None;
    }
    let context = Arc::new(CacheContext::new(
        cache,
        parts,
        ResponseKey::of(&parts.uri)?,
    ));
    if context.partition.is_personal() {
        return None;
    }
    let guard = context.flights().guard(&context.partition.key);
    let forwarding = Forwarding::new(Forward::Method);
    Some((Fetch::new(context, parts.clone(), forwarding, &[]), guard))
}
