//! The vocabulary and the decisions of tower-etiquette.
//!
//! Everything here is pure: it takes octets, headers and the present, and returns a value that names the next step.
//! Nothing reads a clock, sleeps, locks or logs. The layers of `tower-etiquette` ask these decisions and carry them out.

pub mod clock;
pub mod date;
pub mod origin;
pub mod purpose;
pub mod refusal;
pub mod retry_after;
pub mod robots_txt;

pub use clock::{Clock, Now};
pub use origin::{InvalidOrigin, Origin};
pub use purpose::{Purpose, PurposeKind};
pub use refusal::Refusal;
pub use retry_after::RetryAfter;
