//! The traits of stores, and the records that they keep.
//!
//! | file | what is stored | trait |
//! | --- | --- | --- |
//! | `responses` | responses | [`ResponseStore`] |
//! | `robots` | robots.txt files | [`RobotsStore`] |
//! | [`host`] | budgets that several processes share | [`host::HostStore`] |
//! | [`journal`] | pauses and backoff levels, across restarts | [`journal::HostJournal`] |
//! | `codec` | the bytes of a record | |

#[cfg(feature = "unstable")]
pub mod codec;
#[cfg(not(feature = "unstable"))]
pub(crate) mod codec;
mod failed;
pub mod host;
pub mod journal;
mod responses;
mod robots;

pub use failed::{StoreFailed, StoreFuture};
pub use responses::{BodyReader, BodyWriter, Piece, ResponseKey, ResponseStore, Variant};
pub use robots::{Claim, RobotsKey, RobotsStore};
