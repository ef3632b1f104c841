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
mod extension;
mod scope;
mod sort;
mod text;
mod walk;
pub(crate) mod xml;

use std::fmt;
use std::time::SystemTime;

use http::Uri;

pub use date::LastMod;
pub use extension::{Extensions, News};
pub use walk::{Refused, SitemapTask, SitemapWalk};

use decode::Decode;
use sort::Sort;
use text::Text;
use xml::{Ended, Xml};

/// The longest single token (tag, comment, declaration), in bytes of text.
const MAX_TOKEN: usize = 256 * 1024;
/// Text is parsed when this much has gathered.
const WINDOW: usize = 32 * 1024;
/// Text of this length is parsed where it came, without a copy.
const DIRECT: usize = 512;

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

/// The form of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SitemapKind {
    /// A list of pages.
    UrlSet,
    /// A list of sitemaps.
    Index,
    /// One page a line.
    Text,
    /// An RSS feed: its newest pages only.
    Rss,
    /// An RDF feed (RSS 1.0): its newest pages only.
    Rdf,
    /// An Atom feed: its newest pages only.
    Atom,
}

impl SitemapKind {
    /// Whether the document lists the newest pages only, so that a page it does not list may still exist.
    #[must_use]
    pub fn is_feed(self) -> bool {
        matches!(self, Self::Rss | Self::Rdf | Self::Atom)
    }
}

/// How often a page is said to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the words of the protocol")]
pub enum ChangeFrequency {
    Always,
    Hourly,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Never,
}

impl ChangeFrequency {
    fn parse(text: &str) -> Option<Self> {
        const ALL: [(&str, ChangeFrequency); 7] = [
            ("always", ChangeFrequency::Always),
            ("hourly", ChangeFrequency::Hourly),
            ("daily", ChangeFrequency::Daily),
            ("weekly", ChangeFrequency::Weekly),
            ("monthly", ChangeFrequency::Monthly),
            ("yearly", ChangeFrequency::Yearly),
            ("never", ChangeFrequency::Never),
        ];
        ALL.iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, frequency)| *frequency)
    }
}

/// What a sitemap holds, one at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A page of a host that the sitemap may speak for.
    Page(Entry<'a>),
    /// Another sitemap, of a host that this one may speak for.
    Sitemap(Entry<'a>),
    /// A location on a host that the sitemap may not speak for.
    Foreign(&'a str),
}

/// One location and what is said about it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// Where it is: absolute, in the form that a request carries, without fragment.
    pub location: &'a str,
    /// When it changed last.
    pub last_mod: Option<LastMod>,
    /// How often it is said to change.
    pub change_frequency: Option<ChangeFrequency>,
    /// Its weight among the pages of its site, 0 to 1; sites that tell none mean 0.5.
    pub priority: Option<f32>,
    /// What other vocabularies say, if [`SitemapReader::with_extensions`] asked for it.
    pub extensions: Option<&'a Extensions>,
}

impl Entry<'_> {
    /// The location as a value that a request takes.
    ///
    /// # Panics
    /// Never: the location was made from one.
    #[must_use]
    pub fn uri(&self) -> Uri {
        self.location
            .parse()
            .expect("a location in its one form is a URI")
    }

    /// Whether the page is worth asking for again after a visit at `since`.
    #[must_use]
    pub fn changed_since(&self, since: SystemTime) -> Change {
        match self.last_mod {
            None => Change::Unknown,
            Some(date) if date.is_after(since) => Change::Likely,
            Some(_) => Change::Denied,
        }
    }
}

/// What a sitemap says about the time since a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// It changed, or may have changed on the day of the visit.
    Likely,
    /// It did not change.
    Denied,
    /// The sitemap does not tell.
    Unknown,
}

/// Why a body is not read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SitemapError {
    /// The body is none of the forms of a sitemap: usually an error page.
    NotASitemap,
    /// The body is longer than [`Limits::bytes`] after decompression.
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
    /// More than [`PROTOCOL_ENTRIES`].
    ManyEntries,
    /// More than [`PROTOCOL_BYTES`].
    ManyBytes,
    /// A location of [`PROTOCOL_LOCATION`] characters or more.
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

