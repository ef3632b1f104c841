//! Errors as people read them.

use std::error::Error;

use tower_etiquette::Refusal;

/// An error and its causes in one line.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The refusal in an error, with rule and contact, or the error and its causes.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> String {
    match Refusal::find(error) {
        Some(refusal) => refusal.explain().to_string(),
        None => chain(error),
    }
}
