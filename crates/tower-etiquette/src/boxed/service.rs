use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::{Body, BoxedFuture};
use crate::BoxError;
use crate::macros::opaque_debug;

/// A service without its type: `Clone`, `Send` and `Sync`.
///
/// # Cancel safety
/// Dropping its future drops the boxed service's future.
pub struct BoxedService<ReqBody>(Box<dyn CloneService<ReqBody>>);

/// What a service needs to be boxed and still cloned.
trait CloneService<ReqBody>: Send + Sync {
    fn clone_box(&self) -> Box<dyn CloneService<ReqBody>>;
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;
    fn call(&mut self, request: Request<ReqBody>) -> BoxedFuture;
}

impl<S, ReqBody, ResBody> CloneService<ReqBody> for S
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    ResBody: http_body::Body + Send + 'static,
    ResBody::Data: Send,
    ResBody::Error: Into<BoxError>,
{
    fn clone_box(&self) -> Box<dyn CloneService<ReqBody>> {
        Box::new(self.clone())
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Service::poll_ready(self, cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> BoxedFuture {
        let response = Service::call(self, request);
        BoxedFuture::new(
            async move { response.await.map(|r| r.map(Body::new)).map_err(Into::into) },
        )
    }
}

impl<ReqBody> BoxedService<ReqBody> {
    /// Boxes `service`.
    #[must_use]
    pub fn new<S, ResBody>(service: S) -> Self
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        ResBody: http_body::Body + Send + 'static,
        ResBody::Data: Send,
        ResBody::Error: Into<BoxError>,
    {
        Self(Box::new(service))
    }
}

impl<ReqBody> Clone for BoxedService<ReqBody> {
    fn clone(&self) -> Self {
        Self(self.0.clone_box())
    }
}

impl<ReqBody> Service<Request<ReqBody>> for BoxedService<ReqBody> {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxedFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        self.0.call(request)
    }
}

opaque_debug!(BoxedService<ReqBody>);
