//! A small web site that answers as it is told and keeps a log of what it saw: on loopback ([`Builder::start`]), or without
//! sockets as a tower service ([`Builder::in_process`]).
//!
//! It is the operator's side: every request is recorded with its connection, its headers and the times at which it
//! arrived, was answered and was done. Nothing in the log comes from the client under test.
//!
//! On loopback it speaks HTTP/1.1 and HTTP/2, in the clear or over TLS with a root certificate of its own ([`Authority`]).

mod answer;
mod body;
mod builder;
mod log;
mod pages;
mod serve;
mod service;
mod tls;

pub use answer::{Answer, Arrival, Script};
pub use body::SiteBody;
pub use builder::{Builder, Site};
pub use log::{Entry, Log};
pub use service::{ResponseFuture, SiteService};
pub use tls::Authority;
