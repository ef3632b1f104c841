//! The reader: bytes in pieces become text, text becomes entries.

use http::Uri;

use super::decode::Decode;
use super::entry::{Item, SitemapKind};
use super::limits::{Limits, PROTOCOL_BYTES};
use super::sort::Sort;
use super::summary::{SitemapError, Summary, Warning};
use super::text::Text;
use super::xml::{Ended, Xml};

/// The longest single token (tag, comment, declaration), in bytes of text.
const MAX_TOKEN: usize = 256 * 1024;
/// Text is parsed when this much has gathered.
const WINDOW: usize = 32 * 1024;
/// Text of this length is parsed where it came, without a copy.
const DIRECT: usize = 512;

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
#[path = "reader_tests.rs"]
mod tests;
