//! One budget for each host: permits, a delay between starts, pauses.
//!
//! **What a site's operator gains**: this client opens no more connections than its permits, leaves a delay between its
//! requests that grows when the site is slow, stops when the site says 429 or 503, and comes back more slowly.
//!
//! **Defaults** (see [`HostPolicy`](crate::HostPolicy)): one permit, a delay of 1 s, five times the latency up to 30 s,
//! Crawl-delays up to 300 s, at most 1,000 requests waiting for at most 10 minutes.
//!
//! **APIs under a key** ([`Purpose::Api`](crate::Purpose)): a queue of its own for each declared prefix and key, up to 16 of
//! one host in use at a time (beyond that `hosts_full`), under the limit of the declaration. Its requests take no delay and no
//! permit of the host, and pages take none of its tokens; pauses and backoff levels are the host's and hold both. Where the
//! hosts are shared through a store there is no bucket: the stricter of the host's budget and the limit holds, without a burst.
//!
//! A permit is held from the start to the end of the response's body, because that is how long the site is busy with the
//! request. Waiting is first come, first served, and nothing is booked ahead. It costs no task for each request: a queue in
//! which more than one waits has one, which lets others pass a head that its caller does not poll any more. That head is
//! woken when its turn has come, is passed a second after it, and keeps its position.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tower_etiquette::BoxError> {
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tower::{Layer, Service, ServiceExt, service_fn};
//! use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts};
//!
//! let site = service_fn(|_: Request<String>| async {
//!     Ok::<_, std::io::Error>(Response::new(String::from("hello")))
//! });
//! let hosts = Hosts::new(HostPolicy::new().min_delay(Duration::from_secs(2)));
//! let mut client = HostBudgetLayer::new(hosts).layer(site);
//!
//! let begin = tokio::time::Instant::now();
//! for _ in 0..3 {
//!     let request = Request::get("http://example.com/").body(String::new())?;
//!     let response = client.ready().await?.call(request).await?;
//!     drop(response); // reading the body to its end does the same: the permit is free again
//! }
//! assert_eq!(begin.elapsed(), Duration::from_secs(4));
//! # Ok(())
//! # }
//! ```
//!
//! **Order**: below the cache, whose answers cost nothing, and below [`RetryAfterLayer`](crate::RetryAfterLayer), whose
//! retries count like any request; redirects are followed above, so that each hop meets the budget of its own host.
//! Above a retry layer it still pauses its own queue, since every layer that sees a response records it.
//!
//! **Errors**: [`HostRefused`](etiquette_core::vocabulary::refusal::HostRefused) when the request may not wait, and
//! [`NoOrigin`](etiquette_core::vocabulary::refusal::NoOrigin) for a request without an absolute URI, both found by
//! [`Refusal::find`](crate::Refusal::find). [`LeaseLost`] where [`Hosts`](crate::Hosts) have a store that failed for as long
//! as a permit lasts. Whatever the inner service returns is passed on.

mod body;
mod future;
mod layer;
mod lease_lost;
mod service;

pub use body::ResponseBody;
pub use future::ResponseFuture;
pub use layer::HostBudgetLayer;
pub use lease_lost::LeaseLost;
pub use service::HostBudget;
