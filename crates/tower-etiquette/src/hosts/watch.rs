//! Nobody waits behind a request that has ceased to be polled.
//!
//! The first of a line looks for itself when its time comes. If its caller does not poll it any more, because it went on to
//! something else, it would hold up everybody behind it. So a line in which more than one waits has a watch: a first that has
//! not looked when it should have is called once more, and then steps aside. It keeps its position, and is the first again as
//! soon as it is polled.
//!
//! One task for a line with two waiting or more, none for a request, and its one timer. It ends with the line. Where its
//! runtime ends first, those who wait are woken, and the first of them that is polled begins another one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep};

use super::Hosts;
use super::host::{Host, Tap};

/// A line that has become short without a word is found out after so long.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Watches a line until nobody waits behind its first.
#[derive(Debug)]
struct Watch {
    hosts: Hosts,
    host: Arc<Host>,
    tap: Option<Tap>,
    timer: Option<Pin<Box<Sleep>>>,
    over: bool,
}

impl Hosts {
    /// Watches the line of `host`, or of its API, which is marked as watched already.
    pub(super) fn watch(&self, host: &Arc<Host>, tap: Option<&Tap>) {
        let mut watch = Watch {
            hosts: self.clone(),
            host: Arc::clone(host),
            tap: tap.cloned(),
            timer: None,
            over: false,
        };
        // Without a runtime there are no timers either, and the watch ends here.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { poll_fn(|task| watch.poll(task)).await });
        }
    }
}

impl Watch {
    fn poll(&mut self, task: &mut Task<'_>) -> Poll<()> {
        loop {
            let now = self.hosts.clock().monotonic();
            let api = self.tap.as_ref().map(|tap| tap.ask.number);
            let Some(until) = self.host.watch(now, api, task.waker()) else {
                self.over = true;
                return Poll::Ready(());
            };
            let span = until.saturating_duration_since(now).min(LOOK_AGAIN);
            let timer = match &mut self.timer {
                Some(timer) => {
                    timer.as_mut().reset(tokio::time::Instant::now() + span);
                    timer
                }
                none => none.insert(Box::pin(sleep(span))),
            };
            if timer.as_mut().poll(task).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.over {
            let api = self.tap.as_ref().map(|tap| tap.ask.number);
            self.host.unwatched(api);
        }
    }
}
