//! Why a crawl could not be made.

use std::fmt;
use std::io;

use tower_etiquette::BoxError;
use tower_etiquette::identity::InvalidIdentity;

use super::{BadLink, BadTarget};

/// Why a crawl could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A target may not be crawled like this.
    Target(BadTarget),
    /// The name is not one that sites could use.
    Identity(InvalidIdentity),
    /// The page behind the name does not name it, and `--require-published` is given.
    Unpublished(BadLink),
    /// The client could not be built.
    Client(BoxError),
    /// A file or socket could not be used.
    Io(io::Error),
}

impl Error {
    /// The exit status of the program: 3 where the page behind the name does not name it, else 2.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Unpublished(_) => 3,
            _ => 2,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target(cause) => cause.fmt(f),
            Self::Unpublished(cause) => cause.fmt(f),
            Self::Identity(_) => f.write_str("the crawler's name is not valid"),
            Self::Client(_) => f.write_str("the client cannot be built"),
            Self::Io(_) => f.write_str("a file or socket cannot be used"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // Their words are shown as this error's own.
            Self::Target(_) | Self::Unpublished(_) => None,
            Self::Identity(cause) => Some(cause),
            Self::Client(cause) => Some(&**cause),
            Self::Io(cause) => Some(cause),
        }
    }
}

impl From<BadTarget> for Error {
    fn from(cause: BadTarget) -> Self {
        Self::Target(cause)
    }
}

impl From<InvalidIdentity> for Error {
    fn from(cause: InvalidIdentity) -> Self {
        Self::Identity(cause)
    }
}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        Self::Io(cause)
    }
}
