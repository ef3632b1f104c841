//! A timer that is made when it is first needed.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

#[derive(Debug, Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Sets the timer to `after` from now and polls it.
    pub(super) fn poll(&mut self, after: Duration, cx: &mut TaskContext<'_>) -> Poll<()> {
        let sleep = match &mut self.0 {
            Some(sleep) => {
                sleep.as_mut().reset(Instant::now() + after);
                sleep
            }
            none => none.insert(Box::pin(sleep(after))),
        };
        sleep.as_mut().poll(cx)
    }

    /// Wakes nobody any more.
    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}
