use crate::Identity;

/// Gives every request the name of an [`Identity`]. See the [module](super).
#[derive(Clone, Debug)]
#[must_use]
pub struct UserAgentLayer {
    pub(super) config: UserAgentConfig,
}

/// The settings of a [`UserAgentLayer`].
#[derive(Clone, Debug)]
pub struct UserAgentConfig {
    pub(super) identity: Identity,
    pub(super) replace: bool,
}

impl UserAgentLayer {
    /// A layer that names requests after `identity` and judges names that callers set.
    pub fn new(identity: Identity) -> Self {
        Self {
            config: UserAgentConfig {
                identity,
                replace: false,
            },
        }
    }

    /// Replaces whatever name a request brings along instead of judging it. For gateways, whose requests carry the
    /// names of the clients behind them. Off by default.
    pub fn replace_callers_name(mut self, yes: bool) -> Self {
        self.config.replace = yes;
        self
    }

    /// The identity.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.config.identity
    }
}
