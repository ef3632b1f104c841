//! Signed requests: HTTP Message Signatures (RFC 9421) in the profile of Web Bot Auth
//! (draft-ietf-webbotauth-httpsig-protocol).
//!
//! **Flow**: a [`Signer`] holds a [`SigningKey`] and the link to the key directory, and signs the head of each attempt
//! anew. [`verify`] is the other side, for tests and audits. [`directory`] is the document that the link leads to.
//!
//! **Scope**: Ed25519, requests, and the signed directory response. Components: the derived ones of a request, header
//! fields, and members of dictionary fields (`;key`). **Non-goals**: `;sf`, `;bs`, `;tr`, `@query-param`, other
//! algorithms; fetching and caching of key directories.
//!
//! **Keys** are shown by no `Debug` and no error. The key that RFC 9421 publishes for tests is refused.

mod component;
pub mod directory;
mod input;
mod key;
mod signer;
mod verify;

pub use component::{Component, MissingComponent};
pub use input::SignatureInput;
pub use key::{InvalidKey, PublicKey, SigningKey};
pub use signer::{AgentForm, InvalidSigner, Signer};
pub use verify::{Outcome, Reason, verify};
