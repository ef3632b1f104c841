use std::error::Error;
use std::fmt;
use std::sync::Arc;

use super::combine::StatementSource;
use super::wish::Use;
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
    pub source: StatementSource,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

impl UseRefused {
    /// A refusal because `source` disallows `what`.
    #[must_use]
    pub fn new(
        origin: Option<Origin>,
        what: Use,
        source: StatementSource,
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
            StatementSource::ContentUsageHeader => "the content-usage header",
            StatementSource::ContentUsageRobots => "content-usage in robots.txt",
            StatementSource::ContentSignalHeader => "the content-signal header",
            StatementSource::ContentSignalRobots => "content-signal in robots.txt",
            StatementSource::Directives => "a robots directive of the page",
            StatementSource::Tdm => "a reservation of text and data mining",
        };
        write!(f, "{source} disallows the use {}", self.what)
    }
}

impl Error for UseRefused {}
