//! Refusals as responses, for gateways and axum.
//!
//! Below this layer nothing makes up a response: a layer further out would take it for the site's. Outermost,
//! it turns an error that holds a [`Refusal`](crate::Refusal) into a problem response (RFC 9457); other errors pass.
//!
//! | refusal | status |
//! |---|---|
//! | robots.txt or a grant forbids it, the name is wrong, it cannot be signed, an unwanted use | 403 |
//! | the host's address is not public | 403 |
//! | the host's budget or pause | 429 |
//! | robots.txt is unreachable | 503 |
//! | the response's type was not asked for | 406 |
//! | nothing is stored, and the site was not to be asked | 504 |
//! | the request names no site | 400 |
//!
//! Each carries `Retry-After` where the time to come back is known, `Proxy-Status` (RFC 9209), which tells it from a
//! response of the site, and the refusal itself as an extension.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Empty};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_etiquette::refuse::RefusalLayer;
//! use tower_etiquette::{BoxError, ConditionalCacheLayer};
//!
//! let site = service_fn(|_: Request<Empty<bytes::Bytes>>| async {
//!     Ok::<_, BoxError>(Response::new(Empty::<bytes::Bytes>::new()))
//! });
//! let gateway = ServiceBuilder::new()
//!     .layer(RefusalLayer::new())
//!     .layer(ConditionalCacheLayer::new())
//!     .service(site);
//! let request = Request::get("http://site.example/").header("cache-control", "only-if-cached");
//! let response = gateway.oneshot(request.body(Empty::new()).unwrap()).await.unwrap();
//! assert_eq!(response.status(), 504);
//! assert_eq!(response.headers()["content-type"], "application/problem+json");
//! # }
//! ```
//!
//! **Defaults**: there are no settings.
//!
//! **Order**: outermost, whatever else is in the stack.
//!
//! **Errors**: those of the inner service that hold no refusal.

mod body;
mod future;
mod layer;
mod problem;
mod service;

pub use body::ProblemBody;
pub use future::ResponseFuture;
pub use layer::RefusalLayer;
pub use service::Refuse;
