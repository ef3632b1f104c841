//! A file in the form that is kept: small, and fast to ask.
//!
//! Rules without an inner wildcard are sorted, so that all rules that are prefixes of a URL lie on one chain: the
//! greatest rule not above the URL, its longest prefix among the rules, that one's longest prefix, and so on. One binary
//! search and a walk up finds the longest. Rules with wildcards are sorted by how specific they are and tried from the
//! top; the first that matches is the best of them, and none below the best prefix is tried at all.
//!
//! Each list holds ends only: an entry starts where the one before it ends.

mod build;
mod layout;
mod lookup;
mod prepare;

pub(crate) use layout::{Kept, RuleAt};
pub(crate) use lookup::Hit;
pub(crate) use prepare::MOST_WILDCARDS;
