use std::task::{Context as TaskContext, Poll};

use etiquette_core::decide::preferences::{Preferences, UseRefused};
use etiquette_core::{Identity, Origin, PurposeKind, Refusal};
use http::{Request, Response, Uri};
use tower_service::Service;

use super::{PreferencesLayer, ResponseFuture};
use crate::BoxError;
use crate::ext::{self, Context, Facts};
use crate::macros::inner_accessors;

/// The service of [`PreferencesLayer`].
#[derive(Clone, Debug)]
pub struct PreferencesService<S> {
    pub(super) inner: S,
    pub(super) layer: PreferencesLayer,
}

inner_accessors!(PreferencesService);

impl PreferencesService<()> {
    /// Shortcut for [`PreferencesLayer::new`].
    #[must_use]
    pub fn layer() -> PreferencesLayer {
        PreferencesLayer::new()
    }
}

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for PreferencesService<S>
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
        let asked = Asked {
            layer: self.layer.clone(),
            uri: request.uri().clone(),
            purpose: ext::purpose(&request),
            identity: request
                .extensions()
                .get::<Context>()
                .and_then(|context| context.identity.clone()),
        };
        ResponseFuture::new(self.inner.call(request), asked)
    }
}

/// What is remembered of a request until its answer comes.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    layer: PreferencesLayer,
    uri: Uri,
    purpose: PurposeKind,
    identity: Option<Identity>,
}

impl Asked {
    /// Adds the wishes to the facts of the answer, or refuses it for one of them.
    pub(super) fn answered<B>(self, mut response: Response<B>) -> Result<Response<B>, BoxError> {
        let preferences = self.read(&response);
        let unwanted = self
            .layer
            .enforced()
            .iter()
            .find_map(|&what| Some((what, preferences.who_disallows(what)?)));
        if let Some((what, source)) = unwanted.filter(|_| response.status().is_success()) {
            let help = self.identity.as_ref().map(Identity::help).cloned();
            let origin = Origin::of(&self.uri).ok();
            let refused = UseRefused::new(origin, what, source, help);
            return Err(Box::new(Refusal::Use(refused)));
        }
        Facts::edit(response.extensions_mut(), |facts| {
            facts.preferences = Some(preferences.into());
        });
        Ok(response)
    }

    fn read<B>(&self, response: &Response<B>) -> Preferences {
        let token = self
            .identity
            .as_ref()
            .map(|identity| identity.token_for(self.purpose));
        let robots = Facts::of(response)
            .and_then(Facts::robots)
            .and_then(|facts| facts.robots());
        let group = robots.zip(token).and_then(|(robots, token)| {
            match self.purpose {
                // `*` is about crawling; a person's fetch is bound by the group that names it.
                PurposeKind::UserFetch => robots.named_group(token),
                _ => Some(robots.group(token)),
            }
        });
        let path = match self.uri.path_and_query() {
            Some(target) => target.as_str(),
            None => "/",
        };
        let group = group.as_ref().map(|group| (group, path.as_bytes()));
        let token = token.map_or("*", |token| token.as_str());
        Preferences::read(response.headers(), group, token)
    }
}
