//! A HEAD to the origin, and what its response says about the stored response to a GET (RFC 9111, 4.3.5).

use etiquette_core::decide::cache_policy::{CacheStatus, Extent, Forward, ResponseTimes};
use etiquette_core::store::{ResponseStore, Variant};
use http::header::{ETAG, HeaderMap};
use http::request::Parts;
use http::{Response, StatusCode, response};

use super::super::body::ResponseBody;
use super::super::context::CacheContext;
use super::super::lookup::mark;
use super::upstream::{Fetched, Upstream};
use crate::BoxError;

/// Forwards a HEAD, and freshens or invalidates the stored response by its response.
pub(crate) async fn forward_head<St: ResponseStore>(
    context: &CacheContext<St>,
    mut upstream: impl Upstream,
    parts: Parts,
    reason: Forward,
    variants: &[Variant],
) -> Result<Response<ResponseBody>, BoxError> {
    let request = parts.headers.clone();
    let Fetched { response, times } = upstream.send(parts).await?;
    let (head, body) = response.into_parts();
    let mut variants = variants.iter();
    if let Some(variant) = variants.find(|variant| variant.head.selecting().matches(&request)) {
        freshen_by_head(context, &request, &head, &times, variant).await;
    }
    let response = Response::from_parts(head, ResponseBody::upstream(body));
    Ok(mark(response, CacheStatus::forwarded(reason, false)))
}

async fn freshen_by_head<St: ResponseStore>(
    context: &CacheContext<St>,
    request: &HeaderMap,
    response: &response::Parts,
    times: &ResponseTimes,
    variant: &Variant,
) {
    let (stored, policy) = (&variant.head, context.policy());
    let (status, new) = (response.status, &response.headers);
    let incomplete_of_same = matches!(stored.extent(), Extent::Part { .. })
        && status == StatusCode::OK
        && new.contains_key(ETAG)
        && new.get(ETAG) == stored.headers().get(ETAG);
    let invalidates = status.is_success() || matches!(status.as_u16(), 404 | 410);
    let freshened = match policy.selecting(request, new) {
        // Its length is that of the whole, which says nothing about a part.
        _ if incomplete_of_same => return,
        _ if status != stored.status() && !invalidates => return,
        Some(selecting) if status == stored.status() => {
            stored.freshen_by_head(new, selecting, times, policy.shared)
        }
        _ => None,
    };
    match freshened {
        Some(head) => context.partition.update(stored.selecting(), head).await,
        None => context.partition.remove(stored.selecting()).await,
    }
}
