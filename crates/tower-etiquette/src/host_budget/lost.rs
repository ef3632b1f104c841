use std::error::Error;
use std::fmt;

/// A request or its body was cut off, because its place may be another process's by now: the store that they share could
/// not be told in time that it is still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaceLost {}

impl PlaceLost {
    pub(super) fn new() -> Self {
        Self {}
    }
}

impl fmt::Display for PlaceLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the place at the host was lost, because the shared store could not be reached")
    }
}

impl Error for PlaceLost {}
