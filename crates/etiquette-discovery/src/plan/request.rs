//! A request of a discovery.

use http::Uri;

use super::want::Want;

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
