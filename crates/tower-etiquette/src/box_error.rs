//! The error type of every layer.

/// A boxed error, the error type of every layer: each of them can refuse.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
