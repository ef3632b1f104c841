use std::error::Error;
use std::fmt;

/// A request or its body was cut off, because its permit may be another process's by now: the store that they share could
/// not be told in time that it is still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseLost {}

impl LeaseLost {
    pub(super) fn new() -> Self {
        Self {}
    }
}

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the permit was lost: its lease could not be renewed in the shared store in time",
        )
    }
}

impl Error for LeaseLost {}
