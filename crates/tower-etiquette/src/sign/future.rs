use super::SignConfig;
use crate::head;

/// The future of [`Sign`](super::Sign): the inner one, or a refusal.
///
/// # Cancel safety
/// Dropping it drops the inner future, and nothing else.
pub type ResponseFuture<F> = head::ResponseFuture<F, SignConfig>;
