//! Structured fields (RFC 9651), as far as this crate reads and writes them: dictionaries and their members.
//!
//! A parser of its own, because the published ones ask for a newer Rust than this workspace does. Strict as the RFC
//! is: one fault voids the whole field.

mod parse;
mod value;
#[cfg(any(feature = "signatures", test))]
mod write;

pub(crate) use parse::dictionary;
#[cfg(any(feature = "signatures", test))]
pub(crate) use value::parameter;
pub(crate) use value::{Bare, Value};
#[cfg(feature = "signatures")]
pub(crate) use value::{Item, Member, Parameters};
#[cfg(feature = "signatures")]
pub(crate) use write::{inner_list, parameters};
