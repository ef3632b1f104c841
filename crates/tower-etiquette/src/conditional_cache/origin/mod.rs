//! Requests to the origin, and what becomes of their responses.
//!
//! `upstream` sends one. `fetch` is the way of a GET: with validators (`validate`) or for missing bytes (`combine`), whose
//! response is stored and shared (`store`). `head` is that of a HEAD, `forward` that of everything else.

mod combine;
mod fetch;
mod forward;
mod head;
mod store;
mod upstream;
mod validate;

pub(super) use fetch::Fetch;
pub(super) use forward::forward;
pub(super) use head::forward_head;
pub(super) use upstream::{InnerService, Upstream};
pub(super) use validate::revalidate_in_background;
