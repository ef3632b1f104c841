use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::HeaderValue;

use crate::Origin;

/// The answer's type is not one that was asked for. Its body has not been read beyond what was looked at to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeRefused {
    /// The origin that was asked for, if the request names one.
    pub origin: Option<Origin>,
    /// Who refused.
    pub why: TypeRefusal,
    /// The Accept value that was sent.
    pub accept: HeaderValue,
    /// The Content-Type that came.
    pub content_type: Option<HeaderValue>,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// Who refused an answer for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TypeRefusal {
    /// The site: it has nothing of what was asked for (406, RFC 9110, 15.5.7).
    NotAcceptable,
    /// The client: the site sent something else.
    UnwantedType,
}

impl TypeRefusal {
    /// The stable name of the cause.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotAcceptable => "not_acceptable",
            Self::UnwantedType => "unwanted_type",
        }
    }
}

impl TypeRefused {
    /// A refusal because of `why`, where `accept` was sent and `content_type` came.
    #[must_use]
    pub fn new(
        origin: Option<Origin>,
        why: TypeRefusal,
        accept: HeaderValue,
        content_type: Option<HeaderValue>,
        contact: Option<Arc<str>>,
    ) -> Self {
        Self {
            origin,
            why,
            accept,
            content_type,
            contact,
        }
    }
}

impl fmt::Display for TypeRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accept = String::from_utf8_lossy(self.accept.as_bytes());
        match (self.why, &self.content_type) {
            (TypeRefusal::NotAcceptable, _) => {
                write!(
                    f,
                    "the site has no representation of a type in Accept: {accept}"
                )
            }
            (TypeRefusal::UnwantedType, Some(came)) => {
                let came = String::from_utf8_lossy(came.as_bytes());
                write!(
                    f,
                    "the response is {came}, which is not in Accept: {accept}"
                )
            }
            (TypeRefusal::UnwantedType, None) => {
                write!(
                    f,
                    "the response is of a type that is not in Accept: {accept}"
                )
            }
        }
    }
}

impl Error for TypeRefused {}
