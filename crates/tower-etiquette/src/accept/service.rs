use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::layer::AcceptConfig;
use super::type_check::TypeCheck;
use super::{Accept, AcceptLayer, ResponseBody, ResponseFuture};
use crate::BoxError;
use crate::context::Context;
use crate::macros::{inner_accessors, service_constructors};

/// The service of [`AcceptLayer`].
#[derive(Clone, Debug)]
pub struct AcceptService<S> {
    inner: S,
    config: Arc<AcceptConfig>,
}

inner_accessors!(AcceptService);

impl<S> Layer<S> for AcceptLayer {
    type Service = AcceptService<S>;

    fn layer(&self, inner: S) -> AcceptService<S> {
        let config = Arc::new(self.config.clone());
        AcceptService { inner, config }
    }
}

service_constructors!(AcceptService, AcceptLayer, accept: Accept);

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for AcceptService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
    ResBody: Body,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let check = TypeCheck {
            accept: self.config.set_accept(request.headers_mut()),
            uri: request.uri().clone(),
            identity: Context::identity_in(request.extensions()).cloned(),
            enabled: self.config.refuse_others && *request.method() != Method::HEAD,
        };
        ResponseFuture::calling(self.inner.call(request), check)
    }
}

impl AcceptConfig {
    /// Sets Accept where there is none, and returns what is sent.
    fn set_accept(&self, headers: &mut HeaderMap) -> HeaderValue {
        let mut own = headers.get_all(ACCEPT).iter();
        let Some(first) = own.next() else {
            let value = self.accept.header();
            headers.insert(ACCEPT, value.clone());
            return value.clone();
        };
        let mut joined = first.as_bytes().to_vec();
        let mut lines = 1;
        for line in own {
            joined.extend_from_slice(b", ");
            joined.extend_from_slice(line.as_bytes());
            lines += 1;
        }
        if lines == 1 {
            return first.clone();
        }
        // Joined from valid values, so it is one.
        HeaderValue::from_bytes(&joined).unwrap_or_else(|_| first.clone())
    }
}
