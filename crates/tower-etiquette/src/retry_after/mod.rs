//! Obeys Retry-After: the whole host pauses, and the request is sent again when the site allows it.
//!
//! **What a site's operator gains**: a 429, or a 503, stops this client for the time that it names, every request of it
//! and not only the one that it answers. Without a usable value the pause is 60 s, or 30 s for a 503, and doubles with
//! each repetition up to an hour.
//!
//! **Defaults**: three attempts; only requests whose body is empty are sent again, for 503 only idempotent ones
//! (RFC 9110, 9.2.2); connection errors and other 5xx are not retried. A wait above the policy's longest is refused at
//! once with the time at which to come back. What cannot be sent again is handed on as received, with that time on it:
//! [`Facts::retry_at`](crate::Facts::retry_at).
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tower_etiquette::BoxError> {
//! use std::sync::atomic::{AtomicU32, Ordering};
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tower::{Layer, Service, ServiceExt, service_fn};
//! use tower_etiquette::{HostPolicy, Hosts, RetryAfterLayer};
//!
//! static CALLS: AtomicU32 = AtomicU32::new(0);
//! let site = service_fn(|_: Request<String>| async {
//!     let first = CALLS.fetch_add(1, Ordering::Relaxed) == 0;
//!     let response = if first {
//!         Response::builder().status(429).header("retry-after", "120")
//!     } else {
//!         Response::builder()
//!     };
//!     response.body(String::new())
//! });
//! let hosts = Hosts::new(HostPolicy::new().jitter(0.0, 0.0));
//! let mut client = RetryAfterLayer::new(hosts).layer(site);
//!
//! let begin = tokio::time::Instant::now();
//! let request = Request::get("http://example.com/").body(String::new())?;
//! let response = client.ready().await?.call(request).await?;
//! assert_eq!(response.status(), 200);
//! assert_eq!(begin.elapsed(), Duration::from_secs(120));
//! # Ok(())
//! # }
//! ```
//!
//! **Order**: above [`HostBudgetLayer`](crate::HostBudgetLayer), so that a retry counts against the budget like any
//! request and nothing is held while it waits. When both hold the same [`Hosts`](crate::Hosts) only the budget queues.
//! Below a budget it records what it sees and hands it back, because a retry there would pass the budget by. Alone it
//! lets go what it held one by one, at the pace it has learnt; below a budget, which has started them already, by the
//! budget's delay. Below a budget it holds permits of it while it waits.
//!
//! **Errors**: [`HostRefused`](crate::error::HostRefused) when the wait is too long,
//! [`NoOrigin`](crate::error::NoOrigin) for a request without an absolute URI, both found by
//! [`Refusal::find`](crate::Refusal::find). Whatever the inner service returns is passed on.

mod future;
mod layer;
mod replay;
mod retry_loop;
mod service;

pub use future::ResponseFuture;
pub use layer::RetryAfterLayer;
pub use replay::{CloneWith, EmptyBodies, ReplayBody};
pub use service::RetryAfter;
