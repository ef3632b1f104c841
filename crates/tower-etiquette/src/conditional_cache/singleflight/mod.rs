//! Concurrent requests for one URL become one (RFC 9111, 4: collapsed requests).
//!
//! `table` finds what is under way, `outcome` is what becomes of it, `collapse` gives each caller its response.

mod collapse;
mod outcome;
mod table;

pub(super) use outcome::FetchOutcome;
pub(super) use table::{Collapsing, Entry, FlightGuard, FlightTable, Singleflight};
