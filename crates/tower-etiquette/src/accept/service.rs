use std::task::{Context as TaskContext, Poll};

use etiquette_core::{Identity, Origin};
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body::Body;
use tower_service::Service;

use super::{Accept, AcceptLayer, ResponseBody, ResponseFuture};
use crate::BoxError;
use crate::ext::Context;
use crate::macros::inner_accessors;

/// The service of [`AcceptLayer`].
#[derive(Clone, Debug)]
pub struct AcceptService<S> {
    pub(super) inner: S,
    pub(super) layer: AcceptLayer,
}

inner_accessors!(AcceptService);

impl AcceptService<()> {
    /// Shortcut for [`AcceptLayer::new`].
    #[must_use]
    pub fn layer(accept: Accept) -> AcceptLayer {
        AcceptLayer::new(accept)
    }
}

/// What is remembered of a request until its answer comes.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) accept: HeaderValue,
    pub(super) uri: Uri,
    pub(super) identity: Option<Identity>,
    /// Answers are judged by their type.
    pub(super) judges: bool,
}

impl Asked {
    pub(super) fn origin(&self) -> Option<Origin> {
        Origin::of(&self.uri).ok()
    }
}

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
        let accept = self.layer.ask(request.headers_mut());
        let asked = Asked {
            accept,
            uri: request.uri().clone(),
            identity: request
                .extensions()
                .get::<Context>()
                .and_then(|context| context.identity.clone()),
            judges: self.layer.refuse_others && *request.method() != Method::HEAD,
        };
        ResponseFuture::calling(self.inner.call(request), asked)
    }
}

impl AcceptLayer {
    /// Sets Accept where there is none, and returns what is sent.
    fn ask(&self, headers: &mut HeaderMap) -> HeaderValue {
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
