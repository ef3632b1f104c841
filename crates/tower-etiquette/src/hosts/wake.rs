//! Wakers that are collected under a lock and woken without it: a waker is the runtime's code.

use std::task::Waker;

/// Wakers in their order. The first two, which is nearly always all of them, need no allocation.
#[derive(Debug, Default)]
pub(super) struct WakeList {
    few: [Option<Waker>; 2],
    more: Vec<Waker>,
}

impl WakeList {
    pub(super) fn push(&mut self, waker: Option<Waker>) {
        let Some(waker) = waker else {
            return;
        };
        match self.few.iter_mut().find(|slot| slot.is_none()) {
            Some(free) => *free = Some(waker),
            None => self.more.push(waker),
        }
    }

    pub(super) fn wake_all(self) {
        for waker in self.few.into_iter().flatten().chain(self.more) {
            waker.wake();
        }
    }
}
