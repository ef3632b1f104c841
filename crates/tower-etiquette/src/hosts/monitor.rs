//! Nobody waits behind a request that is no longer polled.
//!
//! The head of a queue polls again when its time comes. If its caller does not poll it any more, because it went on to
//! something else, it would hold up everybody behind it. So a queue in which more than one waits has a monitor: a head that
//! was not polled when it should have been is woken once more, and then suspended. It keeps its position, and is the head
//! again as soon as it is polled.
//!
//! One task for a queue with two waiting or more, none for a request, and its one timer. It ends with the queue. Where its
//! runtime ends first, those who wait are woken, and the first of them that is polled starts another one.

use std::future::poll_fn;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use tokio::runtime::Handle;

use super::target::Target;
use super::timer::Timer;

/// A queue that has become short without a wake-up is noticed after so long.
const CHECK_AGAIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Monitor {
    target: Target,
    timer: Timer,
    over: bool,
}

/// Monitors a queue, which counts as monitored already, until nobody waits behind its head.
pub(super) fn spawn(target: Target) {
    let mut monitor = Monitor {
        target,
        timer: Timer::default(),
        over: false,
    };
    // Without a runtime there are no timers either, and the monitor ends here.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move { poll_fn(|cx| monitor.poll(cx)).await });
    }
}

impl Monitor {
    fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            let now = self.target.monotonic();
            let check = self.target.with_queue(|locked| {
                let queue = &mut locked.queue;
                queue.check_head(now, cx.waker(), locked.wakers)
            });
            let Some(until) = check else {
                self.over = true;
                return Poll::Ready(());
            };
            let after = until.saturating_duration_since(now).min(CHECK_AGAIN);
            if self.timer.poll(after, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if !self.over {
            self.target
                .with_queue(|locked| locked.queue.monitor_stopped(locked.wakers));
        }
    }
}
