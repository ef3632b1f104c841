use std::sync::Arc;

use etiquette_core::decide::preferences::{Preferences, UseRefused};
use etiquette_core::{Identity, Origin, Purpose, PurposeKind, Refusal};
use http::{Uri, request, response};
use tower_layer::Layer;

use super::{PreferencesConfig, PreferencesLayer, Use};
use crate::context::Context;
use crate::facts::Facts;
use crate::head::{HeadService, OnHead};
use crate::macros::service_constructors;

/// The service of [`PreferencesLayer`].
pub type PreferencesService<S> = HeadService<S, PreferencesConfig>;

impl<S> Layer<S> for PreferencesLayer {
    type Service = PreferencesService<S>;

    fn layer(&self, inner: S) -> PreferencesService<S> {
        PreferencesService::with_config(inner, self.config.clone())
    }
}

service_constructors!(PreferencesService, PreferencesLayer);

impl OnHead for PreferencesConfig {
    type Pending = PendingRequest;

    fn on_request(&self, request: &mut request::Parts) -> Result<PendingRequest, Refusal> {
        Ok(PendingRequest {
            enforced: self.enforce.then(|| Arc::clone(&self.uses)),
            uri: request.uri.clone(),
            purpose: Purpose::kind_of(&request.extensions, &request.uri, &request.headers),
            identity: Context::identity_in(&request.extensions).cloned(),
        })
    }

    fn on_response(request: PendingRequest, response: &mut response::Parts) -> Result<(), Refusal> {
        let preferences = request.read(response);
        let enforced = request.enforced.iter().flat_map(|uses| uses.iter());
        let unwanted = enforced
            .copied()
            .find_map(|what| Some((what, preferences.who_disallows(what)?)));
        if let Some((what, source)) = unwanted.filter(|_| response.status.is_success()) {
            let contact = request.identity.as_ref().map(Identity::help).cloned();
            let origin = Origin::of(&request.uri).ok();
            return Err(UseRefused::new(origin, what, source, contact).into());
        }
        Facts::edit(&mut response.extensions, |facts| {
            facts.preferences = Some(preferences.into());
        });
        Ok(())
    }
}

/// What is kept of a request until its response arrives.
#[derive(Debug)]
pub struct PendingRequest {
    enforced: Option<Arc<[Use]>>,
    uri: Uri,
    purpose: PurposeKind,
    identity: Option<Identity>,
}

impl PendingRequest {
    /// What the response and the robots.txt of its site say about its use.
    fn read(&self, response: &response::Parts) -> Preferences {
        let token = self
            .identity
            .as_ref()
            .map(|identity| identity.token_for(self.purpose));
        let robots = response
            .extensions
            .get::<Facts>()
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
        Preferences::read(&response.headers, group, token)
    }
}
