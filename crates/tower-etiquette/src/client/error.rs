//! The client's errors.

use std::error::Error as StdError;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::{BoxError, Refusal};

/// Why a request of the ready-made client has no response.
///
/// `Display` is one level and `source()` the next. `Debug` tells the whole story, so that a `main` which returns it
/// ends with an explanation.
pub struct Error(BoxError);

impl Error {
    pub(super) fn new(error: BoxError) -> Self {
        Self(error)
    }

    /// The refusal of a layer, if that is what it was.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        Refusal::find(self.0.as_ref())
    }

    /// The error as it came through the layers.
    #[must_use]
    pub fn into_inner(self) -> BoxError {
        self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no response to the request")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refusal) = self.refusal() {
            return write!(f, "{}", refusal.explain());
        }
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.0.as_ref())
    }
}

/// More redirects than the client follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyRedirects {
    pub(super) max: usize,
}

impl fmt::Display for TooManyRedirects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} redirects", self.max)
    }
}

impl StdError for TooManyRedirects {}

/// An attempt took longer than one of its timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimedOut {
    Head,
    Idle,
    Total,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "timed out before the response head",
            Self::Idle => "timed out within the response body",
            Self::Total => "timed out before the end of the response",
        })
    }
}

impl StdError for TimedOut {}

/// A connection could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum ConnectError {
    /// It took longer than the timeout.
    TimedOut,
    /// The host has addresses, but none that may be asked.
    NotPublic(IpAddr),
    /// The name has no address.
    NoAddress,
    /// The lookup of the name failed, a moment ago.
    LookupFailed(Arc<str>),
    /// The lookup of the name took longer than the timeout.
    LookupTimedOut,
}

impl ConnectError {
    pub(super) fn of_lookup(error: &BoxError) -> Self {
        let known = error.downcast_ref().cloned();
        known.unwrap_or_else(|| Self::LookupFailed(error.to_string().into()))
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("the connection timed out"),
            Self::NotPublic(address) => write!(f, "{address} is not a public address"),
            Self::NoAddress => f.write_str("the name has no address"),
            Self::LookupFailed(why) => write!(f, "name lookup failed: {why}"),
            Self::LookupTimedOut => f.write_str("the name lookup timed out"),
        }
    }
}

impl StdError for ConnectError {}

#[cfg(test)]
mod tests {
    use etiquette_core::InvalidOrigin;
    use etiquette_core::vocabulary::refusal::NoOrigin;

    use super::*;

    #[test]
    fn the_refusal_is_found_in_it_and_debug_tells_it() {
        let refusal = Refusal::from(NoOrigin::new(InvalidOrigin::Relative));
        let error = Error::new(refusal.clone().into());
        assert_eq!(Refusal::find(&error), Some(&refusal));
        assert!(format!("{error:?}").contains("no scheme"), "{error:?}");
        let other = Error::new(TooManyRedirects { max: 10 }.into());
        assert_eq!(format!("{other:?}"), "more than 10 redirects");
    }
}
