//! Partial responses: what a stored part lacks is requested, and what comes is combined with it (RFC 9111, 3.3 and 3.4).

use std::ops::Range;

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    Combined, ContentRange, Selecting, StoredResponse, combine, complete, request_missing_range,
};
use etiquette_core::store::{ResponseStore, Variant};
use http::Response;
use http::header::{AGE, HeaderMap};
use http_body_util::combinators::UnsyncBoxBody;

use super::super::body::Splice;
use super::super::context::CacheContext;
use super::fetch::Fetch;
use super::upstream::Fetched;

impl<St: ResponseStore> Fetch<St> {
    /// Makes the request one for what a stored part lacks, if that part is at hand. Gives the part and its bytes.
    pub(super) async fn request_missing_range(
        &self,
        request: &mut HeaderMap,
    ) -> Option<(Variant, Bytes)> {
        let part = self.part.as_ref()?;
        let mut conditional = request.clone();
        if !request_missing_range(&mut conditional, &part.head, part.length) {
            return None;
        }
        let bytes = self.context.partition.body(part).await?;
        (bytes.len() as u64 == part.length).then(|| {
            *request = conditional;
            (part.clone(), bytes)
        })
    }

    /// The complete response, of a stored part and the 206 that brings what it lacks; `None` where the two do not fit.
    pub(super) fn complete(
        &self,
        part: &Variant,
        bytes: &Bytes,
        fetched: Fetched,
    ) -> Option<Fetched> {
        let response = fetched.response;
        let new = StoredResponse::new(
            response.status(),
            response.version(),
            response.headers(),
            part.head.selecting().clone(),
            ContentRange::of(response.headers())?.extent(),
            &fetched.times,
            false,
        );
        let (combined, promised) = complete(&part.head, part.length, &new)?;
        let (before, after) = around(&combined, bytes)?;
        let mut headers = combined.head.headers().clone();
        if let Some(age) = response.headers().get(AGE) {
            headers.insert(AGE, age.clone());
        }
        let (mut parts, body) = response.into_parts();
        (parts.status, parts.headers) = (combined.head.status(), headers);
        let body = Splice::new(bytes.slice(before), body, promised, bytes.slice(after));
        Some(Fetched {
            response: Response::from_parts(parts, UnsyncBoxBody::new(body)),
            times: fetched.times,
        })
    }
}

/// A part together with what is stored of the same version by now; the part alone if the two do not touch.
pub(super) async fn combined<St: ResponseStore>(
    context: &CacheContext<St>,
    replaced: &[Selecting],
    head: StoredResponse,
    body: Bytes,
) -> (StoredResponse, Bytes) {
    let with_stored = async {
        let variants = context.partition.stored().await;
        let stored = variants.iter().find(|variant| {
            let selecting = variant.head.selecting();
            selecting == head.selecting() || replaced.contains(selecting)
        })?;
        let combined = combine(&stored.head, stored.length, &head, body.len() as u64)?;
        let length = combined.before + body.len() as u64 + (stored.length - combined.after);
        if length > context.cache.settings.max_body as u64 {
            return None;
        }
        let bytes = context.partition.body(stored).await?;
        let (before, after) = around(&combined, &bytes)?;
        (bytes.len() as u64 == stored.length).then(|| {
            let all = [&bytes[before], &body, &bytes[after]].concat();
            (combined.head, all.into())
        })
    };
    match with_stored.await {
        Some(combined) => combined,
        None => (head, body),
    }
}

/// What of the stored bytes comes before the new ones, and what after them.
fn around(combined: &Combined, stored: &Bytes) -> Option<(Range<usize>, Range<usize>)> {
    let place = |at| usize::try_from(at).ok().filter(|&at| at <= stored.len());
    Some((
        0..place(combined.before)?,
        place(combined.after)?..stored.len(),
    ))
}
