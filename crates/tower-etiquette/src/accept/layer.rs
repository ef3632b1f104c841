use super::Accept;

/// Asks for the types of an [`Accept`]. See the [module](super).
#[derive(Clone, Debug)]
#[must_use]
pub struct AcceptLayer {
    pub(super) config: AcceptConfig,
}

#[derive(Clone, Debug)]
pub(super) struct AcceptConfig {
    pub(super) accept: Accept,
    pub(super) refuse_others: bool,
}

impl AcceptLayer {
    /// A layer that asks for `accept` where the request does not say itself what it accepts.
    pub fn new(accept: Accept) -> Self {
        Self {
            config: AcceptConfig {
                accept,
                refuse_others: false,
            },
        }
    }

    /// Drops responses of types that were not asked for, before their body is read. Off by default.
    pub fn refuse_others(mut self, yes: bool) -> Self {
        self.config.refuse_others = yes;
        self
    }
}
