//! Why a request is made: a crawl, a page that a person asked for, or an API used under a key.
//!
//! **Who chose the URL decides.** A person who typed, pasted or clicked it: a user fetch, with a [`UserGrant`] for that one
//! page. A model or a program, whatever a person had asked it before: a crawl of one page. An API for which the site
//! gave out a key and documents limits: [`Api`], as long as the key is on the request.
//!
//! **Flow**: a request carries its [`Purpose`] as an extension; a request without one is a crawl, the strictest.
//! [`Purpose::kind_of`] tells what a request is in the end: an API request without its key is a crawl too.

mod api;
mod grant;
mod kind;
mod session;
mod slots;
mod target;

pub use api::{Api, ApiKey, ApiLimit, InvalidApi};
pub use grant::{Attempt, GrantRefusal, GrantRefused, UserGrant};
pub use kind::{Purpose, PurposeKind, RobotsScope};
pub use session::{NotGranted, Session};
