//! What outlives or exceeds this process: a store that several processes share, and a journal for the next one.
//!
//! Only the head of a host's queue asks the store, and nobody else of the same host while it does, so that a store hears of
//! a host at most once per process at a time. What it replies is kept: a known pause or wait costs no further question.
//!
//! **Without the store** nothing starts for [`Outage::hold`](etiquette_core::store::host::Outage). After that the process
//! keeps a budget of its own: one permit, and the largest delay known times the number of processes, begun at a random
//! point of it, so that processes which cannot see each other rarely meet.

mod acquire;
mod client;
mod journal;
mod lease;
mod view;

pub(super) use acquire::{StoreReply, acquire};
pub(super) use client::{StoreClient, event_of, origin_number};
pub(super) use journal::{Journal, JournalWrite};
pub(super) use lease::Lease;
pub(super) use view::{ASK_AGAIN, StoreView};
