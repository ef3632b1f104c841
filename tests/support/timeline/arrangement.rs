//! How the layers of a timeline are put together, and over what.

use std::sync::Arc;

use etiquette_core::store::host::HostStore;

/// How the layers are put together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "tests make them")]
pub struct Arrangement {
    /// Outermost first: `retry_after`, `budget`.
    pub layers: &'static [&'static str],
    /// Whether the layers share one `Hosts`.
    pub shared: bool,
    /// The least and the largest share that may be added to a pause.
    pub jitter: (f64, f64),
}

/// Where processes share their hosts.
pub trait Nodes {
    /// The store as the process sees it.
    fn store(&self, node: u64) -> Arc<dyn HostStore>;
    /// The process ends without giving anything back.
    fn kill(&self, node: u64);
    /// Nobody can reach the store any more.
    fn down(&self);
}
