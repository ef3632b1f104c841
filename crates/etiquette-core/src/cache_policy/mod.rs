//! Which responses may be stored, and which stored ones may answer a request (RFC 9111; RFC 9110, 13 to 15).
//!
//! **Flow.** [`CachePolicy::reuse`] judges a stored response for a request: [`Reuse::Fresh`] answers it,
//! [`Reuse::StaleWhileRevalidate`] answers it while somebody asks the origin, [`Reuse::Validate`] asks first and says
//! what may be done if the origin does not answer well. [`CachePolicy::storing`] judges an answer of the origin. A 304
//! goes through [`StoredResponse::freshen`], the answer to a HEAD through [`StoredResponse::freshen_by_head`]; an answer
//! to an unsafe method names what it [`outdates`]. Pages for people go by [`is_anonymous`] and [`is_for_anybody`] where
//! one request may do for several of them.
//!
//! **Scope.** Private and shared caches; all final status codes; Vary; validators; stale responses (RFC 5861); single
//! byte ranges; `Cache-Status` (RFC 9211).
//!
//! **Non-goals.** `CDN-Cache-Control` (RFC 9213, 2: a cache that is no CDN ignores it); several ranges in one answer;
//! the storing of answers to other methods than GET, and POST that names its own URL.
//!
//! Everything is decided from fields and the present. Nothing here reads a clock.

mod connection;
mod date;
mod directives;
mod freshen;
mod outdates;
mod policy;
mod range;
mod record;
mod reuse;
#[cfg(test)]
mod samples;
mod status;
mod stored;
mod storing;
mod strangers;
mod validators;
mod vary;

pub use connection::remove_connection_fields;
pub use date::parse_http_date;
pub use directives::{RequestDirectives, ResponseDirectives, Scope};
pub use freshen::Freshened;
pub use outdates::outdates;
pub use policy::{CachePolicy, Heuristic};
pub use range::{
    Extent, Given, Wanted, content_range, part, part_length, unsatisfied_range, wanted,
};
pub use reuse::{Reuse, Trouble};
pub use status::{CacheStatus, Forward};
pub use stored::{Exchange, Lifetime, Received, StoredResponse, http_date};
pub use storing::Storing;
pub use strangers::{is_anonymous, is_for_anybody};
pub use validators::{
    Precondition, ask_conditionally, has_validator, is_conditional, is_for_the_origin,
    precondition, range_holds, same_strong_tag,
};
pub use vary::Selecting;
