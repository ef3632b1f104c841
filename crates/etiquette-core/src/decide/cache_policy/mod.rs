//! Which responses may be stored, and which stored ones may satisfy a request (RFC 9111; RFC 9110, 13 to 15).
//!
//! | file | decides | by RFC 9111 |
//! | --- | --- | --- |
//! | `storage` | whether a response is stored: [`CachePolicy::may_store`] | 3 |
//! | `connection` | which fields are not: [`remove_connection_fields`] | 3.1 |
//! | `combine` | what a stored part lacks, and how two parts become one: [`request_missing_range`], [`combine()`] | 3.3, 3.4 |
//! | `reuse` | whether a stored response satisfies a request, and when a stale one may: [`CachePolicy::reuse`] | 4, 4.2.4 |
//! | `shareable` | whether one response satisfies several requests at once: [`CachePolicy::shareable`] | 4 |
//! | `vary` | which request fields select a stored response: [`Selecting`] | 4.1 |
//! | `freshness` | how long a response is fresh: [`CachePolicy::freshness_lifetime`] | 4.2.1, 4.2.2 |
//! | `stored` | how old it is: [`StoredResponse::age`] | 4.2.3 |
//! | `validation` | how the origin is asked whether it is still right: [`make_conditional`], [`make_conditional_on_any`] | 4.3.1 |
//! | `precondition` | what the caller's own conditions come to: [`precondition()`], [`range_holds`] | 4.3.2 |
//! | `freshen` | what a 304 and the response to a HEAD make of it | 4.3.4, 4.3.5 |
//! | `invalidation` | what the response to an unsafe method [`invalidates`] | 4.4 |
//! | `directives` | what Cache-Control says | 5.2 |
//! | `range` | byte ranges (RFC 9110, 14) | |
//! | `validators` | tags and dates, and their comparison (RFC 9110, 8.8) | |
//! | `status` | what the cache did, as `Cache-Status` (RFC 9211) | |
//! | `policy` | the settings: [`CachePolicy`] | |
//!
//! **Scope.** Private and shared caches; all final status codes; Vary; validators; stale responses (RFC 5861); single
//! byte ranges; `Cache-Status` (RFC 9211).
//!
//! **Non-goals.** `CDN-Cache-Control` (RFC 9213, 2: a cache that is no CDN ignores it); several ranges in one response;
//! the storing of responses to other methods than GET, and POST that names its own URL.
//!
//! Everything is decided from fields and the present. Nothing here reads a clock.

mod combine;
mod connection;
mod directives;
mod freshen;
mod freshness;
mod invalidation;
mod policy;
mod precondition;
mod range;
mod record;
mod reuse;
#[cfg(test)]
mod samples;
mod shareable;
mod status;
mod storage;
mod stored;
#[cfg(test)]
mod tests;
mod validation;
mod validators;
mod vary;

pub use directives::{Qualifiable, ResponseDirectives};
pub use policy::Heuristic;
pub use range::Extent;
pub use status::{CacheStatus, Forward};
pub use stored::{InitialAge, ResponseTimes, StoredResponse};
pub use vary::Selecting;

// The steps of a cache, for this project's own layer.
#[cfg(any(feature = "unstable", test))]
pub use self::{
    combine::{Combined, combine, complete, request_missing_range},
    connection::remove_connection_fields,
    directives::RequestDirectives,
    invalidation::invalidates,
    policy::CachePolicy,
    precondition::{
        Precondition, has_condition_or_range, is_conditional, is_for_the_origin, precondition,
        range_holds,
    },
    range::{ContentRange, RangeOutcome, RequestedRange, requested_range, unsatisfied_range},
    reuse::{Reuse, StaleIfError},
    shareable::{is_anonymous, is_for_anybody},
    stored::http_date,
    validation::{
        make_conditional, make_conditional_on_any, names_other_tags, names_tag_of, selected_by,
    },
    validators::has_validator,
};
