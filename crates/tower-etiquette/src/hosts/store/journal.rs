//! Pauses and backoff levels that outlive the process.
//!
//! What a response changes holds in memory at once. The response itself is handed on when the change is in the journal, or
//! when the journal could not take it: a request never fails for that, and the pause holds for as long as the process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etiquette_core::Now;
use etiquette_core::decide::host::HostMark;
use etiquette_core::store::journal::{HostJournal, HostJournalFuture};
use tokio::time::timeout;

use crate::events;
use crate::hosts::entry::Host;

/// How long a response waits for the journal. What takes longer counts as not written, and goes on by itself.
const MAX_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Journal {
    journal: Arc<dyn HostJournal>,
    /// Changes of one host are handed over in the order in which they were made.
    order: Mutex<()>,
}

/// A change that is on its way into the journal, whether anybody waits for it or not.
pub(crate) struct JournalWrite {
    host: Arc<Host>,
    mark: Option<HostMark>,
    // Locked by nobody: it makes the whole `Sync`.
    written: Mutex<HostJournalFuture>,
}

impl Journal {
    pub(crate) fn new(journal: Arc<dyn HostJournal>) -> Self {
        Self {
            journal,
            order: Mutex::new(()),
        }
    }

    /// Hands over what is to be known of `host`, if that is not in the journal yet.
    pub(crate) fn keep(&self, host: &Arc<Host>, now: Now) -> Option<JournalWrite> {
        {
            let mut inner = host.lock();
            if inner.budget.state.mark(now.monotonic).as_ref() == inner.written.as_deref() {
                return None;
            }
        }
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let (mark, record) = {
            let state = &mut host.lock().budget.state;
            (state.mark(now.monotonic), state.to_record(now))
        };
        Some(JournalWrite {
            host: Arc::clone(host),
            mark,
            written: Mutex::new(self.journal.keep(&host.name, record)),
        })
    }

    /// Removes what is known of a host.
    pub(crate) fn forget(&self, name: &str) {
        drop(self.journal.keep(name, None));
    }
}

impl JournalWrite {
    /// Ready when the change is in the journal, or will not be.
    ///
    /// # Cancel safety
    /// Dropped, the change goes on its way, and the next response of the host hands it over once more.
    pub(crate) async fn done(self) {
        let written = self.written.into_inner();
        match timeout(MAX_WAIT, written.unwrap_or_else(PoisonError::into_inner)).await {
            Ok(Ok(())) => self.host.lock().written = self.mark.map(Box::new),
            // What is not written is handed over with the next response.
            _ => events::store_failed("journal", "keep a host's pause"),
        }
    }
}

impl fmt::Debug for JournalWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalWrite")
            .field("host", &self.host.name)
            .finish_non_exhaustive()
    }
}
