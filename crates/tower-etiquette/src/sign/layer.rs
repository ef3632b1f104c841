use std::sync::Arc;

use etiquette_core::signing::Signer;

use crate::{Clock, TokioClock};

/// Signs requests. See the [module](super).
#[derive(Clone, Debug)]
#[must_use]
pub struct SignLayer {
    pub(super) config: SignConfig,
}

/// The settings of a [`SignLayer`].
#[derive(Clone, Debug)]
pub struct SignConfig {
    /// Absent where the ready-made client signs nothing.
    pub(super) signer: Option<Signer>,
    pub(super) clock: Arc<dyn Clock>,
}

impl SignLayer {
    /// A layer that signs with `signer`.
    pub fn new(signer: Signer) -> Self {
        Self::optional(Some(signer))
    }

    /// A layer that passes requests on as they are.
    #[cfg(feature = "client")]
    pub(crate) fn unsigned() -> Self {
        Self::optional(None)
    }

    fn optional(signer: Option<Signer>) -> Self {
        let clock = Arc::new(TokioClock);
        Self {
            config: SignConfig { signer, clock },
        }
    }

    /// Where the time of a signature comes from; the system's wall clock by default.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Arc::new(clock);
        self
    }
}