/// Reads one sitemap, piece by piece.
///
/// ```
/// use etiquette_discovery::sitemap::{Item, SitemapReader};
///
/// let uri = "https://www.example.com/sitemap.xml".parse().unwrap();
/// let mut pages = Vec::new();
/// let mut on = |item: Item<'_>| {
///     if let Item::Page(entry) = item {
///         pages.push(entry.uri());
///     }
/// };
/// let mut reader = SitemapReader::new(&uri);
/// for piece in ["<urlset><url><loc>https://www.exam", "ple.com/a</loc></url></urlset>"] {
///     reader.feed(piece.as_bytes(), &mut on)?;
/// }
/// let summary = reader.finish(&mut on)?;
/// assert_eq!(pages, ["https://www.example.com/a"]);
/// assert!(!summary.truncated);
/// # Ok::<(), etiquette_discovery::sitemap::SitemapError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct SitemapReader {
    decode: Decode,
    window: String,
    form: Form,
    sort: Sort,
    with_extensions: bool,
    /// The text is parsed when this much has gathered,
    parse_from: usize,
    /// or when this much has, after a token that was not complete.
    parse_again_from: usize,
}

/// How the text is read.
#[derive(Debug)]
enum Form {
    /// Only white space so far.
    Unknown,
    Xml(Box<Xml>),
    Text(Text),
    /// Nothing more is read.
    Over(Result<SitemapKind, SitemapError>),
}

impl SitemapReader {
    /// A reader for the sitemap at `uri`, its address after redirects.
    pub fn new(uri: &Uri) -> Self {
        Self {
            decode: Decode::default(),
            window: String::new(),
            form: Form::Unknown,
            sort: Sort::new(uri),
            with_extensions: false,
            parse_from: WINDOW,
            parse_again_from: 0,
        }
    }

    /// The origin whose robots.txt named this sitemap, or the index that did for it: it may speak for that host too.
    pub fn named_by(mut self, origin: &Uri) -> Self {
        self.sort.scope.add(origin);
        self
    }

