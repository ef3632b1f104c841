//! What a site wishes to be done, and not done, with what it serves.
//!
//! **Flow**: each source is read by itself: [`content_usage`] (Content-Usage, draft-ietf-aipref-attach and -vocab),
//! [`content_signal`] (Content-Signal), [`directives`] (X-Robots-Tag and robots meta elements), [`tdm`] (TDM
//! Reservation Protocol). [`Preferences`] combines them: any disallow wins, then any allow; each source stays visible.
//!
//! **Scope**: wishes about use. They never grant a crawl: robots.txt decides that by itself. **Non-goals**: legal
//! advice. `unknown` means that nobody said anything.

mod combine;
pub mod content_signal;
pub mod content_usage;
pub mod directives;
mod refused;
pub mod tdm;
mod wish;

pub use combine::{Preferences, Statement, StatementSource};
pub use directives::Directives;
pub use refused::UseRefused;
pub use tdm::Tdm;
pub use wish::{Use, Wish, Wishes};
