//! A request of a discovery, and its response.

use http::{HeaderMap, StatusCode, Uri, header};

use super::want::Want;
use crate::source::essence;

/// A request that the plan asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedRequest {
    /// The address; the method is GET.
    pub uri: Uri,
    /// What it is for.
    pub kind: RequestKind,
    /// The value of `Accept`.
    pub accept: &'static str,
    /// How many bytes of the body are of use. The caller reads so much and drops the rest unread.
    pub max_bytes: usize,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestKind {
    /// The site's robots.txt.
    RobotsTxt,
    /// The page that discovery starts from.
    Start,
    /// A guess at a well-known address.
    Probe(Want),
}

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
