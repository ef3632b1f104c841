//! Signs each attempt, so that a site can verify who came (Web Bot Auth; RFC 9421).
//!
//! **What a site operator gains**: a name that nobody else can send. The public key is found at the origin that the
//! client's operator publishes, and a signature fits one request to one host for a minute.
//!
//! **Defaults**: those of [`Signer`]. What a caller brings along as Signature, Signature-Input or Signature-Agent is
//! replaced.
//!
//! ```
//! use http::{Request, Response};
//! use tower::{Layer, ServiceExt, service_fn};
//! use tower_etiquette::sign::{SignLayer, Signer, SigningKey};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tower_etiquette::BoxError> {
//! let (key, _jwk_to_keep) = SigningKey::generate()?;
//! let signer = Signer::new(key, "https://www.example.com")?;
//! let site = service_fn(|request: Request<()>| async move {
//!     assert_eq!(request.headers()["signature-agent"], "sig1=\"https://www.example.com\"");
//!     assert!(request.headers().contains_key("signature-input"));
//!     Ok::<_, tower_etiquette::BoxError>(Response::new(()))
//! });
//! let client = SignLayer::new(signer).layer(site);
//! client.oneshot(Request::get("https://site.example/").body(())?).await?;
//! # Ok(())
//! # }
//! ```
//!
//! **Order**: innermost, so that each retry, each redirect and the requests for robots.txt are signed anew, with the
//! headers as they are sent. In the ready-made client (feature `client`) that is where `ClientBuilder::sign` puts it.
//!
//! **The directory**: [`KeyDirectory`] serves the public keys at
//! `/.well-known/http-message-signatures-directory` of the origin that the signatures name.
//!
//! **Errors**: [`Refusal::Unsigned`](crate::Refusal::Unsigned) where a covered part is not there.

mod directory;
mod future;
mod layer;
mod service;

pub use directory::{DirectoryFuture, KeyDirectory};
pub use etiquette_core::signing::{
    AgentForm, Component, InvalidKey, InvalidSigner, PublicKey, Signer, SigningKey,
};
pub use future::ResponseFuture;
pub use layer::{SignConfig, SignLayer};
pub use service::Sign;
