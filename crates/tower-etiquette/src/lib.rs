//! tower layers that make any automated HTTP client recognisable, reachable and controllable by the people who run
//! the sites it visits.
//!
//! # Should I use this?
//! Yes, if a program of yours asks other people's web servers for something without a person at each request: a crawler,
//! an agent, a feed reader, a link checker, a price monitor, a link preview, an egress gateway. Put the layers around the
//! client that you have; nothing else of your program changes.
//!
//! No, if you look for a crawler framework: there is no frontier, no scheduler and no page parser here. And "allowed"
//! means only that no rule forbids it: it is no legal advice.
//!
//! # A client
//! With feature `client` a ready-made one, [`client::Client`]:
//!
//! ```no_run
//! # #[cfg(feature = "client")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tower_etiquette::{Identity, client::Client};
//!
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
//! let client = Client::new(identity);
//! let page = client.get("https://www.rust-lang.org/").await?.into_body().text(1 << 20).await?;
//! # drop(page);
//! # Ok(())
//! # }
//! ```
//!
//! # In an axum service
//! [`Etiquette::boxed`] puts all layers around any inner client and hides the type, so that it fits into a `State`:
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::Empty;
//! use tower_etiquette::{BoxedService, Etiquette, Identity};
//! # use std::convert::Infallible;
//! # use http::{Request, Response};
//!
//! #[derive(Clone)]
//! struct AppState {
//!     client: BoxedService<Empty<Bytes>>,
//! }
//!
//! # let inner = tower::service_fn(|_: Request<Empty<Bytes>>| async {
//! #     Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
//! # });
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
//! let state = AppState { client: Etiquette::new(identity).boxed(inner) };
//! # drop(state);
//! # Ok::<(), tower_etiquette::identity::InvalidIdentity>(())
//! ```
//!
//! # In a gateway
//! Pick the layers one by one. [`RefusalLayer`] outermost turns refusals into problem responses (RFC 9457):
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_etiquette::{HostBudgetLayer, HostPolicy, Hosts, RefusalLayer, RetryAfterLayer};
//!
//! let hosts = Hosts::new(HostPolicy::new());
//! let layers = ServiceBuilder::new()
//!     .layer(RefusalLayer::new())
//!     .layer(RetryAfterLayer::new(hosts.clone()))
//!     .layer(HostBudgetLayer::new(hosts));
//! # drop(layers);
//! ```
//!
//! # The stack
//! ```text
//! Refusal                  optional: refusals as problem responses
//! UserAgent · Accept       who asks, and for what
//! Preferences              what the site wishes to be done with it
//! Robots                   may it be asked for?
//! ConditionalCache         is it known already?
//! RetryAfter               did the site ask for a pause?
//! HostBudget               is it this request's turn?
//! Sign                     optional: a signature for each attempt
//! your client
//! ```
//!
//! In another order nothing breaks, and each layer keeps its own promise for the requests that reach it; but
//!
//! | misorder | what is lost |
//! | --- | --- |
//! | cache above robots | pages that became disallowed are served from the cache |
//! | budget above robots | robots.txt is not paced |
//! | retry below budget | a 429 pauses the host and is handed back, not replayed |
//! | user agent below robots | robots refuses: it does not know for whom to look rules up |
//! | a client that follows redirects below | hops meet no layer at all |
//!
//! # Defaults
//! One permit for each host, a delay of 1 s that grows with the host's latency, waits of at most 10 minutes, robots.txt read
//! anew within the hour, a private cache of 64 MiB in memory. Each layer's module gives its numbers and their reasons. All
//! stacks of a process share one [`Hosts`] unless told otherwise.
//!
//! # Where things are
//! The crate's root has what most programs need. The rest is in modules: one for each layer, with its service, its future
//! and its defaults, and
//!
//! | module | what it has |
//! | --- | --- |
//! | [`boxed`] | services, bodies and futures without their types |
//! | [`decide`] | the decisions that the layers carry out, pure |
//! | [`error`] | refusals and errors |
//! | [`facts`] | what the layers did on the way to a response |
//! | [`head`] | the service of the layers that work on heads only |
//! | [`hosts`] | budgets, pauses and queues of hosts, and how they are configured and read |
//! | [`identity`], [`purpose`] | who asks, and what for |
//! | [`page`] | the page behind the link in the User-Agent |
//! | [`stack`] | all layers in the right order |
//! | [`store`] | traits and records of stores |
//!
//! # Features
//! | feature | what it adds |
//! | --- | --- |
//! | `client` | the ready-made HTTPS client |
//! | `disk` | responses, robots.txt files and the pauses of hosts in a folder, across restarts |
//! | `full` | all of them |
//! | `metrics` | counters and histograms of what the layers do, see [`events`] |
//! | `public-suffix` | budgets by registrable domain, `GroupBy::RegistrableDomain` |
//! | `serde` | identities from configuration files |
//! | `signatures` | signed requests in the Web Bot Auth profile of RFC 9421 |
//! | `test-util` | a clock for tests on paused time |
//! | `tracing` | events of what the layers do, see [`events`] |
//!
//! # Limits
//! State is one process's; bodies and queues are bounded, and what exceeds a bound is a typed [`Refusal`] or a miss. Behind
//! another HTTP proxy, connections and addresses are the proxy's.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod accept;
mod box_error;
pub mod boxed;
#[cfg(feature = "client")]
pub mod client;
mod clock;
pub mod conditional_cache;
mod context;
#[cfg(feature = "disk")]
pub mod disk;
pub mod error;
pub mod events;
pub mod facts;
mod flight;
pub mod head;
pub mod host_budget;
pub mod hosts;
mod json;
mod lock;
mod macros;
pub mod page;
pub mod preferences;
mod ready;
mod redirect;
pub mod refuse;
pub mod retry_after;
pub mod robots;
mod serve;
#[cfg(feature = "signatures")]
pub mod sign;
pub mod stack;
mod start_check;
pub mod store;
pub mod user_agent;
mod visit;

pub use etiquette_core::decide;
pub use etiquette_core::vocabulary::{identity, purpose};

pub use accept::AcceptLayer;
pub use conditional_cache::ConditionalCacheLayer;
pub use host_budget::HostBudgetLayer;
pub use preferences::PreferencesLayer;
pub use refuse::RefusalLayer;
pub use retry_after::RetryAfterLayer;
pub use robots::RobotsLayer;
#[cfg(feature = "signatures")]
pub use sign::SignLayer;
pub use stack::Etiquette;
pub use user_agent::UserAgentLayer;

pub use box_error::BoxError;
pub use boxed::{Body, BoxedService};
#[cfg(feature = "test-util")]
pub use clock::PausedClock;
pub use clock::TokioClock;
pub use etiquette_core::decide::accept::Accept;
pub use etiquette_core::decide::host::HostPolicy;
pub use etiquette_core::vocabulary::refusal::Refusal;
pub use etiquette_core::{Clock, Identity, Now, Origin};
pub use facts::Facts;
pub use hosts::Hosts;
pub use purpose::{Api, Purpose, Session, UserGrant};
pub use visit::Visit;

#[cfg(all(doctest, feature = "client"))]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
