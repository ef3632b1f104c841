//! Where responses are stored: in memory unless another store is given, and apart for each session of a person.

mod head_only;
mod memory;
mod partition;

pub(super) use head_only::HeadOnly;
pub use memory::MemoryStore;
pub(super) use partition::{Partition, STORE, remove_all};
