//! Connections that fail, and waits that are refused: what the caller is told.
