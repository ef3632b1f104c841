//! One budget, one robots.txt and one cache for several processes, on Redis (6 or later) or Valkey, alone or as Cluster.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::sync::Arc;
//! use tower_etiquette_redis::RedisStore;
//!
//! // Each process does the same.
//! let store = RedisStore::builder("redis://127.0.0.1/")
//!     .nodes(4)
//!     .on_event(|event| eprintln!("{event}"))
//!     .connect()
//!     .await?;
//! // Hosts::builder().store(Arc::new(store.clone())).build() shares the budgets,
//! // RobotsLayer::new().store(Arc::new(store.clone())) the robots.txt files,
//! // and ConditionalCacheLayer takes the store itself.
//! # let _ = Arc::new(store);
//! # Ok(())
//! # }
//! ```
//!
//! # What is shared
//! - **Hosts**: permits, delay, pauses, backoff level, rate, Crawl-delay and latency. The first of a process's queue for a host asks
//!   with one script call, the response is reported with a second one, off the request's path. A permit is a lease: it is renewed
//!   while the body streams, and comes back by itself [`Builder::lease`] after its process died.
//! - **robots.txt**: bytes, outcome and validators of each file. One process fetches it, the others take it from here.
//! - **Responses**: variants and bodies, in pieces of 256 KiB. A body above the cache layer's limit for one that is held is
//!   written as it comes and read piece by piece, up to [`Builder::max_body`].
//!
//! All times are the server's. Clients send and receive spans only, so that their clocks need not agree.
//!
//! # When the server fails
//! Every call ends within [`Builder::timeout`]. When the server is down, slow, full or refuses, nothing starts for
//! [`Builder::hold`]; after that each process keeps one permit and the delay times [`Builder::nodes`] of its own, until the
//! server is back. Known pauses are kept throughout. Two processes that went on alone cannot see each other, so that their
//! requests may meet: a `hold` of [`Duration::MAX`](std::time::Duration::MAX) rules that out. A request whose permit could
//! not be renewed is cut off before the server gives the permit away.
//!
//! A server that is empty, or has been restarted, may have forgotten permits in use: it grants nothing for the time of one
//! lease. So the first start on a new server takes that long. Of a Cluster that holds for each node by itself: hosts whose
//! node is down or new wait, the others go on.
//!
//! A server clock that is set back moves what is stored with it. One that is set forward ends pauses early for processes
//! that do not know them; those that do keep them and bring them back.
//!
//! # Keys
//! `NAMESPACE:1:{BUCKET}:KIND:NAME`, where the number is the version of this layout and the bucket one of 64, the only
//! part that Cluster looks at; a script touches one bucket.
//!
//! | kind | what | kept |
//! |---|---|---|
//! | `mark` | since when the server remembers, and its run id | 30 days after the last use |
//! | `h` | state of a host, by its name | until nothing is owed, and 10 minutes (24 hours after backoffs) |
//! | `l` | permits of a host | two leases after the last |
//! | `r`, `c` | robots.txt by origin and token, and who reads it | 30 days; [`Builder::robots_lease`] |
//! | `v`, `b` | variants by a hash of the URL, pieces of bodies | [`Builder::keep_responses`] |
//!
//! No credentials or queries are part of a key. Of a user fetch nothing is written but the state and the robots.txt of its
//! host, under the host's name. A user of the server that may do no more than is needed:
//! `ACL SETUSER NAME on >PASSWORD ~NAMESPACE:* -@all +@hash +@sortedset +@string +del +unlink +pexpire +multi +exec +evalsha
//! +script|load +time +info`. Without `INFO` a server that was restarted with what it had stored is not told from one that
//! was not.
//!
//! # What it costs
//! A request makes two calls: the question before it starts, and off its path what became of it; a long body one more for
//! each third of a lease, and a pause one for each process at its end. A call is about 30 µs of the server's time (a GCRA
//! script, which knows of no permits, pauses or backoff, about 6 µs), so that one server lets some ten thousand requests a
//! second start. A host that was asked once takes 200 bytes there (GCRA 130), and vanishes ten minutes after its last
//! request. `cargo run --release -p compare -- redis` measures it.
//!
//! # Why redis-rs
//! Of the two maintained clients redis-rs 1.8 brings 76 crates with TLS and Cluster, fred 10.1 brings 95 (`cargo tree`).
//! Both pipeline over one connection and follow a Cluster. fred reconnects by itself and queues meanwhile, which is what a
//! budget must not do: a question that is answered a minute later is worthless. Here a broken connection fails its
//! questions at once, and a new one is made by the next question that comes after a pause.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod builder;
mod connection;
mod event;
mod hosts;
mod responses;
mod robots;
mod settings;
mod store;

pub use builder::Builder;
pub use event::{Cause, Event};
pub use store::RedisStore;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
