//! What a process knows about the hosts it asks: budgets, pauses, queues.
//!
//! [`Hosts`] is a cheap handle. Every layer that is given a clone of it shares one state for each host; layers that are
//! given hosts of their own share nothing. The builder of the stack uses [`Hosts::process_wide`], because two clients
//! built in two places of one program must not double the rate at which a site is asked.
//!
//! A process that restarts forgets pauses and backoff levels, unless [`Hosts::keep_in`] gives it a journal such as the
//! folder of feature `disk`. Processes that run at the same time share budgets through [`HostsBuilder::store`].
//!
//! # Where to read what
//! | file | what it holds |
//! | --- | --- |
//! | `handle`, `builder`, `report` | what programs see: [`Hosts`], [`HostsBuilder`], [`HostsTotals`] |
//! | `registry`, `table`, `entry` | what all clones share: all hosts, at rest in few bytes; one host behind its lock |
//! | `budget` | what one host allows now: the state machine of `etiquette_core`, and what a store said |
//! | `queue/` | who waits for a host, who is next, and who may not wait any more |
//! | `admit`, `request`, `acquire`, `permit` | one request: from its arrival over its turn to the end of its body |
//! | `address` | a second budget for what hosts share that are one machine |
//! | `monitor` | the task that lets others pass a head which is no longer polled |
//! | `store/`, `restore` | what other processes, and later ones, know |
//! | `wake`, `timer`, `sync` | wakers, timers and locks |

mod acquire;
mod address;
mod admit;
mod budget;
mod builder;
mod entry;
mod handle;
#[cfg(test)]
mod model;
mod monitor;
mod permit;
mod queue;
mod registry;
mod report;
mod request;
mod restore;
mod store;
mod sync;
mod table;
mod target;
mod timer;
mod wake;

pub use builder::HostsBuilder;
pub use etiquette_core::decide::host::{
    GroupBy, HostPolicy, HostSnapshot, Pace, PaceReason, Signal,
};
pub use handle::Hosts;
pub use permit::Start;
pub use report::HostsTotals;

pub(crate) use address::AddressBudget;
#[cfg(feature = "client")]
pub(crate) use address::{AddressResolver, ResolvedAddress};
pub(crate) use admit::admit;
pub(crate) use handle::origin_of;
pub(crate) use permit::Permit;
pub(crate) use request::AcquireOptions;
