//! Asks for what the client can read, and does not download what it cannot.
//!
//! **What a site operator gains**: a site that negotiates can respond with the small machine format instead of the page,
//! and a film that a feed reader did not ask for is not sent: the response is dropped at its head.
//!
//! **Defaults**: a request without Accept gets the layer's; a caller's own Accept stays and is what responses are judged
//! by. A 406 is an error that names the Accept that was sent; nothing is asked for a second time. Responses of another
//! type are handed on unless [`AcceptLayer::refuse_others`] says otherwise; then a 2xx whose Content-Type was not asked
//! for is dropped unread, and where the type says nothing, at most 512 bytes are looked at (RFC 9110, 8.3), if no
//! content coding hides them. HEAD, and responses other than 2xx, are never judged.
//!
//! ```
//! use http::{Request, Response, header::CONTENT_TYPE};
//! use http_body_util::Full;
//! use tower::{Layer, ServiceExt, service_fn};
//! use tower_etiquette::accept::{Accept, AcceptLayer, Preset};
//! use tower_etiquette::{BoxError, Refusal};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let site = service_fn(|request: Request<()>| async move {
//!     assert_eq!(request.headers()["accept"], "text/html, application/xhtml+xml;q=0.9");
//!     let film = Full::new(bytes::Bytes::from_static(b"..."));
//!     Ok::<_, BoxError>(Response::builder().header(CONTENT_TYPE, "video/mp4").body(film)?)
//! });
//! let client = AcceptLayer::new(Accept::preset(Preset::Page)).refuse_others(true).layer(site);
//!
//! let refused = client.oneshot(Request::get("https://site.example/").body(())?).await.unwrap_err();
//! assert_eq!(Refusal::find(&*refused).unwrap().kind(), "unwanted_type");
//! # Ok(())
//! # }
//! ```
//!
//! **Order**: above the cache, so that Vary: Accept is judged on the Accept that is sent; below
//! [`UserAgentLayer`](crate::UserAgentLayer), from whose identity a refusal takes the contact.
//!
//! **Errors**: [`Refusal::Type`](crate::Refusal::Type).

mod body;
mod future;
mod layer;
mod service;
mod type_check;

pub use body::ResponseBody;
pub use etiquette_core::decide::accept::{
    Accept, AcceptBuilder, InvalidAccept, Preset, TypeRefusal, TypeRefused,
};
pub use future::ResponseFuture;
pub use layer::AcceptLayer;
pub use service::AcceptService;
