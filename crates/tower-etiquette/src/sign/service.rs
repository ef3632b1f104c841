use std::task::{Context as TaskContext, Poll};

use etiquette_core::signing::Signer;
use etiquette_core::vocabulary::refusal::Unsigned;
use etiquette_core::{Origin, Refusal};
use http::{Request, Response};
use tower_service::Service;

use super::{ResponseFuture, SignLayer};
use crate::BoxError;
use crate::ext::Context;
use crate::macros::inner_accessors;

/// The service of [`SignLayer`].
#[derive(Clone, Debug)]
pub struct Sign<S> {
    pub(super) inner: S,
    pub(super) layer: Option<SignLayer>,
}

inner_accessors!(Sign);

impl Sign<()> {
    /// Shortcut for [`SignLayer::new`].
    #[must_use]
    pub fn layer(signer: Signer) -> SignLayer {
        SignLayer::new(signer)
    }
}

#[cfg(feature = "client")]
impl<S> Sign<S> {
    /// Signs with `layer`, or passes on.
    pub(crate) fn optional(inner: S, layer: Option<SignLayer>) -> Self {
        Self { inner, layer }
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Sign<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<ResBody>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut TaskContext<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let Some(layer) = &self.layer else {
            return ResponseFuture::calling(self.inner.call(request));
        };
        let now = layer.clock.now().wall;
        let (mut head, body) = request.into_parts();
        let signed = layer
            .signer
            .sign(&head.method, &head.uri, &mut head.headers, now);
        match signed {
            Ok(()) => ResponseFuture::calling(self.inner.call(Request::from_parts(head, body))),
            Err(missing) => {
                let identity = head
                    .extensions
                    .get::<Context>()
                    .and_then(|context| context.identity.as_ref());
                ResponseFuture::refused(Refusal::Unsigned(Unsigned::new(
                    Origin::of(&head.uri).ok(),
                    missing.component,
                    identity.map(|identity| identity.help().clone()),
                )))
            }
        }
    }
}
