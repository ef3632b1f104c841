//! Responses of one kind in a row.

use super::signal::Signal;

/// What came in a row from one part of a host: its pages, or one of its APIs. An API that works says nothing about pages
/// that are refused, and pages nothing about a key that has expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs {
    /// Failures in a row, and pauses that ended with another failure.
    pub(super) failures: u32,
    pub(super) failed_pauses: u32,
    /// Responses of 401, 403 and 451 in a row, and the pauses made for them.
    pub(super) refusals: u32,
    pub(super) blocks: u32,
}

impl Runs {
    /// A response ends the runs that it does not continue.
    pub(super) fn end_with(&mut self, signal: Signal) {
        if signal != Signal::Refused {
            self.refusals = 0;
            self.blocks = 0;
        }
        if matches!(signal, Signal::Success | Signal::Neutral | Signal::Refused) {
            self.failures = 0;
            self.failed_pauses = 0;
        }
    }

    /// The longer of each.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            failures: self.failures.max(other.failures),
            failed_pauses: self.failed_pauses.max(other.failed_pauses),
            refusals: self.refusals.max(other.refusals),
            blocks: self.blocks.max(other.blocks),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
