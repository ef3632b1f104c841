//! Where responses are stored: in memory unless another store is given, and apart for each session of a person.

mod memory;
mod partition;

pub use memory::MemoryStore;
pub(super) use partition::{Partition, STORE, remove_all};
