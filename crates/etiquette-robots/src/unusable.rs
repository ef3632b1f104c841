//! Files that are something else than a robots.txt.

use std::fmt;

/// What a robots.txt without a single record seems to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unusable {
    /// Markup: an error page or a single-page application in place of the file.
    Html,
    /// UTF-16 text. RFC 9309, 2.2 asks for UTF-8.
    Utf16,
    /// Something else without any line that says something.
    NoRecord,
}

impl Unusable {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            Self::Utf16
        } else if bytes.trim_ascii_start().starts_with(b"<") {
            Self::Html
        } else {
            Self::NoRecord
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Html => "a web page in place of a robots.txt",
            Self::Utf16 => "UTF-16 text where UTF-8 is expected",
            Self::NoRecord => "no line of it is a robots.txt record",
        })
    }
}
