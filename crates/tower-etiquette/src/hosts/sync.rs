//! The lock of a host: the standard one. In the models of [`model`](super::model) each taking of it is a point at which
//! another thread may go on, so that they run the code itself.

#[cfg(not(test))]
pub(super) use std::sync::{Mutex, MutexGuard};

#[cfg(test)]
pub(super) use modelled::{MODEL, Mutex, MutexGuard};

#[cfg(test)]
mod modelled {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};
    use std::sync::{LockResult, PoisonError};

    thread_local! {
        /// Locks that are made on this thread now belong to a model.
        pub(in super::super) static MODEL: Cell<bool> = const { Cell::new(false) };
    }

    #[derive(Debug)]
    pub(in super::super) struct Mutex<T> {
        value: std::sync::Mutex<T>,
        gate: Option<shuttle::sync::Mutex<()>>,
    }

    #[derive(Debug)]
    pub(in super::super) struct MutexGuard<'a, T> {
        // Dropped before the gate opens.
        value: std::sync::MutexGuard<'a, T>,
        _gate: Option<shuttle::sync::MutexGuard<'a, ()>>,
    }

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            Self {
                value: std::sync::Mutex::new(value),
                gate: MODEL.get().then(|| shuttle::sync::Mutex::new(())),
            }
        }

        pub(in super::super) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            // A model that has failed unwinds without its threads.
            let gate = self.gate.as_ref().filter(|_| !std::thread::panicking());
            let gate = gate.map(|gate| gate.lock().unwrap_or_else(PoisonError::into_inner));
            Ok(MutexGuard {
                value: self.value.lock().unwrap_or_else(PoisonError::into_inner),
                _gate: gate,
            })
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.value
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.value
        }
    }
}
