use etiquette_core::signing::Signer;
use etiquette_core::vocabulary::refusal::Unsigned;
use etiquette_core::{Identity, Origin, Refusal};
use http::{request, response};
use tower_layer::Layer;

use super::{SignConfig, SignLayer};
use crate::context::Context;
use crate::head::{HeadService, OnHead};
use crate::macros::service_constructors;

/// The service of [`SignLayer`].
pub type Sign<S> = HeadService<S, SignConfig>;

impl<S> Layer<S> for SignLayer {
    type Service = Sign<S>;

    fn layer(&self, inner: S) -> Sign<S> {
        Sign::with_config(inner, self.config.clone())
    }
}

service_constructors!(Sign, SignLayer, signer: Signer);

impl OnHead for SignConfig {
    type Pending = ();

    fn on_request(&self, request: &mut request::Parts) -> Result<(), Refusal> {
        let Some(signer) = &self.signer else {
            return Ok(());
        };
        let now = self.clock.now().wall;
        let signed = signer.sign(&request.method, &request.uri, &mut request.headers, now);
        signed.map_err(|missing| {
            let origin = Origin::of(&request.uri).ok();
            let contact = Context::identity_in(&request.extensions).map(Identity::help);
            Unsigned::new(origin, missing.component, contact.cloned()).into()
        })
    }

    fn on_response((): (), _: &mut response::Parts) -> Result<(), Refusal> {
        Ok(())
    }
}
