//! Responses, robots.txt files and the pauses of hosts in a folder, so that a client which is started again neither asks
//! again nor comes back inside a pause.
//!
//! [`Etiquette::keep_in`](crate::Etiquette::keep_in) puts all three there:
//!
//! ```no_run
//! # fn example(identity: tower_etiquette::Identity) -> Result<(), tower_etiquette::BoxError> {
//! use tower_etiquette::{Etiquette, disk::DiskStore};
//!
//! let folder = DiskStore::open("/var/lib/example-bot")?
//!     .on_error(|failed| eprintln!("{failed}: {}", std::error::Error::source(failed).unwrap()));
//! let etiquette = Etiquette::new(identity).keep_in(folder);
//! # drop(etiquette);
//! # Ok(())
//! # }
//! ```
//!
//! **What is where.** `etiquette.redb` holds the heads, what is known of robots.txt, and for each host that is in a pause
//! or was not long ago its name, pause, backoff level and pace, never a URL; `bodies/` one file for each body. A body is written
//! to a file of another name, renamed, and only then named by a record. Everything is checked against a checksum before it
//! is used. What is missing, cut or damaged is a miss; a host whose record is damaged counts as one that has just answered
//! 429 without saying for how long.
//!
//! **Durable.** Every change is synced before it counts as done: a removed entry does not come back, and a 429 is handed
//! on when its pause is on the disk (at most 5 s later), whatever kills the process. Bodies are not synced by themselves:
//! after a loss of power one may be damaged, and then is a miss.
//!
//! **Clocks.** Pauses are kept by the wall clock. A clock that was set back between two runs adds to a pause, by no more
//! than was left of it when it was written; one that was set forward counts as time that has passed.
//!
//! **Bounded.** Bodies and heads together stay below the limit (1 GiB unless told otherwise); what was unused for
//! longest goes first. The database file needs some room of its own, about that of the heads again. At most 100,000 hosts
//! are remembered, some 300 bytes each: for a further one the host that is owed least is given up. A host is removed a
//! day after its pause, or when its backoff level is back at 0.
//!
//! **One process.** A second one that opens the folder is refused with [`DiskError::InUse`].
//!
//! **Not kept**: responses that were selected by a Cookie or an Authorization, since the folder would hold the secret;
//! anything of a user fetch but its host's pause; runs of failures or refusals that have not led to a pause yet.
//!
//! An error of the folder, such as a full disk, never fails a request: it is a miss. The database is then opened anew, at
//! most every 10 s, until it can be used again, and a pause that could not be written holds for as long as the process;
//! [`DiskStore::on_error`] reports it.

mod checksum;
mod database;
mod error;
mod files;
mod index;
mod journal;
mod pauses;
mod record;
mod responses;
mod robots;
mod store;

pub use error::DiskError;
pub use store::DiskStore;
