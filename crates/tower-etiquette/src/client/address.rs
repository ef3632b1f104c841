//! Connections that were not made because of the address, told as refusals.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use etiquette_core::Refusal;
use etiquette_core::decide::address::AddressRefused;
use http::{Request, Uri};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::error::ConnectError;
use crate::context::Context;
use crate::{BoxError, Origin};

/// Right around the connections: turns an address that was not connected to into [`Refusal::Address`], so that no layer
/// takes it for a silence of the site.
#[derive(Clone, Debug)]
pub(super) struct Addresses<S> {
    inner: S,
    public_only: bool,
}

impl<S> Addresses<S> {
    pub(super) fn new(inner: S, public_only: bool) -> Self {
        Self { inner, public_only }
    }
}

impl<S, ReqBody> Service<Request<ReqBody>> for Addresses<S>
where
    S: Service<Request<ReqBody>>,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = AddressFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let asked = self.public_only.then(|| Asked {
            uri: request.uri().clone(),
            contact: request.extensions().get().and_then(Context::contact),
        });
        AddressFuture {
            inner: self.inner.call(request),
            asked,
        }
    }
}

/// What a refusal tells of its request.
#[derive(Debug)]
struct Asked {
    uri: Uri,
    contact: Option<Arc<str>>,
}

pin_project! {
    /// The future of [`Addresses`].
    pub(super) struct AddressFuture<F> {
        #[pin]
        inner: F,
        asked: Option<Asked>,
    }
}

impl<F, R, E> Future for AddressFuture<F>
where
    F: Future<Output = Result<R, E>>,
    E: Into<BoxError>,
{
    type Output = Result<R, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.inner.poll(cx).map_err(|error| {
            let error = error.into();
            let address = this.asked.as_ref().zip(refused(&*error));
            match address {
                Some((asked, address)) => {
                    let origin = Origin::of(&asked.uri).ok();
                    let leaf = AddressRefused::new(origin, address, asked.contact.clone());
                    Refusal::from(leaf).into()
                }
                None => error,
            }
        })
    }
}

/// The address that was not connected to, if that is what went wrong.
fn refused(error: &(dyn Error + 'static)) -> Option<IpAddr> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ConnectError::NotPublic(address)) = error.downcast_ref() {
            return Some(*address);
        }
        next = error.source();
    }
    None
}
