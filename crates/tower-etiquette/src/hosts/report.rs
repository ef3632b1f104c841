//! What the hosts come to: one of them, the busiest, all together.

use std::time::Instant;

use etiquette_core::Now;
use etiquette_core::decide::host::HostSnapshot;

use super::entry::{Host, HostInner};
use super::table::Table;

/// What all hosts together come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostsTotals {
    /// The hosts that are remembered. Those who are owed nothing are forgotten when they are counted.
    pub hosts: usize,
    /// The hosts in a pause.
    pub paused: usize,
    /// The requests under way, up to the end of their body.
    pub in_flight: u64,
    /// The requests that wait.
    pub waiting: u64,
}

impl HostsTotals {
    pub(super) fn of(table: &Table, now: Instant) -> Self {
        let mut totals = Self {
            hosts: table.forget_idle(now),
            ..Self::default()
        };
        table.each(|host| {
            let inner = host.lock();
            let state = &inner.budget.state;
            totals.paused += usize::from(state.paused_until(now).is_some());
            totals.in_flight += u64::from(state.under_way());
            totals.waiting += inner.queues.waiting() as u64;
        });
        totals
    }
}

/// The `most` hosts with the most requests under way and waiting, the busiest first.
pub(super) fn busiest(table: &Table, most: usize, now: Now) -> Vec<HostSnapshot> {
    let mut busy = Vec::new();
    table.each(|host| {
        let load = {
            let inner = host.lock();
            inner.queues.waiting() + inner.budget.state.under_way() as usize
        };
        if load > 0 {
            busy.push((load, snapshot(host, now)));
        }
    });
    busy.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.name.cmp(&two.1.name)));
    busy.truncate(most);
    busy.into_iter().map(|(_, snapshot)| snapshot).collect()
}

/// Why a host is asked at its pace.
pub(super) fn snapshot(host: &Host, now: Now) -> HostSnapshot {
    let HostInner { budget, queues, .. } = &mut *host.lock();
    let name = Some(host.name.to_string());
    let waiting = queues.waiting();
    budget.state.snapshot(&host.policy, now, name, waiting)
}
