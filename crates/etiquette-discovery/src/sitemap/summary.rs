//! What a document was, and why it was not read on.

use std::fmt;

use super::entry::SitemapKind;

/// Why a body is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SitemapError {
    /// The body is none of the forms of a sitemap: usually an error page.
    NotASitemap,
    /// The body is longer than [`Limits::bytes`](super::Limits::bytes) after decompression.
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
}

impl fmt::Display for SitemapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASitemap => f.write_str("the body is not a sitemap"),
            Self::TooLarge { limit } => write!(f, "the sitemap is longer than {limit} bytes"),
        }
    }
}

impl std::error::Error for SitemapError {}

/// What an operator may want to know about their sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Warning {
    /// More than [`PROTOCOL_ENTRIES`](super::PROTOCOL_ENTRIES).
    ManyEntries,
    /// More than [`PROTOCOL_BYTES`](super::PROTOCOL_BYTES).
    ManyBytes,
    /// A location of [`PROTOCOL_LOCATION`](super::PROTOCOL_LOCATION) characters or more.
    LongLocation,
    /// A location that is no http URI.
    BadLocation,
    /// A date in no form of the W3C profile, or from before the web.
    BadDate,
}

/// What a document was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Its form.
    pub kind: SitemapKind,
    /// Entries that were given out as pages or sitemaps.
    pub entries: u64,
    /// Entries on hosts that the sitemap may not speak for.
    pub foreign: u64,
    /// Bytes after decompression.
    pub bytes: u64,
    /// Whether the document ended before its end, or was not read to it.
    pub truncated: bool,
    /// Whether the file itself was gzip.
    pub gunzipped: bool,
    /// Each warning once.
    pub warnings: Vec<Warning>,
}
