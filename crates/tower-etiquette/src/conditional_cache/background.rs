//! Validations that no caller waits for (RFC 5861, 3).

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// So many validations run at once; the next request for a stale response begins another.
const MOST: usize = 64;

/// The tasks of a cache. They end with its last clone.
#[derive(Default)]
pub(super) struct Background(Mutex<JoinSet<()>>);

impl Background {
    /// Whether a task could be started now: there is a runtime, and there is room.
    pub(super) fn has_room(&self) -> bool {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.len() < MOST && Handle::try_current().is_ok()
    }

    pub(super) fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            self.tasks().spawn_on(task, &runtime);
        }
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
