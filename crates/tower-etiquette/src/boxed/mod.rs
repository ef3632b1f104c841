//! Bodies, services and futures without their types, for axum's `State` and for struct fields.

mod body;
mod bytes_body;
mod future;
mod service;

pub use body::Body;
pub(crate) use bytes_body::BytesBody;
pub use future::BoxedFuture;
pub use service::BoxedService;
