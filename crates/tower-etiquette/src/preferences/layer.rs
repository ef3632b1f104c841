use std::sync::Arc;

use tower_layer::Layer;

use super::{PreferencesService, Use};

/// Reads what sites wish to be done with their answers. See the [module](super).
#[derive(Clone, Debug, Default)]
pub struct PreferencesLayer {
    uses: Arc<[Use]>,
    enforce: bool,
}

impl PreferencesLayer {
    /// A layer that reads, and refuses nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares what answers are used for. Nothing by default.
    #[must_use]
    pub fn used_for(mut self, uses: impl IntoIterator<Item = Use>) -> Self {
        self.uses = uses.into_iter().collect();
        self
    }

    /// Refuses successful answers that the site does not want to be used so. Off by default.
    #[must_use]
    pub fn enforce(mut self, yes: bool) -> Self {
        self.enforce = yes;
        self
    }

    /// The declared uses, if they are enforced.
    pub(super) fn enforced(&self) -> &[Use] {
        if self.enforce { &self.uses } else { &[] }
    }
}

impl<S> Layer<S> for PreferencesLayer {
    type Service = PreferencesService<S>;

    fn layer(&self, inner: S) -> PreferencesService<S> {
        PreferencesService {
            inner,
            layer: self.clone(),
        }
    }
}
