//! How a store fails, and the future that may.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The future of a store whose type is not known.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreFailed>> + Send + 'a>>;

/// A store did not do what it was asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreFailed {
    /// What was being done, such as `"read a body"`.
    pub doing: &'static str,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

impl StoreFailed {
    /// A failure while `doing` something, because of `cause`.
    #[must_use]
    pub fn new(doing: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            doing,
            cause: Some(cause.into().into()),
        }
    }
}

impl PartialEq for StoreFailed {
    fn eq(&self, other: &Self) -> bool {
        self.doing == other.doing
            && self.cause.as_ref().map(ToString::to_string)
                == other.cause.as_ref().map(ToString::to_string)
    }
}

impl fmt::Display for StoreFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store could not {}", self.doing)
    }
}

impl Error for StoreFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause
            .as_deref()
            .map(|cause| cause as &(dyn Error + 'static))
    }
}
