//! Validations that nobody waits for (RFC 5861, 3).

use std::fmt;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// So many validations run at once; the next stale answer begins another.
const MOST: usize = 64;

/// The tasks of a cache. They end with its last clone.
#[derive(Default)]
pub(super) struct Background(Mutex<JoinSet<()>>);

impl Background {
    /// Whether a task could be started now: there is a runtime, and there is room.
    pub(super) fn has_room(&self) -> bool {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.len() < MOST && Handle::try_current().is_ok()
    }

    pub(super) fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.spawn_on(task, &runtime);
        }
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").finish_non_exhaustive()
    }
}
