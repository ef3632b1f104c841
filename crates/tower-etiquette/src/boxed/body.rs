use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

use super::BytesBody;
use crate::BoxError;
use crate::macros::{forward_body, opaque_debug};

/// A response body without its type.
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

forward_body!(Body, BoxError);

impl Body {
    /// Boxes `body`.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        Self(UnsyncBoxBody::new(BytesBody::new(body)))
    }
}

opaque_debug!(Body);
