//! Response bodies: one that is stored and shared while it is read (`tee`, `sink`), one that is read from the store in
//! chunks (`replay`), one put together from stored bytes and new ones (`splice`), and what the caller gets (`response`).

mod replay;
mod response;
mod sink;
mod splice;
mod tee;
mod upstream;

pub(super) use replay::StoredChunks;
pub use response::ResponseBody;
pub(super) use sink::{Sink, StoreBody, Storing};
pub(super) use splice::Splice;
pub(super) use tee::{Framing, Tee};
pub(super) use upstream::{UpstreamBody, boxed};
