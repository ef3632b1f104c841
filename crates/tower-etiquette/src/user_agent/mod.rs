//! One name on every request, and no other.
//!
//! **What a site operator gains**: each request carries the client's token, version and link, so that the log says who
//! came; the token in the log is the token that robots.txt is asked for, so a line there works. A browser's name, another
//! agent's name and no name at all are refused before anything is sent.
//!
//! **Defaults**: User-Agent is the [`Identity`](crate::Identity)'s, by the request's purpose; crawls carry From if the
//! identity has a contact, page fetches for a person never do. What a library sets of its own accord (`reqwest/0.13`) is
//! replaced. What a caller sets is judged: the own name in another form passes, anything else is refused.
//!
//! **Grants**: a page fetch for a person ([`Purpose::UserFetch`](crate::Purpose::UserFetch)) passes only as far as its
//! [`UserGrant`](crate::UserGrant) reaches: the granted URL and at most five redirects from there, GET or HEAD, one final
//! answer. Hops count where they pass this layer, so redirects must be followed above it, or not at all: the ready-made
//! client does, and a client that follows by itself hides its hops. What the layers below repeat after a Retry-After
//! belongs to the request.
//!
//! ```
//! use http::{Request, Response, header::USER_AGENT};
//! use tower::{Layer, ServiceExt, service_fn};
//! use tower_etiquette::{Identity, Refusal, UserAgentLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tower_etiquette::BoxError> {
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
//! let site = service_fn(|request: Request<()>| async move {
//!     let name = request.headers()[USER_AGENT].to_str()?.to_owned();
//!     Ok::<_, tower_etiquette::BoxError>(Response::new(name))
//! });
//! let client = UserAgentLayer::new(identity).layer(site);
//!
//! let plain = Request::get("https://site.example/").body(())?;
//! let response = client.clone().oneshot(plain).await?;
//! assert_eq!(
//!     response.body(),
//!     "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)"
//! );
//!
//! let disguised = Request::get("https://site.example/")
//!     .header(USER_AGENT, "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0")
//!     .body(())?;
//! let refused = client.oneshot(disguised).await.unwrap_err();
//! assert_eq!(Refusal::find(&*refused).unwrap().kind(), "disguise");
//! # Ok(())
//! # }
//! ```
//!
//! **Order**: above every layer of this crate, because they read the identity from the request; below redirects, so
//! that each hop is named and judged. Below a cache it would name only what the cache sends, and Vary on User-Agent
//! would be judged on another name.
//!
//! **Errors**: [`Refusal::Name`](crate::Refusal::Name) with the verdict, [`Refusal::Grant`](crate::Refusal::Grant) with
//! what the grant does not cover. A refused request has reached no socket.

mod future;
mod granted;
mod layer;
mod service;

pub use future::ResponseFuture;
pub use granted::GrantedRequest;
pub use layer::{UserAgentConfig, UserAgentLayer};
pub use service::UserAgent;
