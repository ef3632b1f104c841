//! The body of the inner service, its type erased.

use bytes::Bytes;
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;

use crate::BoxError;
use crate::boxed::BytesBody;

pub(crate) type UpstreamBody = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) fn boxed<B>(body: B) -> UpstreamBody
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    UnsyncBoxBody::new(BytesBody::new(body))
}
