//! Machine formats.
