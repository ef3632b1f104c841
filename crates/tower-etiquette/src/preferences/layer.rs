use std::sync::Arc;

use super::Use;

/// Reads what sites wish to be done with their responses. See the [module](super).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct PreferencesLayer {
    pub(super) config: PreferencesConfig,
}

/// The settings of a [`PreferencesLayer`].
#[derive(Clone, Debug, Default)]
pub struct PreferencesConfig {
    pub(super) uses: Arc<[Use]>,
    pub(super) enforce: bool,
}

impl PreferencesLayer {
    /// A layer that reads, and refuses nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares what responses are used for. Nothing by default.
    pub fn used_for(mut self, uses: impl IntoIterator<Item = Use>) -> Self {
        self.config.uses = uses.into_iter().collect();
        self
    }

    /// Refuses successful responses that the site does not want to be used so. Off by default.
    pub fn enforce(mut self, yes: bool) -> Self {
        self.config.enforce = yes;
        self
    }
}
