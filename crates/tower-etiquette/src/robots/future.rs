use crate::boxed::BoxedFuture;

/// The future of [`Robots`](super::Robots).
///
/// # Cancel safety
/// Dropping it before the request has started sends nothing for it; a fetch of robots.txt goes on if others wait for it.
/// Dropping it afterwards drops the inner service's future.
pub type ResponseFuture<B> = BoxedFuture<B>;
