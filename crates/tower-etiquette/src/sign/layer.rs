use std::sync::Arc;

use etiquette_core::signing::Signer;
use tower_layer::Layer;

use super::Sign;
use crate::{Clock, TokioClock};

/// Signs requests. See the [module](super).
#[derive(Clone, Debug)]
pub struct SignLayer {
    pub(super) signer: Signer,
    pub(super) clock: Arc<dyn Clock>,
}

impl SignLayer {
    /// A layer that signs with `signer`.
    #[must_use]
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            clock: Arc::new(TokioClock),
        }
    }

    /// Where the time of a signature comes from; the system's wall clock by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl<S> Layer<S> for SignLayer {
    type Service = Sign<S>;

    fn layer(&self, inner: S) -> Sign<S> {
        Sign {
            inner,
            layer: Some(self.clone()),
        }
    }
}
