//! Which stored response satisfies a request, and how (RFC 9111, 4).

mod reply;
mod select;

pub(super) use reply::{Reply, mark, respond};
pub(super) use select::{Forwarding, Plan, Selected, add_callers_validators, select};
