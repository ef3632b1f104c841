//! The queues of a host: its own, and one for each API in use.
//!
//! [`order`] says who is next, [`poll`] what a poll of a waiting request comes to. [`head`] notices a head that is not polled
//! any more, [`unread`] permits that only unread bodies hold. Nothing here locks, wakes or reads a clock: a
//! [`Host`](super::entry::Host) does.

mod head;
mod order;
mod poll;
mod queues;
mod unread;

pub(super) use order::{Class, Denied, Position, Schedule};
pub(super) use poll::{LockedQueue, PollContext, QueuePoll, QueuedRequest};
pub(super) use queues::{ApiSlot, Queues};
pub(super) use unread::{BodyMeter, UnreadBodyTimeout};
