//! What a journal knows from an earlier process.

use std::sync::Arc;

use etiquette_core::Now;
use etiquette_core::decide::host::{HostRecord, HostResponse, ResponseRecord, Signal};
use etiquette_core::store::journal::HostJournal;

use super::entry::Host;
use super::registry::Registry;
use super::store::Journal;

/// Gives the hosts a journal and restores what it knows; `false` when they have one already.
pub(super) fn keep_in(registry: &Registry, journal: Arc<dyn HostJournal>) -> bool {
    if registry.journal.get().is_some() {
        return false;
    }
    let records = journal.records();
    let mut is_new = false;
    let journal = registry.journal.get_or_init(|| {
        is_new = true;
        Journal::new(journal)
    });
    if is_new {
        let now = registry.clock.now();
        for (name, record) in records {
            match restore(registry, &name, record.as_ref(), now) {
                // What could not be read, or was written by a clock that has been set back, is written anew.
                Some(host) => drop(journal.keep(&host, now)),
                None => journal.forget(&name),
            }
        }
    }
    is_new
}

/// Restores one host; `None` when nothing of what was known matters any more.
fn restore(
    registry: &Registry,
    name: &str,
    record: Option<&HostRecord>,
    now: Now,
) -> Option<Arc<Host>> {
    if record.is_some_and(|record| record.over_at() <= now.wall) {
        return None;
    }
    let host = registry.table.insert(name, now.monotonic);
    match record {
        Some(record) => host.restore(record, now).then_some(host),
        None => {
            let mut answer = HostResponse::failure();
            answer.signal = Signal::Throttled;
            let jitter = registry.jitter.next();
            let received = ResponseRecord::new(now.monotonic, answer, true, jitter).untimed();
            let changes = host.record(now.monotonic, &received, false);
            changes.emit(registry.scope, &host.name, &registry.clock);
            Some(host)
        }
    }
}
