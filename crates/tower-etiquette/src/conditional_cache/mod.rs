//! Repeated reads cost the site nothing: fresh responses come from the store, stale ones are validated (RFC 9111).
//!
//! A site operator sees one request where twenty callers ask at once, and 304s where a client comes back.
//!
//! **Defaults.** A private cache in memory, 64 MiB in all and 4 MiB for one body; 16 variants for one URL; no estimated
//! lifetimes, so that a response that states none is validated each time; a day of stale responses when the origin does
//! not respond at all and the response does not forbid it; 64 validations in the background at once.
//!
//! What a person asked for ([`Purpose::UserFetch`](crate::Purpose::UserFetch)) is stored for the session of that person
//! only. People who ask for one URL at the same time share one request where nothing tells them apart: no Cookie and no
//! Authorization on the request, and a response that is neither `private` nor `no-store` and sets no cookie.
//!
//! Bodies are handed on as they come. As much of a body is held as may be stored; one that ends early, or is dropped
//! before its end, is not stored. One that is larger passes through; a store that takes bodies in chunks gets it as it
//! comes, up to the store's own limit, and later gives it back chunk by chunk. If the store loses it meanwhile, the
//! response body ends with an error.
//!
//! Partial responses are stored too, combined where one strong tag says that they are of one version, and never served
//! for the whole: who wants the whole costs the site what is missing. A request that selects none of the stored variants
//! asks with all of their tags at once which one fits (RFC 9111, 4.1), unless they were given to somebody by name.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_etiquette::conditional_cache::ConditionalCacheLayer;
//! use tower_etiquette::{BoxError, Facts};
//!
//! let site = service_fn(|_: Request<Full<bytes::Bytes>>| async {
//!     let page = Response::builder().header("cache-control", "max-age=60");
//!     page.body(Full::<bytes::Bytes>::from("hello"))
//! });
//! let client = ServiceBuilder::new().layer(ConditionalCacheLayer::new()).service(site);
//! let page = || Request::get("http://site.example/").body(Full::default()).unwrap();
//!
//! use http_body_util::BodyExt;
//! let first = client.clone().oneshot(page()).await.unwrap();
//! assert_eq!(first.into_body().collect().await.unwrap().to_bytes(), "hello");
//! let second = client.oneshot(page()).await.unwrap();
//! assert_eq!(second.headers()["age"], "0");
//! assert!(Facts::of(&second).unwrap().cache_status().unwrap().is_from_store());
//! # }
//! ```
//!
//! **Without bodies.** A caller with a database of its own switches on
//! [`ConditionalCacheLayer::validators_only`]: validators alone are stored, and what it has had before comes as a 304.
//!
//! **Order.** Above it: User-Agent and Accept, so that Vary is judged on the headers that are sent; robots, so that a
//! page that became disallowed is not served from here. Below it: Retry-After and the host budget, which a fresh
//! response does not touch.
//!
//! **Errors.** [`Refusal::NotStored`](crate::Refusal::NotStored) when the caller said `only-if-cached` and nothing
//! usable is stored; else the errors of the inner service. A failing store never fails a request.
//!
//! **A request's way.** `service` looks into the store (`store`), selects what satisfies the request (`lookup`), joins
//! another caller's request (`singleflight`) or makes one (`origin`), and hands on the body while it is stored (`body`).

mod background;
mod body;
mod config;
mod context;
mod delivery;
mod future;
mod layer;
mod lookup;
mod origin;
mod service;
mod singleflight;
mod store;
#[cfg(test)]
mod tests;

pub use body::ResponseBody;
pub use etiquette_core::decide::cache_policy::{CacheStatus, Forward, Heuristic};
pub use future::ResponseFuture;
pub use layer::ConditionalCacheLayer;
pub use service::ConditionalCache;
pub use store::MemoryStore;
