//! All layers in the right order, in one call.
//!
//! ```text
//! UserAgent · Accept       the name, and what can be read
//! Preferences              what does the site wish to be done with it?
//! Robots                   may it be asked for?
//! ConditionalCache         is it known already?
//! RetryAfter               did the site ask for a pause?
//! HostBudget               is it this request's turn?
//! your client
//! ```
//!
//! Redirects belong outside the stack, so that each hop meets the rules, the cache and the budget of its own host: a
//! client that follows redirects by itself hides them from every layer. The ready-made client (feature `client`) does
//! it right.

mod builder;
mod layer;
mod service;

pub use builder::Etiquette;
pub use layer::EtiquetteLayer;
pub use service::EtiquetteService;
