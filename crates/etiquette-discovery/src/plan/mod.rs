//! The course of a discovery, without the requests themselves.
//!
//! # Flow
//! [`Plan::next_request`] names the next request, [`Plan::response`] or [`Plan::no_response`] takes what came of it, until
//! there is none left; [`Plan::finish`] gives the [`Findings`]. [`Discovery`](crate::Discovery) is the loop that does
//! this with a service.
//!
//! # Requests
//! robots.txt, then the start page, both of which any visit costs. Probes of well-known addresses come after them, only
//! for what is wanted, only where nothing of the kind is known, only where robots.txt allows it, and only up to
//! [`Plan::max_probes`], which is none unless asked for: a guess costs the operator a request and a line in the log.
//!
//! # Non-goals
//! Asking for what was found.

mod course;
mod findings;
mod request;
mod response;
#[cfg(test)]
mod tests;
mod want;

pub use course::{MAX_PROBES, Plan};
pub use findings::{Findings, InvalidStart, RobotsAccess};
pub use request::{PlannedRequest, RequestKind};
pub use response::PlannedResponse;
pub use want::Want;
