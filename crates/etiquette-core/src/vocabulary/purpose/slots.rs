//! What layers keep for a session: it goes with the session, and not with its grants.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;

/// One value of each type.
#[derive(Default)]
pub(super) struct Slots(Mutex<Extensions>);

impl Slots {
    /// The `T` that is kept; the one that `make` makes when there is none yet. `make` runs under the lock.
    pub(super) fn slot<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = slots.get::<Arc<T>>() {
            return Arc::clone(kept);
        }
        let made = Arc::new(make());
        slots.insert(Arc::clone(&made));
        made
    }
}
