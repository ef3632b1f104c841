//! How many bytes of the heap a value holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

/// The system's allocator, with a counter that is off while time is measured.
pub(crate) struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static HELD: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    if ON.load(Relaxed) {
        let before = HELD.fetch_add(bytes, Relaxed);
        MOST.fetch_max(before + bytes, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The bytes that what `make` returns holds on the heap.
pub(crate) fn held<T>(make: impl FnOnce() -> T) -> f64 {
    HELD.store(0, Relaxed);
    ON.store(true, Relaxed);
    let value = make();
    ON.store(false, Relaxed);
    drop(value);
    HELD.load(Relaxed) as f64
}

/// The most bytes that `work` holds on the heap at one time, and what it returns.
pub(crate) fn most<T>(work: impl FnOnce() -> T) -> (f64, T) {
    HELD.store(0, Relaxed);
    MOST.store(0, Relaxed);
    ON.store(true, Relaxed);
    let value = work();
    ON.store(false, Relaxed);
    (MOST.load(Relaxed) as f64, value)
}
