//! tower layers that make any automated HTTP client recognisable, reachable and controllable by the people who run
//! the sites it visits.

pub mod accept;
mod boxed;
#[cfg(feature = "client")]
pub mod client;
mod clock;
pub mod conditional_cache;
mod ext;
mod flight;
pub mod host_budget;
mod hosts;
mod macros;
pub mod preferences;
mod ready;
pub mod refuse;
pub mod retry_after;
pub mod robots;
#[cfg(feature = "signatures")]
pub mod sign;
pub mod stack;
pub mod user_agent;

pub use accept::AcceptLayer;
pub use boxed::{Body, BoxedFuture, BoxedService};
#[cfg(feature = "test-util")]
pub use clock::PausedClock;
pub use clock::TokioClock;
pub use conditional_cache::ConditionalCacheLayer;
pub use etiquette_core::host::{GroupBy, HostPolicy, HostSnapshot, Pace, PaceReason, Signal};
pub use etiquette_core::identity::{self, Identity};
pub use etiquette_core::{
    Accept, Api, Clock, Now, Origin, Permit, Purpose, PurposeKind, Refusal, RobotsScope, Session,
    purpose,
};
pub use ext::Facts;
pub use host_budget::HostBudgetLayer;
pub use hosts::{Hosts, HostsBuilder, HostsTotals};
pub use preferences::PreferencesLayer;
pub use refuse::RefusalLayer;
pub use retry_after::RetryAfterLayer;
pub use robots::{Robots, RobotsFacts, RobotsLayer};
#[cfg(feature = "signatures")]
pub use sign::SignLayer;
pub use stack::{Etiquette, EtiquetteLayer, EtiquetteService};
pub use user_agent::UserAgentLayer;

/// A boxed error, the error type of every layer: each of them can refuse.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
