//! A ready-made polite HTTPS client (feature `client`).
//!
//! hyper's pooled client, HTTP/1.1 and HTTP/2, TLS by rustls with ring and the Mozilla roots, the whole stack of
//! [`Etiquette`](crate::Etiquette) around it, and redirects and decompression outside of the stack, where each hop meets
//! the rules and the budget of its own host.
//!
//! ```no_run
//! use tower_etiquette::{Identity, client::Client};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
//! let client = Client::new(identity);
//! let response = client.get("https://www.rust-lang.org/").await?;
//! println!("{}", response.into_body().text(1 << 20).await?);
//! # Ok(())
//! # }
//! ```
//!
//! **User-supplied URLs**: with [`public_addresses_only`](ClientBuilder::public_addresses_only) a host that leads to a
//! private, loopback, link-local, multicast, unspecified or metadata address is refused with
//! [`Refusal::Address`](crate::Refusal::Address) before anything is sent to it, redirects and those of robots.txt
//! included. It cannot hold behind another HTTP proxy, which resolves and connects by itself.
//!
//! # Budgets by address
//! Each host has its own budget. [`per_address`](ClientBuilder::per_address) adds one that hosts share whose names lead
//! to the same address, for machines that serve very many of them. Off by default, since the front end of a large hoster
//! is one address, too.
//!
//! # Defaults
//! | limit | default | setter |
//! | --- | --- | --- |
//! | connect, TLS included | 10 s | [`connect_timeout`](ClientBuilder::connect_timeout) |
//! | response head, from the start of an attempt | 30 s | [`head_timeout`](ClientBuilder::head_timeout) |
//! | silence within a body | 30 s | [`idle_timeout`](ClientBuilder::idle_timeout) |
//! | an attempt, from its start to the end of the body | 5 min | [`total_timeout`](ClientBuilder::total_timeout) |
//! | bytes of a body after decompression | 64 MiB | [`max_body`](ClientBuilder::max_body) |
//! | redirects | 10 | [`max_redirects`](ClientBuilder::max_redirects) |
//!
//! Waiting for a host's budget or for the end of a pause counts for none of them: it is bounded by the `max_wait` of
//! [`Hosts`](crate::Hosts), and a longer wait is refused at once with the instant to come back at.

mod attempt;
mod body;
mod builder;
mod connect;
mod error;
mod future;
mod names;
mod redirect;
mod service;
#[cfg(test)]
mod tests;
mod timed_body;

pub use body::{BodyError, RequestBody, ResponseBody};
pub use builder::{ClientBuilder, Stack};
pub use error::Error;
pub use future::ClientFuture;
pub use service::Client;
