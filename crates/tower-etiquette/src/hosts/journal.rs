//! Pauses and backoff levels that outlive the process.
//!
//! What an answer changes holds in memory at once. The answer itself is handed on when the change is in the journal, or
//! when the journal could not take it: a request never fails for that, and the pause holds for as long as the process.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use etiquette_core::Now;
use etiquette_core::decide::host::{HostMark, HostResponse, ResponseRecord, Signal};
use etiquette_core::store::journal::{HostJournal, Kept};
use tokio::time::timeout;

use super::Hosts;
use super::host::Host;
use crate::events;

/// How long an answer waits for the journal. What takes longer counts as not written, and goes on by itself.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Journal {
    sink: Arc<dyn HostJournal>,
    /// Changes of one host are handed over in the order in which they were made.
    order: Mutex<()>,
}

/// A change that is on its way into the journal, whether anybody waits for it or not.
pub(crate) struct Keeping {
    host: Arc<Host>,
    mark: Option<HostMark>,
    // Locked by nobody: it makes the whole `Sync`.
    kept: Mutex<Kept>,
}

impl Journal {
    pub(super) fn new(sink: Arc<dyn HostJournal>) -> Self {
        Self {
            sink,
            order: Mutex::new(()),
        }
    }

    /// Hands over what is to be known of `host`, if that is not in the journal yet.
    pub(super) fn keep(&self, host: &Arc<Host>, now: Now) -> Option<Keeping> {
        if host.is_written(now.monotonic) {
            return None;
        }
        let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let (mark, record) = {
            let mut core = host.core();
            (core.state.mark(now.monotonic), core.state.to_record(now))
        };
        Some(Keeping {
            host: Arc::clone(host),
            mark,
            kept: Mutex::new(self.sink.keep(&host.name, record)),
        })
    }
}

impl Keeping {
    /// Ready when the change is in the journal, or will not be.
    ///
    /// # Cancel safety
    /// Dropped, the change goes on its way, and the next answer of the host hands it over once more.
    pub(crate) async fn done(self) {
        let kept = self
            .kept
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        match timeout(LONGEST_WAIT, kept).await {
            Ok(Ok(())) => self.host.written(self.mark),
            // What is not written is handed over with the next answer.
            _ => events::store_failed("journal", "keep a host's pause"),
        }
    }
}

impl fmt::Debug for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping")
            .field("host", &self.host.name)
            .finish_non_exhaustive()
    }
}

impl Hosts {
    /// Keeps pauses and backoff levels in `journal` from now on, and takes over those that it has; `false` when these hosts
    /// have a journal already, which then stays.
    ///
    /// Do it before the first request. The names in the journal are those of the groups of origins: a journal that was
    /// kept under another grouping is of no use.
    ///
    /// The next process never asks sooner than this one would have: by the wall clock, which is all that a restart leaves.
    /// A clock that was set back adds to a pause, up to its length when it was written; one that was set forward counts
    /// as time.
    pub fn keep_in(&self, journal: Arc<dyn HostJournal>) -> bool {
        if self.0.journal.get().is_some() {
            return false;
        }
        let records = journal.records();
        let mut own = false;
        let journal = self.0.journal.get_or_init(|| {
            own = true;
            Journal::new(journal)
        });
        if !own {
            return false;
        }
        let now = self.0.clock.now();
        for (name, record) in records {
            if record
                .as_ref()
                .is_some_and(|record| record.over_at() <= now.wall)
            {
                drop(journal.sink.keep(&name, None));
                continue;
            }
            let host = self.host_named(&name, now.monotonic);
            match &record {
                Some(record) => {
                    if !host.recall(record, now) {
                        // What it told was forgiven or over meanwhile.
                        drop(journal.sink.keep(&name, None));
                        continue;
                    }
                }
                None => {
                    let mut answer = HostResponse::failure();
                    answer.signal = Signal::Throttled;
                    let received = ResponseRecord::new(now.monotonic, answer, true, self.jitter());
                    let changes = host.answered(now.monotonic, &received.untimed(), false);
                    self.tell(&host, changes);
                }
            }
            // What could not be read, or was written by a clock that has been set back, is written anew.
            drop(journal.keep(&host, now));
        }
        true
    }
}
