//! A stack without its type, for axum's `State` and for struct fields.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use tower_service::Service;

use crate::BoxError;
use crate::passed::Passed;

/// A response body without its type.
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl Body {
    /// Boxes `body`.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self(UnsyncBoxBody::new(Passed::new(body)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// A service without its type: `Clone`, `Send` and `Sync`.
///
/// # Cancel safety
/// Dropping its future drops the boxed service's future.
pub struct BoxedService<ReqBody>(Box<dyn CloneService<ReqBody>>);

type BoxFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

/// What a service needs to be boxed and still cloned.
trait CloneService<ReqBody>: Send + Sync {
    fn clone_box(&self) -> Box<dyn CloneService<ReqBody>>;
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;
    fn call(&mut self, request: Request<ReqBody>) -> BoxFuture;
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

    fn call(&mut self, request: Request<ReqBody>) -> BoxFuture {
        let response = Service::call(self, request);
        Box::pin(async move { response.await.map(|r| r.map(Body::new)).map_err(Into::into) })
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
        BoxedFuture(self.0.call(request))
    }
}

impl<ReqBody> fmt::Debug for BoxedService<ReqBody> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedService").finish_non_exhaustive()
    }
}

/// The future of a [`BoxedService`].
pub struct BoxedFuture(BoxFuture);

impl Future for BoxedFuture {
    type Output = Result<Response<Body>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for BoxedFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedFuture").finish_non_exhaustive()
    }
}
