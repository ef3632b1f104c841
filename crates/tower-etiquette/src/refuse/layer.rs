/// Turns refusals into problem responses; see the [module](super).
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct RefusalLayer(());

impl RefusalLayer {
    /// The layer. It has no settings.
    pub fn new() -> Self {
        Self(())
    }
}
