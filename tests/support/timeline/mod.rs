//! Timelines of Retry-After and budgets: rows of `retry_after/scenarios.json` and others of their form, played against the
//! real layers on paused time and checked on what the origin saw.

mod arrangement;
mod caller;
mod expect;
mod observed;
mod origin;
mod run;
mod scenario;

pub use arrangement::{Arrangement, Nodes};
pub use expect::check;
pub use observed::{Completion, Group, Observed, ObservedRequest, RefusedRequest};
pub use run::{play, play_on};
pub use scenario::{Scenario, Submit, is_wanted};
