//! The contracts of tower, and of the layers with each other: what holds for any inner service, in any order, and
//! whatever is dropped when. Time is paused, so that waits are exact and cost nothing.

mod accept;
mod api;
mod cache;
mod drops;
mod naming;
mod order;
mod readiness;
mod retention;
mod sharing;
mod silent;
mod site;
mod strangers;
mod waits;
