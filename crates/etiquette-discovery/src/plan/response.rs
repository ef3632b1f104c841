//! The response to a request of a discovery.

use http::{HeaderMap, StatusCode, Uri, header};

use crate::source::essence;

/// The response to a planned request.
#[derive(Clone, Copy, Debug)]
pub struct PlannedResponse<'a> {
    /// Its address after redirects.
    pub uri: &'a Uri,
    /// Its status.
    pub status: StatusCode,
    /// Its fields.
    pub headers: &'a HeaderMap,
    /// The beginning of its body, content codings removed.
    pub body: &'a [u8],
}

impl PlannedResponse<'_> {
    pub(super) fn content_type(&self) -> Option<&str> {
        self.headers.get(header::CONTENT_TYPE)?.to_str().ok()
    }

    pub(super) fn media_type(&self) -> String {
        self.content_type().map(essence).unwrap_or_default()
    }
}
