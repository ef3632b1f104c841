use std::task::{Context as TaskContext, Poll};

use etiquette_core::identity::{NameRefusal, NameRefused, Verdict, is_library_default};
use etiquette_core::{Origin, PurposeKind, Refusal};
use http::header::{FROM, USER_AGENT};
use http::{HeaderMap, Request, Response};
use tower_service::Service;

use super::{ResponseFuture, UserAgentLayer};
use crate::ext::{self, Context};
use crate::macros::inner_accessors;
use crate::{BoxError, Identity};

/// The service of [`UserAgentLayer`].
#[derive(Clone, Debug)]
pub struct UserAgent<S> {
    pub(super) inner: S,
    pub(super) layer: UserAgentLayer,
}

inner_accessors!(UserAgent);

impl UserAgent<()> {
    /// Shortcut for [`UserAgentLayer::new`].
    #[must_use]
    pub fn layer(identity: Identity) -> UserAgentLayer {
        UserAgentLayer::new(identity)
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for UserAgent<S>
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

    fn call(&mut self, mut request: Request<ReqBody>) -> Self::Future {
        let purpose = ext::purpose(&request);
        if let Err(why) = self.layer.name(request.headers_mut(), purpose) {
            let refused = NameRefused::new(
                Origin::of(request.uri()).ok(),
                why,
                Some(self.layer.identity.help().clone()),
            );
            return ResponseFuture::refused(Refusal::Name(refused));
        }
        Context::of(request.extensions_mut()).identity = Some(self.layer.identity.clone());
        ResponseFuture::calling(self.inner.call(request))
    }
}

impl UserAgentLayer {
    /// Sets User-Agent and From for `purpose`, or says why the request must not be sent.
    fn name(&self, headers: &mut HeaderMap, purpose: PurposeKind) -> Result<(), NameRefusal> {
        if purpose == PurposeKind::UserFetch && self.identity.user_token().is_none() {
            return Err(NameRefusal::NoUserToken);
        }
        if self.replace || !self.keeps_callers_name(headers, purpose)? {
            headers.insert(USER_AGENT, self.identity.user_agent(purpose).clone());
        }
        match (purpose, self.identity.from()) {
            (PurposeKind::Crawl, Some(from)) => {
                headers.insert(FROM, from.clone());
            }
            // A mail address on a page that a person asked for would tell sites who that person's provider is.
            (PurposeKind::UserFetch, _) => {
                headers.remove(FROM);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the request has a name of the caller's that may stay.
    fn keeps_callers_name(
        &self,
        headers: &HeaderMap,
        purpose: PurposeKind,
    ) -> Result<bool, NameRefusal> {
        let mut names = headers.get_all(USER_AGENT).iter();
        let Some(name) = names.next() else {
            return Ok(false);
        };
        if names.next().is_some() {
            return Err(NameRefusal::SeveralNames);
        }
        if name.to_str().is_ok_and(is_library_default) {
            return Ok(false);
        }
        match self.identity.judge_for(purpose, name.as_bytes()) {
            Verdict::Ok => Ok(true),
            verdict => Err(NameRefusal::Judged(verdict)),
        }
    }
}
