//! Why there is no answer.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use tower_etiquette::BoxError;

use crate::crawl;

/// Why there is no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    Read(String, io::Error),
    /// The site may not be asked like this.
    Site(crawl::Error),
    /// The site did not answer, or its answer broke off.
    Fetch(String, BoxError),
    /// The site answered with a status that says nothing about its rules. Crawlers stay away until that changes
    /// (RFC 9309, 2.3.1.4).
    Status(String, http::StatusCode),
    /// This is neither a path nor a URL with a robots.txt.
    NotAUrl(String),
    /// This page belongs to a site with another robots.txt.
    OtherSite(String),
    /// The answer cannot be written.
    Write(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(file, _) => write!(f, "{file} cannot be read"),
            Self::Site(cause) => cause.fmt(f),
            Self::Fetch(url, _) => write!(f, "{url} cannot be fetched"),
            Self::Status(url, status) => {
                write!(
                    f,
                    "{url} answered {status}: until that changes, nothing may be fetched"
                )
            }
            Self::NotAUrl(url) => write!(f, "{url} is neither a path nor an http or https URL"),
            Self::OtherSite(url) => write!(
                f,
                "{url} has another robots.txt: each scheme, host and port has its own"
            ),
            Self::Write(_) => f.write_str("the answer cannot be written"),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Read(_, cause) | Self::Write(cause) => Some(cause),
            // Its words are shown as this error's own.
            Self::Site(cause) => cause.source(),
            Self::Fetch(_, cause) => Some(&**cause),
            Self::Status(..) | Self::NotAUrl(_) | Self::OtherSite(_) => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Write(cause)
    }
}
