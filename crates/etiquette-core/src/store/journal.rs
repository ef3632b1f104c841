//! Where the pauses and backoff levels of hosts outlive the process.
//!
//! **Flow**: `Hosts` that are given a journal restore [`HostJournal::records`] before their first request, and call
//! [`HostJournal::keep`] with each response that changes what is to be remembered. The response is handed on when the future
//! that it returned is ready, so that nobody hears of a pause which a crash could undo.
//!
//! **Scope**: one group of origins at a time, named by host; never a URL. **Non-goals**: sharing a budget with processes
//! that run at the same time: that is a [`HostStore`](crate::store::host::HostStore).

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::decide::host::HostRecord;
use crate::store::StoreFailed;

/// Ready when a change has reached the disk, or could not.
pub type HostJournalFuture = Pin<Box<dyn Future<Output = Result<(), StoreFailed>> + Send>>;

/// A lasting store of the pauses and backoff levels of hosts.
pub trait HostJournal: fmt::Debug + Send + Sync + 'static {
    /// All records, by the name of the group of origins. `None` stands for a record that is there and cannot be read: its
    /// host is then taken for one that has asked for a pause without saying how long.
    ///
    /// Called once for each `Hosts`, and answered from memory or with a short read.
    fn records(&self) -> Vec<(String, Option<HostRecord>)>;

    /// Keeps a record in place of the one before, or removes it. Calls for one host take effect in their order.
    ///
    /// # Cancel safety
    /// The write is begun by the call and not by the first poll: dropping the future changes nothing.
    fn keep(&self, host: &str, record: Option<HostRecord>) -> HostJournalFuture;
}
