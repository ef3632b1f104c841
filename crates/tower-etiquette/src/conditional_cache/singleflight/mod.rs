//! Concurrent requests for one URL become one (RFC 9111, 4: collapsed requests).
//!
//! `table` finds what is under way, `collapse` gives each caller its response.

mod collapse;
mod table;

pub(super) use table::{Collapsing, Entry, FetchOutcome, FlightGuard, FlightTable, Singleflight};
