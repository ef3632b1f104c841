use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;

use super::body::ResponseBody;
use super::error::Error;
use crate::boxed::BoxedFuture;

/// The future of a [`Client`](super::Client).
///
/// # Cancel safety
/// Dropping it leaves the host's queue or gives its permit back.
#[derive(Debug)]
pub struct ClientFuture {
    response: BoxedFuture,
    max_body: u64,
}

impl ClientFuture {
    pub(super) fn new(response: BoxedFuture, max_body: u64) -> Self {
        Self { response, max_body }
    }
}

impl Future for ClientFuture {
    type Output = Result<Response<ResponseBody>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(Pin::new(&mut self.response).poll(cx)).map_err(Error::new)?;
        let (parts, body) = response.into_parts();
        let body = ResponseBody::new(body, self.max_body, &parts.headers);
        Poll::Ready(Ok(Response::from_parts(parts, body)))
    }
}
