//! One attempt, right around the connections, where waiting for a budget does not count.
//!
//! It has timeouts. An address that was not connected to becomes a [`Refusal::Address`], so that no layer takes it for a
//! failure of the site. A pooled connection that leads elsewhere than to the address in whose budget the request is, is
//! not used again: after a name has moved, the pool may still have one to where it was.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use etiquette_core::decide::address::AddressRefused;
use etiquette_core::{Origin, Refusal};
use http::{Request, Response, Uri};
use hyper_util::client::legacy::connect::{CaptureConnection, HttpInfo, capture_connection};
use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};
use tower_service::Service;

use super::error::{ConnectError, TimedOut};
use super::timed_body::TimedBody;
use crate::BoxError;
use crate::context::{AtAddress, Context};

/// How long the parts of an attempt may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) head: Duration,
    pub(super) idle: Duration,
    pub(super) total: Duration,
}

/// The innermost service of a client.
#[derive(Clone, Debug)]
pub(super) struct Attempt<S> {
    inner: S,
    timeouts: Timeouts,
    public_only: bool,
}

impl<S> Attempt<S> {
    pub(super) fn new(inner: S, timeouts: Timeouts, public_only: bool) -> Self {
        Self {
            inner,
            timeouts,
            public_only,
        }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Attempt<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<TimedBody<ResBody>>;
    type Error = BoxError;
    type Future = AttemptFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let sender = self.public_only.then(|| Sender {
            uri: request.uri().clone(),
            contact: request.extensions().get().and_then(Context::contact),
        });
        let address = request.extensions().get().copied();
        let address = address.map(|AtAddress(ip)| (ip, capture_connection(&mut request)));
        let now = Instant::now();
        let end = now + self.timeouts.total;
        AttemptFuture {
            response: self.inner.call(request),
            sleep: sleep_until(end.min(now + self.timeouts.head)),
            idle: self.timeouts.idle,
            end,
            sender,
            address,
        }
    }
}

/// What a refusal says of its request.
#[derive(Debug)]
struct Sender {
    uri: Uri,
    contact: Option<Arc<str>>,
}

pin_project! {
    /// Waits for a response head, until the timeout.
    pub(super) struct AttemptFuture<F> {
        #[pin]
        response: F,
        #[pin]
        sleep: Sleep,
        idle: Duration,
        end: Instant,
        sender: Option<Sender>,
        address: Option<(IpAddr, CaptureConnection)>,
    }
}

impl<F, ResBody, E> Future for AttemptFuture<F>
where
    F: Future<Output = Result<Response<ResBody>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<TimedBody<ResBody>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Poll::Ready(response) = this.response.poll(cx) else {
            return this.sleep.poll(cx).map(|()| Err(TimedOut::Head.into()));
        };
        Poll::Ready(match response {
            Ok(response) => {
                if let Some((ip, connection)) = this.address {
                    retire_if_elsewhere(&response, *ip, connection);
                }
                Ok(response.map(|body| TimedBody::new(body, *this.idle, *this.end)))
            }
            Err(error) => {
                let error = error.into();
                Err(match this.sender.as_ref().zip(not_public(&*error)) {
                    Some((sender, address)) => {
                        let origin = Origin::of(&sender.uri).ok();
                        let leaf = AddressRefused::new(origin, address, sender.contact.clone());
                        Refusal::from(leaf).into()
                    }
                    None => error,
                })
            }
        })
    }
}

/// Keeps a connection out of the pool that leads elsewhere than to `address`.
fn retire_if_elsewhere<B>(response: &Response<B>, address: IpAddr, connection: &CaptureConnection) {
    let reached = response.extensions().get::<HttpInfo>();
    if reached.is_some_and(|reached| reached.remote_addr().ip() != address)
        && let Some(connection) = &*connection.connection_metadata()
    {
        connection.poison();
    }
}

/// The address that was not connected to, if that is what went wrong.
fn not_public(error: &(dyn Error + 'static)) -> Option<IpAddr> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ConnectError::NotPublic(address)) = error.downcast_ref() {
            return Some(*address);
        }
        next = error.source();
    }
    None
}
