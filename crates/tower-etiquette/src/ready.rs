//! Waiting for an inner service that is about to be called.

use std::future::poll_fn;

use tower_service::Service;

/// Waits until `service` is ready to be called once, on this very instance.
///
/// # Cancel safety
/// Dropping it drops whatever the inner service reserved only together with `service` itself.
pub(crate) async fn ready<S, R>(service: &mut S) -> Result<(), S::Error>
where
    S: Service<R>,
{
    poll_fn(|cx| service.poll_ready(cx)).await
}
