//! tower layers that make any automated HTTP client recognisable, reachable and controllable by the people who run
//! the sites it visits.

mod clock;
mod ext;
mod flight;
mod macros;
mod ready;

pub use clock::TokioClock;
pub use etiquette_core::{Clock, Now, Origin, Purpose, PurposeKind, Refusal};
pub use ext::Facts;

/// A boxed error, the error type of every layer: each of them can refuse.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
