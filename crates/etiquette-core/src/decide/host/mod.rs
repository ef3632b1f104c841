//! The state of one host and the decisions on it: when the next request may start, and what an answer changes.
//!
//! **Flow**: a request asks [`HostState::decide`]; it is admitted, or told what it waits for. [`HostState::reserve`]
//! takes a permit, [`HostState::start`] stamps the start, [`HostState::record_response`] records what came back, and
//! [`HostState::finish`] gives the permit back when the body has ended. Everything takes the present and none of it reads
//! a clock, so that the queue, a simulator and a script in a shared store follow one specification.
//!
//! **Spacing, not buckets**: the last start and the last end are stored, and the next start is computed at each decision
//! from the delay as it is known then. Idleness saves nothing up.
//!
//! **Pauses** only grow; each raises the backoff level once and halves the rate, which comes back with successes alone. A site that
//! answers 429, or 403, for ever sees one request an hour in the end.
//!
//! **APIs under a key** have the limit that their site documents, in place of delay and max_in_flight: a bucket of tokens, and a
//! number of requests at once. Pauses and backoff levels of the host hold for them too.
//!
//! **Scope**: RFC 9110, 10.2.3 and 15.5.2 to 15.6.4; RFC 6585, 4; the non-standard Crawl-delay; the RateLimit field of
//! the IETF draft. **Non-goals**: queues, locks and timers belong to the layers.

mod answered;
mod api;
mod backoff;
mod classify;
mod crawl_delay;
mod group;
mod pace;
mod pack;
mod policy;
mod ratelimit;
mod record;
mod runs;
mod state;

pub use answered::ResponseRecord;
pub use api::ApiQuota;
pub use classify::{HostResponse, Signal};
pub use group::GroupBy;
pub use pace::{HostSnapshot, Pace, PaceReason};
pub use pack::PackedHost;
pub use policy::{HostPolicy, LONGEST_PAUSE, LONGEST_WAIT};
pub use record::{HostMark, HostRecord};
pub use state::{Decision, HostState, StartOptions};
