use super::PreferencesConfig;
use crate::head;

/// The future of [`PreferencesService`](super::PreferencesService): the inner one, or a refusal.
///
/// # Cancel safety
/// Dropping it drops the inner future, and nothing else.
pub type ResponseFuture<F> = head::ResponseFuture<F, PreferencesConfig>;
