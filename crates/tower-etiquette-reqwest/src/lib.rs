//! reqwest adapter.
