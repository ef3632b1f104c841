//! What several callers wait for and only one of them can have.

use std::sync::{Arc, Mutex, PoisonError};

use etiquette_core::Refusal;

use crate::BoxError;

/// A value that is handed out once, to one of those who hold a clone.
pub(super) struct Delivery<T>(Arc<Mutex<Option<T>>>);

impl<T> Delivery<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Arc::new(Mutex::new(Some(value))))
    }

    pub(super) fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Clone for Delivery<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// An error of work that several callers wait for: the error itself for one of them, a copy for the others.
#[derive(Clone)]
pub(super) struct SharedError {
    error: Delivery<BoxError>,
    copy: ErrorCopy,
}

#[derive(Clone)]
enum ErrorCopy {
    Refused(Box<Refusal>),
    Text(Arc<str>),
}

impl SharedError {
    pub(super) fn new(error: BoxError) -> Self {
        let copy = match Refusal::find(&*error) {
            Some(refusal) => ErrorCopy::Refused(Box::new(refusal.clone())),
            None => ErrorCopy::Text(error.to_string().into()),
        };
        Self {
            error: Delivery::new(error),
            copy,
        }
    }

    /// The error itself, or a copy if another caller has it.
    pub(super) fn take(&self) -> BoxError {
        self.error.take().unwrap_or_else(|| self.copy())
    }

    pub(super) fn copy(&self) -> BoxError {
        match &self.copy {
            ErrorCopy::Refused(refusal) => refusal.clone(),
            ErrorCopy::Text(text) => format!("the shared request failed: {text}").into(),
        }
    }
}
