//! Calling an inner service, and reading its response.

use std::future::poll_fn;
use std::pin::pin;

use bytes::{Buf, BufMut};
use http_body::Body;
use http_body_util::BodyExt;
use tower_service::Service;

use crate::BoxError;

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

/// Calls `service` when it is ready.
///
/// # Cancel safety
/// Dropping it drops the request.
pub(crate) async fn send<S, R>(service: &mut S, request: R) -> Result<S::Response, BoxError>
where
    S: Service<R>,
    S::Error: Into<BoxError>,
{
    ready(service).await.map_err(Into::into)?;
    service.call(request).await.map_err(Into::into)
}

/// The first `limit` bytes of `body`, or all of it. What lies beyond is left unread.
///
/// # Cancel safety
/// Dropping it drops the body.
pub(crate) async fn read_up_to<B: Body>(body: B, limit: usize) -> Result<Vec<u8>, B::Error> {
    let mut bytes = Vec::new();
    let mut body = pin!(body);
    while bytes.len() < limit
        && let Some(frame) = body.frame().await
    {
        if let Ok(data) = frame?.into_data() {
            bytes.put(data.take(limit - bytes.len()));
        }
    }
    Ok(bytes)
}
