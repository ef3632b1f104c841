//! examples.
