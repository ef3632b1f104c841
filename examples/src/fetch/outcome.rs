//! What a fetch came to: a page, or why there is none.

use std::error::Error as StdError;
use std::fmt;

use tower_etiquette::Refusal;
use tower_etiquette::client::{BodyError, Error};
use tower_etiquette::identity::InvalidIdentity;

use crate::cli::chain;

/// A page that came.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) status: http::StatusCode,
    pub(super) version: http::Version,
    pub(super) headers: http::HeaderMap,
    pub(super) facts: tower_etiquette::Facts,
    pub(super) body: bytes::Bytes,
}

/// Why no page came.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line does not hold together.
    Usage(String),
    /// The URL is none.
    Url(String),
    /// The identity is none.
    Identity(InvalidIdentity),
    /// The root certificates cannot be read.
    Roots(String),
    /// The request was refused or failed.
    Request(Error),
    /// The body did not come.
    Body(BodyError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error: &dyn StdError = match self {
            Self::Usage(text) | Self::Url(text) | Self::Roots(text) => return f.write_str(text),
            Self::Identity(error) => error,
            Self::Request(error) => match error.refusal() {
                Some(refusal) => {
                    write!(f, "{}", refusal.explain())?;
                    if let Refusal::Address(_) = refusal {
                        f.write_str("; --allow-private allows it")?;
                    }
                    return Ok(());
                }
                None => error,
            },
            Self::Body(error) => error,
        };
        f.write_str(&chain(error))
    }
}
