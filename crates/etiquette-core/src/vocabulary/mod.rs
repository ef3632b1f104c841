//! The nouns that everything else speaks of: who asks, why, whom, and how a request is refused.

pub mod identity;
pub mod origin;
pub mod purpose;
#[cfg(feature = "url")]
#[cfg_attr(docsrs, doc(cfg(feature = "url")))]
pub mod reference;
pub mod refusal;
