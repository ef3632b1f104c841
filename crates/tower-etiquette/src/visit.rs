//! The requests of one visit: a page, its redirects and its robots.txt.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::lock::lock;

/// What the requests on the way to one page have in common: robots.txt, redirects, the page.
///
/// Whoever follows redirects outside the stack attaches one visit to the first request and to each hop: a redirect's
/// Retry-After then delays its hop (RFC 9110, 10.2.3), and the hops of a page that a person asked for take one delay of
/// each host together.
#[derive(Clone, Debug, Default)]
pub struct Visit(Arc<Mutex<VisitState>>);

/// What a visit remembers from one request to the next.
#[derive(Debug, Default)]
pub(crate) struct VisitState {
    /// A redirect came with Retry-After: its target is not asked before this, wherever it leads (RFC 9110, 10.2.3).
    pub(crate) not_before: Option<Instant>,
    /// A person makes it: it takes one delay of each host, as long as no other request starts there in between.
    pub(crate) one_delay: bool,
    /// For each host that it touched the number of its last start there.
    starts: Vec<(u64, u64)>,
}

/// More hosts than a visit touches: robots.txt, page and hops, each perhaps on a host of its own.
const MAX_HOSTS: usize = 16;

impl VisitState {
    /// The number of the visit's last start at a host, where that gives it the right to start again.
    pub(crate) fn last_start(&self, host: u64) -> Option<u64> {
        if !self.one_delay {
            return None;
        }
        let found = self.starts.iter().find(|(key, _)| *key == host);
        found.map(|(_, number)| *number)
    }

    /// The visit has started a request at a host.
    pub(crate) fn started(&mut self, host: u64, number: u64) {
        self.starts.retain(|(key, _)| *key != host);
        if self.starts.len() == MAX_HOSTS {
            self.starts.remove(0);
        }
        self.starts.push((host, number));
    }
}

impl Visit {
    /// A visit without a request yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads or changes its state.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut VisitState) -> T) -> T {
        f(&mut lock(&self.0))
    }
}
