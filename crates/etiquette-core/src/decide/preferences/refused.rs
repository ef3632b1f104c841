use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::{Source, Use};
use crate::Origin;

/// The site does not want its answer to be used as the client declared. The body has not been read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UseRefused {
    /// The origin that was asked for, if the request names one.
    pub origin: Option<Origin>,
    /// The declared use.
    pub what: Use,
    /// Who says so.
    pub source: Source,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

impl UseRefused {
    /// A refusal because `source` disallows `what`.
    #[must_use]
    pub fn new(
        origin: Option<Origin>,
        what: Use,
        source: Source,
        contact: Option<Arc<str>>,
    ) -> Self {
        Self {
            origin,
            what,
            source,
            contact,
        }
    }
}

impl fmt::Display for UseRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::ContentUsageHeader => "the content-usage header",
            Source::ContentUsageRobots => "content-usage in robots.txt",
            Source::ContentSignalHeader => "the content-signal header",
            Source::ContentSignalRobots => "content-signal in robots.txt",
            Source::Directives => "a robots directive of the page",
            Source::Tdm => "a reservation of text and data mining",
        };
        write!(f, "{source} disallows the use {}", self.what)
    }
}

impl Error for UseRefused {}
