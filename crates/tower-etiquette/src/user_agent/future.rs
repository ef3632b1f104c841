use super::UserAgentConfig;
use crate::head;

/// The future of [`UserAgent`](super::UserAgent): the inner one, or a refusal.
///
/// # Cancel safety
/// Dropping it drops the inner future and leaves the request's grant as it was.
pub type ResponseFuture<F> = head::ResponseFuture<F, UserAgentConfig>;
