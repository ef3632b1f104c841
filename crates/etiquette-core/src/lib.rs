//! The vocabulary and the decisions of tower-etiquette.
//!
//! Everything here is pure: it takes bytes, headers and the present, and returns a value that names the next step.
//! Nothing reads a clock, sleeps, locks or logs. The layers of `tower-etiquette` ask these decisions and carry them out.

mod base64;
mod sfv;

pub mod accept;
pub mod address;
pub mod cache_policy;
pub mod clock;
pub mod date;
pub mod host;
pub mod host_journal;
pub mod host_store;
pub mod identity;
pub mod origin;
pub mod preferences;
pub mod purpose;
pub mod refusal;
pub mod retry_after;
pub mod robots_txt;
#[cfg(feature = "signatures")]
pub mod signing;
pub mod store;

pub use accept::Accept;
pub use clock::{Clock, Now};
pub use identity::Identity;
pub use origin::{InvalidOrigin, Origin};
pub use purpose::{Api, Purpose, PurposeKind, RobotsScope, Session, UserGrant};
pub use refusal::Refusal;
pub use retry_after::RetryAfter;
