//! Which responses may be stored, and which stored ones may answer a request (RFC 9111; RFC 9110, 13 to 15).
//!
//! **Flow.** [`CachePolicy::reuse`] judges a stored response for a request: [`Reuse::Fresh`] answers it,
//! [`Reuse::StaleWhileRevalidate`] answers it while somebody asks the origin, [`Reuse::Validate`] asks first and says
//! what may be done if the origin does not answer well. [`CachePolicy::storing`] judges an answer of the origin. A 304
//! goes through [`StoredResponse::freshen`], the answer to a HEAD through [`StoredResponse::freshen_by_head`]; an answer
//! to an unsafe method names what it [`invalidates`]. Parts of one version [`join`], and what is missing to a whole is asked
//! for by [`ask_for_the_rest`]; a request that selects no stored variant asks by [`ask_which`] whether one of them fits.
//! Pages for people go by [`is_anonymous`] and [`is_for_anybody`] where one request may do for several of them.
//!
//! **Scope.** Private and shared caches; all final status codes; Vary; validators; stale responses (RFC 5861); single
//! byte ranges; `Cache-Status` (RFC 9211).
//!
//! **Non-goals.** `CDN-Cache-Control` (RFC 9213, 2: a cache that is no CDN ignores it); several ranges in one answer;
//! the storing of answers to other methods than GET, and POST that names its own URL.
//!
//! Everything is decided from fields and the present. Nothing here reads a clock.

mod connection;
mod directives;
mod freshen;
mod invalidates;
mod parts;
mod policy;
mod range;
mod record;
mod reuse;
#[cfg(test)]
mod samples;
mod shareable;
mod status;
mod stored;
mod storing;
mod validators;
mod vary;

pub use connection::remove_connection_fields;
pub use directives::{RequestDirectives, ResponseDirectives, Scope};
pub use freshen::Freshened;
pub use invalidates::invalidates;
pub use parts::{Joined, ask_for_the_rest, complete, join};
pub use policy::{CachePolicy, Heuristic};
pub use range::{
    Extent, Given, Wanted, content_range, part, part_length, unsatisfied_range, wanted,
};
pub use reuse::{Reuse, StaleAllowed};
pub use shareable::{is_anonymous, is_for_anybody};
pub use status::{CacheStatus, Forward};
pub use stored::{Exchange, Lifetime, Received, StoredResponse, http_date};
pub use storing::Storing;
pub use validators::{
    Precondition, ask_conditionally, ask_which, asks_about, asks_about_others, has_validator,
    is_conditional, is_for_the_origin, precondition, range_holds, which,
};
pub use vary::Selecting;
