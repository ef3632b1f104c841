/// Turns refusals into problem responses; see the [module](super).
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusalLayer(());

impl RefusalLayer {
    /// The layer. It has no settings.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }
}
