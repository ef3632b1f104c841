//! What a client asks for, and whether what came is that.
//!
//! **Flow**: [`Accept::builder`] makes the Accept value (RFC 9110, 12.5.1) from presets and types with weights;
//! [`judge`] compares the Content-Type of an answer with the Accept that was sent; where that says nothing,
//! [`sniff`] looks at the first bytes.
//!
//! **Scope**: media types. **Non-goals**: languages, charsets and codings, which belong to the caller and to whoever
//! decompresses.

mod build;
mod judge;
mod media_type;
mod refused;
mod sniff;

pub use build::{Accept, AcceptBuilder, InvalidAccept, Preset};
#[cfg(feature = "unstable")]
pub use judge::{Acceptability, judge};
pub use refused::{TypeRefusal, TypeRefused};
#[cfg(feature = "unstable")]
pub use sniff::{SNIFF_LIMIT, sniff};
