//! What several of the programs share: options, the end by Ctrl-C, and how errors are shown.

mod error;
mod named;
mod resolve;
mod stop;

pub use error::chain;
pub(crate) use error::explain;
pub use named::{Named, Unnamed};
pub(crate) use named::{belongs_to_somebody, is_loopback};
pub use resolve::Resolve;
pub(crate) use resolve::seconds;
pub use stop::ctrl_c;
