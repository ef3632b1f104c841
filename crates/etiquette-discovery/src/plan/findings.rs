//! What a discovery found.

use std::fmt;

use http::{StatusCode, Uri};

use crate::source::Source;

/// Why a plan cannot begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidStart {
    /// The start has no `http` or `https` scheme or no host.
    NotAbsolute,
}

impl fmt::Display for InvalidStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the start is no absolute http or https uri")
    }
}

impl std::error::Error for InvalidStart {}

/// What became of robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RobotsAccess {
    /// It was not requested yet.
    Unknown,
    /// Its rules hold.
    Rules,
    /// There is none: nothing is forbidden (RFC 9309, 2.3.1.3).
    None,
    /// It could not be fetched: everything is forbidden for now (RFC 9309, 2.3.1.4).
    Unreachable,
    /// The client below reads and obeys it, and did not hand it on.
    LeftToClient,
}

/// What a discovery found, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The sources, most useful first, one of each address.
    pub sources: Vec<Source>,
    /// The requests that the plan made, in order. What a client below makes on its own, such as reading robots.txt or
    /// following redirects, is not among them.
    pub requests: Vec<Uri>,
    /// What became of robots.txt.
    pub robots: RobotsAccess,
    /// Whether robots.txt lets the crawler have the start page. Where it does not, the page was not requested.
    pub start_allowed: bool,
    /// The address of the start page after redirects, if there was a response.
    pub start_uri: Option<Uri>,
    /// The status of the start page, if there was a response.
    pub start_status: Option<StatusCode>,
}
