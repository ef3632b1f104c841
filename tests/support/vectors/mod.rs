//! The JSON vector sets: where they are read from, how a row is read, and what is said about a row that failed.
//!
//! A row that cannot be played must be seen. So each runner names the keys, verbs and words that it knows ([`only_keys`],
//! [`unknown`]), reads values with the functions of this module, which give an error instead of a panic, and plays each
//! row through [`Report::play`], which turns a panic into a failure of that row. An unknown word fails the row with
//! [`UNKNOWN`] and its id, never silently.

mod folders;
mod report;
mod row;

pub use folders::Vectors;
pub use report::{Report, caught};
pub use row::{
    Kind, RowResult, UNKNOWN, any_text, headers, in_our_words, list, number, object, only_keys,
    optional, same, text, unknown, whole,
};
