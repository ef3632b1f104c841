use crate::boxed::BoxedFuture;

/// The future of [`RetryAfter`](super::RetryAfter).
///
/// # Cancel safety
/// Dropped while it waits for the end of a pause, it leaves the queue and the next one takes its turn. Dropped while the
/// request is under way, it drops the inner call. The pause that it may have learnt of stays.
pub type ResponseFuture<B> = BoxedFuture<B>;
