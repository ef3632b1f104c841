//! What the workspace's tests share: vector files and, by and by, a site that sees what its operator would see.

pub mod vectors;
