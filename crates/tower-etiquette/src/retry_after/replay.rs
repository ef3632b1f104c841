use crate::macros::opaque_debug;
use http_body::Body;

/// How a request's body is had a second time.
pub trait ReplayBody<B> {
    /// The same body once more, or `None` where it cannot be sent twice.
    fn replay(&self, body: &B) -> Option<B>;
}

/// Bodies that are known to be empty are sent again. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyBodies;

impl<B: Body + Default> ReplayBody<B> for EmptyBodies {
    fn replay(&self, body: &B) -> Option<B> {
        (body.size_hint().exact() == Some(0)).then(B::default)
    }
}

/// Bodies are copied by a function, which returns `None` for those that cannot be.
#[derive(Clone)]
pub struct CloneWith<F>(pub(super) F);

impl<B, F: Fn(&B) -> Option<B>> ReplayBody<B> for CloneWith<F> {
    fn replay(&self, body: &B) -> Option<B> {
        (self.0)(body)
    }
}

opaque_debug!(CloneWith<F>);
