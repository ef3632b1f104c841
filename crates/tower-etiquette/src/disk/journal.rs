//! The pauses of hosts, written to the folder.
//!
//! Changes are written by one worker at a time, which takes along what has come while it was syncing: many pauses at once
//! cost few syncs.

use std::mem;
use std::sync::Arc;

use etiquette_core::decide::host::HostRecord;
use etiquette_core::store::StoreFailed;
use etiquette_core::store::journal::{HostJournal, HostJournalFuture};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::checksum::seal;
use super::pauses::{Changes, DOING, PAUSES, Waiting};
use super::store::{DiskStore, Inner};
use crate::BoxError;

/// A longer name is no host's: RFC 1035, 2.3.4 allows 255 bytes.
const MAX_NAME: usize = 1_024;

impl Inner {
    fn write_pauses(&self, changes: &Changes) -> Result<(), BoxError> {
        let write = self.database.begin_write()?;
        {
            let mut table = write.open_table(PAUSES)?;
            for (host, record) in changes {
                match record {
                    Some(record) => table.insert(&**host, &*seal(&record.encode()))?,
                    None => table.remove(&**host)?,
                };
            }
        }
        write.commit()?;
        Ok(())
    }
}

/// The one that writes. Dropped without having run to its end, it lets the next one begin.
struct Worker {
    store: DiskStore,
    waiting: Vec<Waiting>,
    ended: bool,
}

impl Worker {
    fn run(mut self) {
        loop {
            let (changes, waiting) = self.store.inner.pauses.take();
            self.waiting = waiting;
            let done = self
                .store
                .inner
                .write_pauses(&changes)
                .map_err(|cause| self.store.report(DOING, cause));
            let failed = done.is_err().then_some(changes);
            self.ended = self.store.inner.pauses.may_end(failed);
            let waiting = mem::take(&mut self.waiting);
            if self.ended {
                // Whoever is notified may open the folder anew at once.
                drop(self);
                return notify(waiting, &done);
            }
            notify(waiting, &done);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.ended {
            let mut state = self.store.inner.pauses.lock();
            state.writing = false;
            // Dropping their senders ends their waiting with an error.
            state.waiting.clear();
        }
    }
}

fn notify(waiting: Vec<Waiting>, done: &Result<(), StoreFailed>) {
    for one in waiting {
        // Who has gone need not know.
        let _ = one.send(done.clone());
    }
}

impl HostJournal for DiskStore {
    fn records(&self) -> Vec<(String, Option<HostRecord>)> {
        let state = self.inner.pauses.lock();
        let record =
            |(host, record): (&Arc<str>, &Option<HostRecord>)| (host.to_string(), record.clone());
        state.records.iter().map(record).collect()
    }

    fn keep(&self, host: &str, record: Option<HostRecord>) -> HostJournalFuture {
        if host.len() > MAX_NAME {
            let failed = self.report(DOING, "its name is too long".into());
            return Box::pin(std::future::ready(Err(failed)));
        }
        let host: Arc<str> = host.into();
        let (wait, done) = oneshot::channel();
        let (begin, given_up) = {
            let mut state = self.inner.pauses.lock();
            let at = record.as_ref().map(HostRecord::paused_until);
            state.set(Arc::clone(&host), record.clone().map(Some));
            state.unwritten.insert(host, record);
            let given_up = at.and_then(|at| state.make_room(at));
            state.waiting.push(wait);
            (!mem::replace(&mut state.writing, true), given_up)
        };
        if let Some(given_up) = given_up {
            self.call_on_error(&given_up);
        }
        if begin {
            let worker = Worker {
                store: self.clone(),
                waiting: Vec::new(),
                ended: false,
            };
            match Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || worker.run())),
                Err(_) => worker.run(),
            }
        }
        let store = self.clone();
        Box::pin(async move {
            match done.await {
                Ok(done) => done,
                Err(lost) => Err(store.report(DOING, lost.into())),
            }
        })
    }
}