    /// Stops elsewhere than at the [default limits](Limits::default).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.sort.limits = limits;
        self
    }

    /// Also gives out what the image, video, news and XHTML vocabularies say.
    pub fn with_extensions(mut self) -> Self {
        self.with_extensions = true;
        self
    }

    /// Whether more bytes can change anything. A caller may stop the download when this is false.
    #[must_use]
    pub fn wants_more(&self) -> bool {
        !matches!(self.form, Form::Over(_))
    }

    /// Reads the next bytes of the body. Entries may be called back later than the bytes that complete them, the last
    /// ones by [`finish`](Self::finish). The bytes are those after the `Content-Encoding` was removed, which is the client's business.
    ///
    /// # Errors
    /// [`SitemapError`] as soon as it is clear that reading on is of no use; what was called back until then holds.
    pub fn feed(&mut self, bytes: &[u8], mut on: impl FnMut(Item<'_>)) -> Result<(), SitemapError> {
        let mut input = bytes;
        while !input.is_empty() {
            if let Form::Over(outcome) = self.form {
                return outcome.map(|_| ());
            }
            let direct = matches!(self.form, Form::Xml(_)) && input.len() >= DIRECT;
            match direct.then(|| self.decode.direct(&mut input)).flatten() {
                Some(text) => self.read_direct(text, &mut on),
                None => self.decode.step(&mut input, &mut self.window),
            }
            // The first bytes tell what it is, and whether there is any use in reading on.
            let unknown = matches!(self.form, Form::Unknown) && !self.window.is_empty();
            let enough = self.parse_from.max(self.parse_again_from);
            if unknown || self.window.len() >= enough {
                self.read(false, &mut on);
            }
            self.check_size();
        }
        match self.form {
            Form::Over(outcome) => outcome.map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The body is over: reads what is left and says what it was.
    ///
    /// # Errors
    /// [`SitemapError`]; what was called back until then holds.
    pub fn finish(mut self, mut on: impl FnMut(Item<'_>)) -> Result<Summary, SitemapError> {
        if self.wants_more() {
            self.decode.finish(&mut self.window);
            self.check_size();
            self.read(true, &mut on);
        }
        let Form::Over(outcome) = self.form else {
            // White space, or nothing at all.
            return Err(SitemapError::NotASitemap);
        };
        Ok(Summary {
            kind: outcome?,
            entries: self.sort.entries,
            foreign: self.sort.foreign,
            bytes: self.decode.bytes(),
            truncated: self.sort.truncated,
            gunzipped: self.decode.is_gunzipped(),
            warnings: self.sort.warnings,
        })
    }

    fn check_size(&mut self) {
        let bytes = self.decode.bytes();
        let limit = self.sort.limits.bytes;
        if bytes > limit {
            self.form = Form::Over(Err(SitemapError::TooLarge { limit }));
        } else if bytes > PROTOCOL_BYTES {
            self.sort.warn(Warning::ManyBytes);
        }
    }

    /// Reads text where it came; what its end cuts goes to the window.
    fn read_direct(&mut self, mut text: &str, on: &mut dyn FnMut(Item<'_>)) {
        // The token that the last piece cut ends with the first of these, nearly always.
        if !self.window.is_empty()
            && self.window.len() < WINDOW
            && let Some(end) = text.find('>')
        {
            let (rest, after) = text.split_at(end + 1);
            self.window.push_str(rest);
            text = after;
            self.read(false, on);
        }
        if self.window.is_empty() && self.wants_more() {
            let read = self.parse(text, false, on);
            text = &text[read..];
        }
        if self.wants_more() {
            self.window.push_str(text);
        }
    }

    /// Reads what the window holds.
    fn read(&mut self, last: bool, on: &mut dyn FnMut(Item<'_>)) {
        let mut window = std::mem::take(&mut self.window);
        let read = self.parse(&window, last, on);
        if self.wants_more() {
            window.drain(..read);
            // A long token that comes in small pieces is not begun again with each of them.
            let long = window.len() > WINDOW;
            self.parse_again_from = if long { 2 * window.len() } else { 0 };
            self.window = window;
        }
    }

    /// Reads text and says how much of it; the rest wants what comes after it.
    fn parse(&mut self, window: &str, last: bool, on: &mut dyn FnMut(Item<'_>)) -> usize {
        let mut start = 0;
        if matches!(self.form, Form::Unknown) {
            let text = window.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            start = window.len() - text.len();
            self.form = match text.as_bytes().first() {
                None => return window.len(),
                Some(b'<') => Form::Xml(Box::new(Xml::new(self.with_extensions))),
                Some(_) => Form::Text(Text::default()),
            };
        }
        let window = &window[start..];
        let sort = &mut self.sort;
        let (read, over) = match &mut self.form {
            Form::Unknown | Form::Over(_) => return start + window.len(),
            Form::Text(text) => {
                let read = text.read(window, last, &mut |location| {
                    sort.location(location, on);
                });
                let over = if text.is_hopeless() || (last && !text.has_any()) {
                    Some(Err(SitemapError::NotASitemap))
                } else {
                    last.then(|| {
                        sort.truncated |= self.decode.is_broken();
                        Ok(SitemapKind::Text)
                    })
                };
                (read, over)
            }
            Form::Xml(xml) => {
                let ended = xml.read(window, last, &mut |kind, draft| sort.entry(kind, draft, on));
                let kind = xml.kind().ok_or(SitemapError::NotASitemap);
                match ended {
                    Ended::Foreign => (0, Some(Err(SitemapError::NotASitemap))),
                    Ended::Closed => (0, Some(kind)),
                    Ended::At(read) if !last && window.len() - read <= MAX_TOKEN => (read, None),
                    Ended::At(_) | Ended::Broken => {
                        xml.cut(&mut |kind, draft| sort.entry(kind, draft, on));
                        sort.truncated = true;
                        (0, Some(kind))
                    }
                }
            }
        };
        let over = if sort.full {
            sort.truncated = true;
            let kind = match &self.form {
                Form::Xml(xml) => xml.kind(),
                _ => Some(SitemapKind::Text),
            };
            Some(kind.ok_or(SitemapError::NotASitemap))
        } else {
            over
        };
        if let Some(outcome) = over {
            self.form = Form::Over(outcome);
        }
        start + read
    }
}

#[cfg(test)]
mod tests;
