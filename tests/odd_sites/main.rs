//! Sites as they really are: what such a site gets asked, and what the caller is told. Each is played through the client,
//! through the program `fetch` and through the gateway.

mod coding;
mod errors;
mod not_modified;
mod sent;
mod sitemaps;
