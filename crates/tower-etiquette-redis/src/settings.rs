//! What a builder sets.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) lease: Duration,
    pub(crate) timeout: Duration,
    pub(crate) hold: Duration,
    pub(crate) nodes: u32,
    pub(crate) keep: Duration,
    pub(crate) max_body: usize,
    pub(crate) robots_lease: Duration,
    /// The present in microseconds, in place of the server's unless 0.
    pub(crate) clock: Arc<AtomicI64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "etiquette".into(),
            lease: Duration::from_secs(10),
            timeout: Duration::from_millis(500),
            hold: Duration::from_secs(30),
            nodes: 2,
            keep: Duration::from_secs(7 * 24 * 3_600),
            max_body: 64 << 20,
            robots_lease: Duration::from_secs(60),
            clock: Arc::default(),
        }
    }
}
