//! Who is asking: one validated name for headers, robots.txt and the description page.
//!
//! **Flow**: [`Identity::builder`] checks each part and makes the header values once; the layers only hand them out.
//! The token that robots.txt is asked for and the token in User-Agent are one value, so they cannot part.
//! [`Identity::judge`] tells what somebody else's User-Agent value would say.
//!
//! **Scope**: User-Agent (RFC 9110, 10.1.5), From (10.1.2), the product token (RFC 9309, 2.2.1). Stricter than these on
//! purpose: no tabs and nothing beyond ASCII, no semicolon in link and comment, a link is required.
//!
//! **Non-goals**: a default. A library's name never stands in for its user's.

mod builder;
#[cfg(feature = "serde")]
mod config;
mod invalid;
mod judge;
mod known;
mod refused;
mod syntax;
mod value;

pub use builder::{Builder, Style};
pub use invalid::{Fault, Field, InvalidIdentity};
pub use judge::Verdict;
pub use known::{KnownAgent, KnownPurpose, is_library_default, known_agent};
pub use refused::{NameRefusal, NameRefused};
pub use value::Identity;
