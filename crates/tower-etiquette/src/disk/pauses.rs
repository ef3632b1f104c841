//! What is known of hosts that are paused or slowed down, in the same folder.
//!
//! All of it is in memory too. Changes are written by one worker at a time, which takes along what has come while it was
//! syncing: many pauses at once cost few syncs.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use etiquette_core::decide::host::HostRecord;
use etiquette_core::store::StoreFailed;
use etiquette_core::store::journal::{HostJournal, Kept};
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::sealed;
use super::store::{DiskStore, Inner};
use crate::BoxError;

const PAUSES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("pauses 1");

/// So many hosts are remembered. For a further one the host whose record is over first is given up.
pub(super) const MOST_HOSTS: usize = 100_000;

/// A longer name is no host's.
const LONGEST_NAME: usize = 1_024;

const DOING: &str = "keep a host's pause";

/// What the table holds, and what it is about to hold.
#[derive(Default)]
pub(super) struct Pauses(Mutex<State>);

#[derive(Default)]
struct State {
    /// `None`: there is a record that cannot be read.
    records: HashMap<Arc<str>, Option<HostRecord>>,
    by_end: BTreeSet<(SystemTime, Arc<str>)>,
    unwritten: HashMap<Arc<str>, Option<HostRecord>>,
    waiting: Vec<Waiting>,
    /// A worker is there to write what is unwritten.
    writing: bool,
}

type Waiting = oneshot::Sender<Result<(), StoreFailed>>;

impl Pauses {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many hosts are remembered.
    pub(super) fn len(&self) -> usize {
        self.lock().records.len()
    }

    /// Reads the table, or makes it.
    pub(super) fn take_stock(&self, write: &WriteTransaction) -> Result<(), BoxError> {
        let table = write.open_table(PAUSES)?;
        let mut state = self.lock();
        for row in table.iter()? {
            let (host, value) = row?;
            let record = sealed::open(value.value()).and_then(HostRecord::decode);
            state.set(host.value().into(), Some(record));
        }
        Ok(())
    }

    /// What the next commit has to write, and who waits for it.
    fn take(&self) -> (HashMap<Arc<str>, Option<HostRecord>>, Vec<Waiting>) {
        let mut state = self.lock();
        (
            mem::take(&mut state.unwritten),
            mem::take(&mut state.waiting),
        )
    }

    /// Whether the worker may go: nobody waits for more. What could not be written is tried again with the next change.
    fn may_end(&self, failed: Option<HashMap<Arc<str>, Option<HostRecord>>>) -> bool {
        let mut state = self.lock();
        for (host, record) in failed.into_iter().flatten() {
            state.unwritten.entry(host).or_insert(record);
        }
        state.writing = !state.waiting.is_empty();
        !state.writing
    }
}

impl State {
    /// `None` removes; `Some(None)` stands for a record that cannot be read.
    fn set(&mut self, host: Arc<str>, record: Option<Option<HostRecord>>) {
        if let Some(Some(old)) = self.records.remove(&host) {
            self.by_end.remove(&(old.over_at(), Arc::clone(&host)));
        }
        let Some(record) = record else {
            return;
        };
        if let Some(record) = &record {
            self.by_end.insert((record.over_at(), Arc::clone(&host)));
        }
        self.records.insert(host, record);
    }

    /// Gives up the host that is owed for the shortest time, and says so if it is owed a pause still.
    fn make_room(&mut self, at: SystemTime) -> Option<StoreFailed> {
        if self.records.len() <= MOST_HOSTS {
            return None;
        }
        let (_, host) = self.by_end.pop_first()?;
        let record = self.records.remove(&host).flatten();
        self.unwritten.insert(host, None);
        record
            .is_some_and(|record| record.paused_until() > at)
            .then(|| StoreFailed::new(DOING, "there are too many"))
    }
}

impl Inner {
    fn write_pauses(
        &self,
        changes: &HashMap<Arc<str>, Option<HostRecord>>,
    ) -> Result<(), BoxError> {
        let write = self.database.begin_write()?;
        {
            let mut table = write.open_table(PAUSES)?;
            for (host, record) in changes {
                match record {
                    Some(record) => table.insert(&**host, &*sealed::seal(&record.encode()))?,
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
                // Whoever is told may open the folder anew at once.
                drop(self);
                return tell(waiting, &done);
            }
            tell(waiting, &done);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if !self.ended {
            let mut state = self.store.inner.pauses.lock();
            state.writing = false;
            // They hear that nobody writes any more.
            state.waiting.clear();
        }
    }
}

fn tell(waiting: Vec<Waiting>, done: &Result<(), StoreFailed>) {
    for one in waiting {
        // Who has gone need not be told.
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

    fn keep(&self, host: &str, record: Option<HostRecord>) -> Kept {
        if host.len() > LONGEST_NAME {
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
            self.hear(&given_up);
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use etiquette_core::Now;
    use etiquette_core::decide::host::{
        HostPolicy, HostResponse, HostState, ResponseRecord, Signal,
    };

    use super::*;

    fn paused(now: Now, seconds: u64) -> HostRecord {
        let mut answer = HostResponse::failure();
        answer.signal = Signal::Throttled;
        answer.wait = Some(Duration::from_secs(seconds));
        let mut state = HostState::new();
        let received = ResponseRecord::new(now.monotonic, answer, true, 0.0);
        state.record_response(&HostPolicy::new(), now.monotonic, &received);
        state.to_record(now).expect("it is paused")
    }

    #[test]
    fn for_one_too_many_the_host_that_is_owed_least_goes_and_is_told() {
        let now = Now {
            monotonic: Instant::now(),
            wall: SystemTime::UNIX_EPOCH + Duration::from_secs(1_784_550_000),
        };
        let mut state = State::default();
        let record = paused(now, 3_600);
        for number in 0..MOST_HOSTS - 1 {
            state.set(number.to_string().into(), Some(Some(record.clone())));
        }
        state.set("short".into(), Some(Some(paused(now, 60))));
        assert!(state.make_room(now.wall).is_none());
        state.set("new".into(), Some(Some(paused(now, 600))));
        let told = state.make_room(now.wall).expect("a pause is lost");
        assert_eq!(told.doing, DOING);
        assert_eq!(state.records.len(), MOST_HOSTS);
        assert!(!state.records.contains_key("short"));
        assert_eq!(state.unwritten.get("short"), Some(&None));
        assert_eq!(state.by_end.len(), state.records.len());
        // A pause that is over is given up without a word.
        state.set("newer".into(), Some(Some(record)));
        let later = now.wall + Duration::from_secs(601);
        assert!(state.make_room(later).is_none());
        assert!(!state.records.contains_key("new"));
    }
}
