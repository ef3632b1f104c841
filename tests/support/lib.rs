//! What the workspace's tests and examples share: a site that sees what its operator would see, the promises as that
//! operator would check them, the vector files and how their rows are read, and small things that each test would
//! otherwise write anew.

pub mod client;
pub mod folder;
pub mod paused;
pub mod process;
pub mod promises;
pub mod random;
pub mod site;
pub mod timeline;
pub mod vectors;

/// The README's Rust blocks, compiled so that they run as pasted.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
