//! Why a fetch of robots.txt had no outcome.

use std::fmt;
use std::net::IpAddr;

use http::StatusCode;

use super::policy::RobotsPolicy;

/// Why a fetch of robots.txt had no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FetchFailure {
    /// 408, 429 or a redirect without a target: a later request may have an outcome.
    Later(StatusCode),
    /// A status that says nothing about rules, such as 503.
    Status(StatusCode),
    /// No response: name resolution, connection, TLS, or timeout.
    NoResponse,
    /// The body ended before its announced length, or was interrupted.
    IncompleteBody,
    /// The body has a content coding that was not requested.
    ContentCoding,
    /// More redirects than [`RobotsPolicy::REDIRECTS`].
    TooManyRedirects,
    /// A redirect to what is no `http` or `https` URL.
    InvalidRedirect,
    /// A redirect to an address that is not public, where only public ones are connected to.
    NotPublic(IpAddr),
}

impl fmt::Display for FetchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Later(status) | Self::Status(status) => write!(f, "status {}", status.as_u16()),
            Self::NoResponse => f.write_str("no response"),
            Self::IncompleteBody => f.write_str("the response body ended early"),
            Self::ContentCoding => {
                f.write_str("the response has a content coding that was not requested")
            }
            Self::TooManyRedirects => write!(f, "more than {} redirects", RobotsPolicy::REDIRECTS),
            Self::InvalidRedirect => f.write_str("a redirect to what is no http or https URL"),
            Self::NotPublic(address) => {
                write!(f, "a redirect to {address}, which is not a public address")
            }
        }
    }
}
