//! Stored parts, and how they become wholes: what a part lacks is asked for, and what comes is put where it belongs.

use bytes::Bytes;
use etiquette_core::decide::cache_policy::{
    ContentRange, ResponseTimes, StoredResponse, combine, complete, request_missing_range,
};
use etiquette_core::store::{ResponseStore, Variant};
use http::Response;
use http::header::{AGE, HeaderMap};

use super::around::Around;
use super::fetch::Fetch;
use super::keep::Kept;

impl<St: ResponseStore> Fetch<St> {
    /// Asks for what a stored part lacks, if it is at hand. Gives the part and its bytes.
    pub(super) async fn request_missing_range(
        &self,
        request: &mut HeaderMap,
    ) -> Option<(Variant, Bytes)> {
        let part = self.hints.part.as_ref().filter(|_| self.stored.is_none())?;
        let mut asked = request.clone();
        if !request_missing_range(&mut asked, &part.head, part.length) {
            return None;
        }
        let bytes = self.scope.body(&self.key, part).await?;
        (bytes.len() as u64 == part.length).then(|| {
            *request = asked;
            (part.clone(), bytes)
        })
    }

    /// The whole, of a stored part and the 206 that brings the rest; `None` where the two do not fit.
    pub(super) fn completed<B>(
        &self,
        stored: &Variant,
        bytes: &Bytes,
        response: Response<B>,
        exchange: &ResponseTimes,
    ) -> Option<Response<Around<B>>> {
        let new = StoredResponse::new(
            response.status(),
            response.version(),
            response.headers(),
            stored.head.selecting().clone(),
            ContentRange::of(response.headers())?.extent(),
            exchange,
            false,
        );
        let (joined, promised) = complete(&stored.head, stored.length, &new)?;
        let place = |position| usize::try_from(position).ok().filter(|&p| p <= bytes.len());
        let before = bytes.slice(..place(joined.before)?);
        let after = bytes.slice(place(joined.after)?..);
        let mut headers = joined.head.headers().clone();
        if let Some(age) = response.headers().get(AGE) {
            headers.insert(AGE, age.clone());
        }
        let (mut parts, body) = response.into_parts();
        (parts.status, parts.headers) = (joined.head.status(), headers);
        let body = Around::new(before, body, promised, after);
        Some(Response::from_parts(parts, body))
    }
}

impl<St: ResponseStore> Kept<St> {
    /// A part together with what is stored of the same version by now, if the two touch.
    pub(super) async fn joined(&self, body: &Bytes) -> Option<(StoredResponse, Bytes)> {
        let stored = self.scope.kept(&self.key).await;
        let held = stored.iter().find(|variant| {
            let selecting = variant.head.selecting();
            selecting == self.head.selecting() || self.replaced.contains(selecting)
        })?;
        let joined = combine(&held.head, held.length, &self.head, body.len() as u64)?;
        let length = joined.before + body.len() as u64 + (held.length - joined.after);
        if length > self.max as u64 {
            return None;
        }
        let bytes = self.scope.body(&self.key, held).await?;
        let place = |position| usize::try_from(position).ok().filter(|&p| p <= bytes.len());
        let (before, after) = (place(joined.before)?, place(joined.after)?);
        if bytes.len() as u64 != held.length {
            return None;
        }
        let all = [&bytes[..before], body, &bytes[after..]].concat();
        Some((joined.head, all.into()))
    }
}
