//! What the workspace's tests and examples share: vector files, a site that sees what its operator would see, and the
//! promises as that operator would check them.

pub mod promises;
pub mod site;
pub mod vectors;

/// The README's Rust blocks, compiled so that they run as pasted.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;
