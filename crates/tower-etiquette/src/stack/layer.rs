use etiquette_core::store::ResponseStore;
use tower_layer::Layer;

use super::{Etiquette, EtiquetteService};
use crate::conditional_cache::MemoryStore;
use crate::retry_after::EmptyBodies;

/// The layers of an [`Etiquette`] as one layer. Services made from it, and from its clones, share what they know.
#[derive(Clone, Debug)]
#[must_use]
pub struct EtiquetteLayer<St = MemoryStore, C = EmptyBodies>(Etiquette<St, C>);

impl<S, St: ResponseStore, C: Clone> Layer<S> for EtiquetteLayer<St, C> {
    type Service = EtiquetteService<S, St, C>;

    fn layer(&self, inner: S) -> Self::Service {
        self.0.service(inner)
    }
}

impl<St: ResponseStore, C: Clone> Etiquette<St, C> {
    /// The layers as one, for a [`ServiceBuilder`](https://docs.rs/tower/0.5/tower/struct.ServiceBuilder.html).
    pub fn layer(&self) -> EtiquetteLayer<St, C> {
        EtiquetteLayer(self.clone())
    }
}
