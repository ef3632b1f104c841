//! Refusals and errors.
//!
//! Every layer has [`BoxError`] as its error, because each can refuse. [`Refusal::find`] finds the refusal in an error,
//! however deep it is wrapped; each variant of [`Refusal`] holds one of the structs below, which name the origin, the
//! cause, when to come back if that is known, and where the client's operator can be reached.
//!
//! ```
//! use tower_etiquette::error::{BoxError, Refusal};
//!
//! fn explain(error: &BoxError) {
//!     match Refusal::find(&**error) {
//!         Some(refusal) => println!("{} (again at {:?})", refusal.explain(), refusal.retry_at()),
//!         None => println!("{error}"),
//!     }
//! }
//! # explain(&BoxError::from("connection refused"));
//! ```

pub use etiquette_core::InvalidOrigin;
pub use etiquette_core::decide::accept::{InvalidAccept, TypeRefusal, TypeRefused};
pub use etiquette_core::decide::address::AddressRefused;
pub use etiquette_core::decide::preferences::UseRefused;
pub use etiquette_core::decide::robots_txt::FetchFailure;
pub use etiquette_core::store::StoreFailed;
pub use etiquette_core::vocabulary::identity::{InvalidIdentity, NameRefusal, NameRefused};
pub use etiquette_core::vocabulary::purpose::{GrantRefusal, GrantRefused, InvalidApi, NotGranted};
pub use etiquette_core::vocabulary::refusal::*;

pub use crate::box_error::BoxError;
#[cfg(feature = "client")]
pub use crate::client::BodyError;
#[cfg(feature = "disk")]
pub use crate::disk::DiskError;
pub use crate::host_budget::LeaseLost;
pub use crate::page::Unpublished;
