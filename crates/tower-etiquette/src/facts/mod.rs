//! What the layers did and learnt on the way to a response.
//!
//! [`Facts::of`] reads it from a response, whatever layers are in the stack: how long the request waited, what robots.txt
//! and the cache said, at which pace the host is asked, when to come back.
//!
//! ```
//! use http::Response;
//! use tower_etiquette::Facts;
//!
//! fn log<B>(response: &Response<B>) {
//!     if let Some(facts) = Facts::of(response) {
//!         println!("waited {:?}, sent {} times, cache {:?}", facts.waited(), facts.attempts(), facts.cache_status());
//!     }
//! }
//! # log(&Response::new(()));
//! ```

mod response;
mod robots;

pub use etiquette_core::decide::cache_policy::{CacheStatus, Forward};
pub use etiquette_core::decide::host::{Pace, PaceReason};
pub use etiquette_core::decide::preferences::{Preferences, StatementSource, Use, Wish};
pub use etiquette_robots::{Cause, Robots, Rule, RuleKind, Verdict};
pub use response::Facts;
pub use robots::RobotsFacts;
