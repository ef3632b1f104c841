//! The client's errors.

use std::error::Error as StdError;
use std::fmt;

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
        f.write_str("the request got no response")
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
pub(super) struct TooManyRedirects;

impl fmt::Display for TooManyRedirects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("more redirects than this client follows")
    }
}

impl StdError for TooManyRedirects {}

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
        let other = Error::new(TooManyRedirects.into());
        assert_eq!(
            format!("{other:?}"),
            "more redirects than this client follows"
        );
    }
}
