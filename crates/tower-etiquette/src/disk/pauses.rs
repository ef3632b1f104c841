//! What is known of hosts that are paused or slowed down, in the same folder.
//!
//! All of it is in memory too. What has changed is written by the journal.

use std::collections::{BTreeSet, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use etiquette_core::decide::host::HostRecord;
use etiquette_core::store::StoreFailed;
use redb::{ReadableTable, TableDefinition, WriteTransaction};
use tokio::sync::oneshot;

use super::checksum::unseal;
use crate::BoxError;
use crate::lock::lock;

pub(super) const PAUSES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("pauses 1");

/// So many hosts are remembered. For a further one the host whose record is over first is given up.
pub(super) const MAX_HOSTS: usize = 100_000;

pub(super) const DOING: &str = "keep a host's pause";

/// What the table holds, and what it is about to hold.
#[derive(Default)]
pub(super) struct Pauses(Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    /// `None`: there is a record that cannot be read.
    pub(super) records: Changes,
    by_end: BTreeSet<(SystemTime, Arc<str>)>,
    /// `None`: the host is to be removed.
    pub(super) unwritten: Changes,
    pub(super) waiting: Vec<Waiting>,
    /// A worker is there to write what is unwritten.
    pub(super) writing: bool,
}

/// Hosts and their records.
pub(super) type Changes = HashMap<Arc<str>, Option<HostRecord>>;

pub(super) type Waiting = oneshot::Sender<Result<(), StoreFailed>>;

impl Pauses {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// How many hosts are remembered.
    pub(super) fn len(&self) -> usize {
        self.lock().records.len()
    }

    /// Reads the table, or makes it.
    pub(super) fn load(&self, write: &WriteTransaction) -> Result<(), BoxError> {
        let table = write.open_table(PAUSES)?;
        let mut state = self.lock();
        for row in table.iter()? {
            let (host, value) = row?;
            let record = unseal(value.value()).and_then(HostRecord::decode);
            state.set(host.value().into(), Some(record));
        }
        Ok(())
    }

    /// What the next commit has to write, and who waits for it.
    pub(super) fn take(&self) -> (Changes, Vec<Waiting>) {
        let mut state = self.lock();
        (
            mem::take(&mut state.unwritten),
            mem::take(&mut state.waiting),
        )
    }

    /// Whether the worker may go: nobody waits for more. What could not be written is tried again with the next change.
    pub(super) fn may_end(&self, failed: Option<Changes>) -> bool {
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
    pub(super) fn set(&mut self, host: Arc<str>, record: Option<Option<HostRecord>>) {
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
    pub(super) fn make_room(&mut self, at: SystemTime) -> Option<StoreFailed> {
        if self.records.len() <= MAX_HOSTS {
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
        for number in 0..MAX_HOSTS - 1 {
            state.set(number.to_string().into(), Some(Some(record.clone())));
        }
        state.set("short".into(), Some(Some(paused(now, 60))));
        assert!(state.make_room(now.wall).is_none());
        state.set("new".into(), Some(Some(paused(now, 600))));
        let told = state.make_room(now.wall).expect("a pause is lost");
        assert_eq!(told.doing, DOING);
        assert_eq!(state.records.len(), MAX_HOSTS);
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
