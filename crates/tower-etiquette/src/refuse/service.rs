use std::task::{Context, Poll};

use http::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::{ProblemBody, RefusalLayer, ResponseFuture};
use crate::BoxError;
use crate::macros::{inner_accessors, service_constructors};

/// The service of [`RefusalLayer`].
#[derive(Clone, Debug)]
pub struct Refuse<S> {
    inner: S,
}

inner_accessors!(Refuse);

impl<S> Layer<S> for RefusalLayer {
    type Service = Refuse<S>;

    fn layer(&self, inner: S) -> Refuse<S> {
        Refuse { inner }
    }
}

service_constructors!(Refuse, RefusalLayer);

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Refuse<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<ProblemBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        ResponseFuture::new(self.inner.call(request))
    }
}
