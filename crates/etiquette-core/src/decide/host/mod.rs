//! The state of one host and the decisions on it: when the next request may start, and what a response changes.
//!
//! **Flow**: a request asks [`HostState::decide`]; it is admitted, or told what it waits for. [`HostState::reserve`]
//! takes a permit, [`HostState::start`] stamps the start, [`HostState::record_response`] records what came back, and
//! [`HostState::finish`] returns the permit when the body has ended. Everything takes the present and none of it reads
//! a clock, so that the queue, a simulator and a script in a shared store follow one specification.
//!
//! | file | what stands there |
//! | --- | --- |
//! | `policy` | [`HostPolicy`]: the limits that a client sets itself, each default and its reason |
//! | `signal`, `response`, `ratelimit` | [`HostResponse`]: what the head of a response says about its host |
//! | `start` | [`StartOptions`] and [`Decision`]: what a request asks, and what it is told |
//! | `state` | [`HostState`]: the parts below, and the decisions on them |
//! | `spacing`, `permits`, `starts` | the last start and end, the requests in flight, the starts of the last second |
//! | `latency`, `crawl_delay` | the delays that the site's speed and its robots.txt ask for |
//! | `pause`, `backoff`, `recovery`, `runs` | the pause, the lower rate after it and its return, responses in a row |
//! | `api` | the same for APIs under a key |
//! | `response_record` | what a response changes |
//! | `pace` | [`HostSnapshot`]: why a host is asked at its pace |
//! | `pack`, `record` | a host at rest in 24 bytes, and what is kept across a restart |
//! | `group` | [`GroupBy`]: which origins share a state |
//!
//! **Spacing, not buckets**: the last start and the last end are stored, and the next start is computed at each decision
//! from the delay as it is known then. Idleness saves nothing up.
//!
//! **Pauses** only grow; each raises the backoff level once and halves the rate, which comes back with successes alone. A
//! site that responds with 429, or 403, for ever sees one request an hour in the end.
//!
//! **APIs under a key** have the limit that their site documents, in place of delay and `max_in_flight`: a bucket of tokens,
//! and a number of requests at once. Pauses and backoff of the host hold for them too.
//!
//! **Scope**: RFC 9110, 10.2.3 and 15.5.2 to 15.6.4; RFC 6585, 4; the non-standard Crawl-delay; the RateLimit field of
//! the IETF draft. **Non-goals**: queues, locks and timers belong to the layers.

mod api;
mod backoff;
mod crawl_delay;
mod group;
mod latency;
mod pace;
mod pack;
mod pause;
mod permits;
mod policy;
mod ratelimit;
mod record;
mod recovery;
mod response;
mod response_record;
mod runs;
mod signal;
mod spacing;
mod start;
mod starts;
mod state;

pub use group::GroupBy;
pub use pace::{HostSnapshot, Pace, PaceReason};
pub use policy::{HostPolicy, LONGEST_PAUSE, LONGEST_WAIT};
pub use record::HostRecord;
pub use response::HostResponse;
pub use signal::Signal;
pub use start::{ApiQuota, StartOptions};

// The state machine itself, for this project's own layers.
#[cfg(any(feature = "unstable", test))]
pub use self::{
    pack::PackedHost, record::HostMark, response_record::ResponseRecord, start::Decision,
    state::HostState,
};
