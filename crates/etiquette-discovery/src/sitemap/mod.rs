//! Sitemaps, read as they arrive.
//!
//! # Flow
//! [`SitemapReader::feed`] takes the bytes of a body in any pieces and calls back with each [`Item`] as soon as it is
//! complete; [`SitemapReader::finish`] says what the document was. Which of the pages to ask for is decided by
//! [`Entry::changed_since`], which sitemaps of an index to read by [`SitemapWalk`].
//!
//! # Scope
//! `urlset` and `sitemapindex` in any of the namespaces that were ever used and in none, text with one URI a line, and
//! RSS, RDF and Atom feeds that are listed as sitemaps; as they are or in one layer of gzip, told by its magic bytes
//! and never by a name or label. Images, videos, news and translations on request
//! ([`SitemapReader::with_extensions`]).
//!
//! A sitemap speaks for its own host, and for the host whose robots.txt named it ([`SitemapReader::named_by`]): other
//! locations are [`Item::Foreign`]. An entry is no permission: robots.txt still decides on each page.
//!
//! # Bounds
//! Memory does not depend on the size of a sitemap: a token may have 256 KiB, a window about a megabyte. sitemaps.org's
//! limits (50,000 entries, 50 MiB) are warnings; [`Limits`] stop the reading. Entities are not expanded. What was
//! read before a document breaks is kept.
//!
//! # Non-goals
//! Judging the worth of `priority` and `changefreq`: they are given out as told.

mod date;
mod decode;
mod entry;
mod escape;
mod extension;
mod limits;
mod reader;
mod scope;
mod sort;
mod summary;
mod text;
mod walk;
mod xml;

pub use date::LastMod;
pub use entry::{Change, ChangeFrequency, Entry, Item, SitemapKind};
pub use extension::{Extensions, News};
pub use limits::{Limits, PROTOCOL_BYTES, PROTOCOL_ENTRIES, PROTOCOL_LOCATION};
pub use reader::SitemapReader;
pub use summary::{SitemapError, Summary, Warning};
pub use walk::{Refused, SitemapTask, SitemapWalk};
