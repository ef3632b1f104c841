//! What the site wishes to be done with its response, as facts on the response.
//!
//! **What a site operator gains**: Content-Usage, Content-Signal, X-Robots-Tag and TDM reservations are read where they
//! stand, in response heads and in the robots.txt that is read anyway; a client that declares its uses drops a response
//! that is not meant for them before the body is sent.
//!
//! **Defaults**: [`Facts::preferences`](crate::Facts::preferences) has the wish for each use with its sources; any
//! disallow wins. Nothing is refused unless uses are declared *and* [`PreferencesLayer::enforce`] is on. No request is
//! made for it and no body is read: a robots meta element is read by [`Directives::add_meta`] on a page that the caller
//! holds, `/.well-known/tdmrep.json` by [`Tdm::from_rules`](tdm::Tdm::from_rules) on a file that the caller asked for.
//!
//! ```
//! use http::{Request, Response};
//! use tower::{Layer, ServiceExt, service_fn};
//! use tower_etiquette::preferences::{PreferencesLayer, Use};
//! use tower_etiquette::{BoxError, Refusal};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let site = service_fn(|_: Request<()>| async {
//!     Ok::<_, BoxError>(Response::builder().header("content-usage", "train-ai=n").body(())?)
//! });
//! let client = PreferencesLayer::new().used_for([Use::TrainAi]).enforce(true).layer(site);
//! let request = Request::get("https://site.example/").body(())?;
//! let refused = client.oneshot(request).await.unwrap_err();
//! assert_eq!(Refusal::find(&*refused).unwrap().kind(), "unwanted_use");
//! # Ok(())
//! # }
//! ```
//!
//! **Order**: above [`RobotsLayer`](crate::RobotsLayer), whose file it reads; below
//! [`UserAgentLayer`](crate::UserAgentLayer), whose token the groups and directives are for. Without the one it reads
//! headers only, without the other only what is said to everybody.
//!
//! **Errors**: [`Refusal::Use`](crate::Refusal::Use).

mod future;
mod layer;
mod service;

pub use etiquette_core::decide::preferences::{
    Directives, Preferences, Statement, StatementSource, Tdm, Use, UseRefused, Wish, Wishes, tdm,
};
pub use future::ResponseFuture;
pub use layer::{PreferencesConfig, PreferencesLayer};
pub use service::{PendingRequest, PreferencesService};
