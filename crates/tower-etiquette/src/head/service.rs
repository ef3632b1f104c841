use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::{OnHead, ResponseFuture};
use crate::BoxError;
use crate::macros::inner_accessors;

/// A service that works on heads, as its config says.
#[derive(Debug)]
pub struct HeadService<S, C> {
    inner: S,
    config: Arc<C>,
}

inner_accessors!(HeadService<S, C>);

impl<S, C> HeadService<S, C> {
    pub(crate) fn with_config(inner: S, config: C) -> Self {
        Self {
            inner,
            config: Arc::new(config),
        }
    }
}

impl<S: Clone, C> Clone for HeadService<S, C> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            config: Arc::clone(&self.config),
        }
    }
}

impl<S, C, ReqBody, ResBody> Service<Request<ReqBody>> for HeadService<S, C>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    C: OnHead,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, C>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        match self.config.on_request(&mut head) {
            Ok(pending) => {
                let request = Request::from_parts(head, body);
                ResponseFuture::calling(self.inner.call(request), pending)
            }
            Err(refusal) => ResponseFuture::refused(refusal),
        }
    }
}
