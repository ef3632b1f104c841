//! robots.txt as a client keeps it.
//!
//! **Flow.** [`RobotsResponse::read`] says what a response to the request for /robots.txt means. [`RobotsRecord`] keeps
//! what was learnt of one origin, and its [`status`](RobotsRecord::status) says what holds now: obey this copy, send
//! nothing before an instant, or fetch the file (again). [`StoredRobots`] is the record in the form that a store keeps.
//!
//! **Scope.** RFC 9309, 2.3 (access results), 2.4 (caching) and 2.5 (limits). **Non-goals.** The rules themselves are
//! read by `etiquette-robots`; sending, waiting and single flight belong to the layer.
//!
//! | response | meaning |
//! | --- | --- |
//! | 2xx | the rules in its body |
//! | 304 to a conditional request | the copy is good for another lifetime |
//! | 301, 302, 303, 307, 308 with `Location` | fetch that URL, at most ten times; the rules count for the first authority |
//! | 408, 429, a redirect without a target | no outcome yet: closed, or the old copy, until a later fetch |
//! | any other 4xx | no rules; 401 and 403 may be made to close the site ([`RobotsPolicy::unauthorized_closes`]) |
//! | 5xx, anything else, no response, an incomplete or encoded body | unreachable: closed, or the old copy, until a later fetch |

mod failure;
mod lifetime;
mod policy;
mod record;
mod response;
mod stored;
mod validators;

pub use failure::FetchFailure;
pub use policy::RobotsPolicy;
#[cfg(feature = "unstable")]
pub use record::{RobotsOutcome, RobotsRecord, RobotsStatus};
#[cfg(feature = "unstable")]
pub use response::RobotsResponse;
pub use stored::{StoredCopy, StoredFailure, StoredOutcome, StoredRobots};
pub use validators::Validators;
