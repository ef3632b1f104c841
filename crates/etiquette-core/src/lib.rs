//! The vocabulary and the decisions of tower-etiquette.
//!
//! Everything here is pure: it takes bytes, headers and the present, and returns a value that names the next step.
//! Nothing reads a clock, sleeps, locks or logs. The layers of `tower-etiquette` ask these decisions and carry them out.
//!
//! | folder | what stands there |
//! | --- | --- |
//! | [`vocabulary`] | the nouns: identity, purpose, origin, refusal |
//! | [`decide`] | the decisions: accept, host, cache policy, robots.txt, Retry-After, preferences |
//! | `field` | the syntax of field values |
//! | [`store`] | the traits of stores, and the records that they keep |
//! | `signing` | HTTP message signatures (RFC 9421), behind the feature `signatures` |
//!
//! # Features
//! | feature | brings |
//! | --- | --- |
//! | `public-suffix` | budgets by registrable domain: `GroupBy::RegistrableDomain` |
//! | `serde` | identities from configuration files |
//! | `signatures` | `signing` |
//! | `test-util` | the published test key |
//! | `url` | `vocabulary::reference`: URLs and references by the URL Standard |
//! | `unstable` | internals that the other crates of this project share, such as `field`; they may change in any release |
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without it much is private, is used by other crates only, and is spoken of in the docs of what is public.
#![cfg_attr(
    not(feature = "unstable"),
    allow(
        dead_code,
        unreachable_pub,
        unused_imports,
        clippy::wrong_self_convention,
        rustdoc::broken_intra_doc_links,
        rustdoc::private_intra_doc_links
    )
)]

pub mod clock;
pub mod decide;
#[cfg(feature = "unstable")]
pub mod field;
#[cfg(not(feature = "unstable"))]
mod field;
#[cfg(feature = "signatures")]
pub mod signing;
pub mod store;
pub mod vocabulary;

pub use clock::{Clock, Now};
pub use decide::accept::Accept;
pub use decide::retry_after::RetryAfter;
pub use vocabulary::identity::Identity;
pub use vocabulary::origin::{InvalidOrigin, Origin};
pub use vocabulary::purpose::{Api, Purpose, PurposeKind, RobotsScope, Session, UserGrant};
pub use vocabulary::refusal::Refusal;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
