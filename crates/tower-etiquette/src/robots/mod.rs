//! robots.txt before any page (RFC 9309).
//!
//! A site operator gains a lever that works: one line in robots.txt, under the name that the User-Agent carries, stops
//! or slows this client within the hour.
//!
//! - The file is fetched through the inner service, under the client's own name, before the first page of an origin
//!   (scheme, host and port), and once however many requests wait for it.
//! - **The rules count when a request starts.** A request that waited for its host's budget or for the end of a pause
//!   meets the rules as they are known then. When the copy's life is over by then, the file is fetched again first.
//! - A refusal names the rule, its line, and where the client's operator can be reached.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tower_etiquette::BoxError> {
//! use http::{Request, Response};
//! use tower::{Layer, ServiceExt, service_fn};
//! use tower_etiquette::{Identity, Refusal, RobotsLayer};
//!
//! let site = service_fn(|request: Request<String>| async move {
//!     let robots = request.uri().path() == "/robots.txt";
//!     let body = if robots { "User-agent: *\nDisallow: /private/\n" } else { "a page" };
//!     Ok::<_, std::io::Error>(Response::new(body.to_owned()))
//! });
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
//! let client = RobotsLayer::with_identity(identity.clone()).layer(site);
//!
//! let request = Request::get("http://example.com/private/diary")
//!     .header("user-agent", identity.user_agent(Default::default()))
//!     .body(String::new())?;
//! let error = client.oneshot(request).await.expect_err("it is disallowed");
//! let refusal = Refusal::find(&*error).expect("a layer refused it");
//! assert_eq!(refusal.rule().map(|rule| rule.line()), Some(2));
//! # Ok(())
//! # }
//! ```
//!
//! # Defaults
//! | what | default | why |
//! | --- | --- | --- |
//! | life of a copy | min(max-age, 1 h), at least 60 s and two delays of the host | one line has to act within the hour |
//! | 4xx | no rules | RFC 9309, 2.3.1.3; 401 and 403 can be made to close |
//! | 408, 429, 5xx, no response, cut or coded body | closed, or the old copy for 30 days | RFC 9309, 2.3.1.4 and 2.4 |
//! | next try after those | 60 s, doubled up to 1 h, never before the site's Retry-After | |
//! | redirects | 10, whatever the authority | RFC 9309, 2.3.1.2 asks for 5 |
//! | bytes read | 512,000 | RFC 9309, 2.5 |
//! | time for each request of a fetch | 30 s from its start | |
//! | origins remembered | 10,000, least recently used first out | forgetting means fetching again |
//!
//! # Order
//! Below the [`UserAgentLayer`](crate::UserAgentLayer), whose name it looks up; above the
//! [`ConditionalCacheLayer`](crate::ConditionalCacheLayer), or pages that became disallowed would be served from it;
//! above the [`HostBudgetLayer`](crate::HostBudgetLayer), or robots.txt would not be paced.
//!
//! # Errors
//! [`Refusal::Disallowed`](crate::Refusal::Disallowed),
//! [`Refusal::RobotsUnreachable`](crate::Refusal::RobotsUnreachable),
//! [`Refusal::Name`](crate::Refusal::Name) for a request without a name,
//! [`Refusal::NoOrigin`](crate::Refusal::NoOrigin) for a relative URI, and whatever the inner service fails with.

mod check;
mod fetch;
mod fetch_start;
mod future;
mod layer;
mod request;
mod service;
mod stored_copy;
mod table;
mod target;

pub use etiquette_core::RobotsScope;
pub use etiquette_core::decide::robots_txt::RobotsPolicy;
pub use future::ResponseFuture;
pub use layer::RobotsLayer;
pub use service::Robots;
