//! What the protocol of sitemaps.org allows, and where reading stops.

/// sitemaps.org: a sitemap has at most 50,000 entries.
pub const PROTOCOL_ENTRIES: u64 = 50_000;
/// sitemaps.org: a sitemap has at most 50 MiB, uncompressed.
pub const PROTOCOL_BYTES: u64 = 52_428_800;
/// sitemaps.org: a location has less than 2,048 characters.
pub const PROTOCOL_LOCATION: usize = 2_048;

/// Where reading stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Entries of all kinds; 1,000,000 by default, twenty times what the protocol allows.
    pub entries: u64,
    /// Bytes after decompression; 256 MiB by default, five times what the protocol allows.
    pub bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 20 * PROTOCOL_ENTRIES,
            bytes: 256 * 1024 * 1024,
        }
    }
}

impl Limits {
    /// Stops after this many entries.
    #[must_use]
    pub fn entries(mut self, entries: u64) -> Self {
        self.entries = entries;
        self
    }

    /// Stops after this many bytes, counted after decompression.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }
}
