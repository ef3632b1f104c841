//! The XML forms: `urlset`, `sitemapindex`, and RSS, RDF and Atom feeds that serve as sitemaps.
//!
//! The text of a document comes in windows. A window is read event by event from a slice; what stands at its end and is
//! not complete is left for the next one. No entity but the five of XML and character references is expanded, so that
//! no document can grow in memory; everything else that looks like one stays as written.

use quick_xml::Reader;
use quick_xml::errors::{Error, IllFormedError};
use quick_xml::events::{BytesStart, Event};

use super::date::LastMod;
use super::entry::{ChangeFrequency, SitemapKind};
use super::escape::{attribute, referenced, unescaped};
use super::extension::Extra;

/// The longest text of an element that is read; URIs beyond it are refused by everyone.
const MAX_TEXT: usize = 16 * 1024;
/// Prefixes that may be bound to the sitemap namespace.
const MAX_PREFIXES: usize = 8;

/// What an element of the document led to.
pub(super) enum Found {
    /// An entry is complete.
    Entry,
    /// The root is not that of a sitemap.
    Foreign,
}

/// How the reading of a window ended.
pub(super) enum Ended {
    /// This many bytes were read; the rest wants more text.
    At(usize),
    /// The root is closed: what follows is no part of the document.
    Closed,
    /// Nothing sensible follows.
    Broken,
    /// It is no sitemap.
    Foreign,
}

/// The entry that is being read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) location: String,
    pub(super) has_location: bool,
    pub(super) last_mod: Option<LastMod>,
    pub(super) bad_date: bool,
    pub(super) change_frequency: Option<ChangeFrequency>,
    pub(super) priority: Option<f32>,
    pub(super) extra: Extra,
    /// A date of less weight than the one that says when the entry changed.
    published: Option<LastMod>,
    /// An identifier that serves as location when there is none.
    identifier: String,
}

impl Draft {
    fn clear(&mut self) {
        self.location.clear();
        self.identifier.clear();
        self.has_location = false;
        self.last_mod = None;
        self.published = None;
        self.bad_date = false;
        self.change_frequency = None;
        self.priority = None;
        self.extra.clear();
    }

    fn complete(&mut self) {
        self.last_mod = self.last_mod.or(self.published);
        if !self.has_location && !self.identifier.is_empty() {
            std::mem::swap(&mut self.location, &mut self.identifier);
            self.has_location = true;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Location,
    Identifier,
    LastMod,
    Published,
    ChangeFrequency,
    Priority,
    Extra(super::extension::Field),
}

/// Where in the document the reader is.
#[derive(Debug, Default)]
pub(super) struct Xml {
    kind: Option<SitemapKind>,
    /// Prefixes under which elements are those of the root's vocabulary; the empty one is always among them.
    prefixes: Vec<String>,
    depth: u32,
    /// The depth of the open entry and its name as written.
    entry: Option<u32>,
    entry_name: String,
    field: Option<(Field, u32)>,
    text: String,
    draft: Draft,
}

impl Xml {
    pub(super) fn new(with_extensions: bool) -> Self {
        let mut xml = Self::default();
        if with_extensions {
            xml.draft.extra.turn_on();
        }
        xml
    }

    pub(super) fn kind(&self) -> Option<SitemapKind> {
        self.kind
    }

    /// Reads a window; `last` says that no more text comes.
    pub(super) fn read(
        &mut self,
        window: &str,
        last: bool,
        on_entry: &mut dyn FnMut(SitemapKind, &mut Draft),
    ) -> Ended {
        // In the middle of a document this is text, and a window may begin with it. The parser would drop it.
        let marks = window.len() - window.trim_start_matches('\u{feff}').len();
        self.push(&window[..marks]);
        let window = &window[marks..];
        let read_to = |at| Ended::At(marks + at);
        let mut reader = Reader::from_str(window);
        let config = reader.config_mut();
        config.check_end_names = false;
        config.allow_unmatched_ends = true;
        config.expand_empty_elements = false;
        let mut done = 0;
        loop {
            let event = reader.read_event();
            let at = usize::try_from(reader.buffer_position()).unwrap_or(window.len());
            let step = match event {
                Ok(Event::Start(start)) => self.start(&start, false),
                Ok(Event::Empty(start)) => self.start(&start, true),
                Ok(Event::End(end)) => self.end(end.name().into_inner()),
                Ok(Event::Text(text)) => {
                    self.push(&text);
                    None
                }
                Ok(Event::CData(text)) => {
                    self.push(&text);
                    None
                }
                Ok(Event::GeneralRef(reference)) => {
                    self.push_reference(&reference);
                    None
                }
                Ok(Event::Eof) => return read_to(window.len()),
                Ok(_) => None,
                // An ampersand that begins no reference is text, as locations often have it, unless what makes it one
                // may be still to come.
                Err(Error::IllFormed(IllFormedError::UnclosedReference))
                    if at < window.len() || last =>
                {
                    self.push(&window[done..at]);
                    None
                }
                Err(Error::IllFormed(IllFormedError::UnclosedReference)) => return read_to(done),
                // Another complete token that is not well-formed says nothing.
                Err(Error::IllFormed(_)) => None,
                // A token that is not complete.
                Err(_) if !last => return read_to(done),
                Err(_) => return Ended::Broken,
            };
            match step {
                None => {}
                Some(Found::Foreign) => return Ended::Foreign,
                Some(Found::Entry) => {
                    if let Some(kind) = self.kind {
                        self.draft.complete();
                        on_entry(kind, &mut self.draft);
                    }
                    self.draft.clear();
                }
            }
            if self.depth == 0 && self.kind.is_some() {
                return Ended::Closed;
            }
            done = at;
        }
    }

    /// Gives out the entry that the end of the text cut, if its location was complete.
    pub(super) fn cut(&mut self, on_entry: &mut dyn FnMut(SitemapKind, &mut Draft)) {
        if let (Some(kind), Some(_)) = (self.kind, self.entry.take())
            && self.draft.has_location
        {
            self.draft.complete();
            on_entry(kind, &mut self.draft);
        }
    }

    fn start(&mut self, start: &BytesStart<'_>, empty: bool) -> Option<Found> {
        let depth = self.depth;
        if !empty {
            self.depth = depth.saturating_add(1);
        }
        if self.field.is_some() {
            return None;
        }
        let name = start.name().into_inner();
        let (prefix, local) = split(name);
        let Some(kind) = self.kind else {
            return self.root(start, prefix, local, empty);
        };
        let Some(entry) = self.entry else {
            if local == entry_name(kind) && depth <= 2 && self.is_core(prefix) && !empty {
                self.entry = Some(depth);
                if self.entry_name != name {
                    self.entry_name.clear();
                    self.entry_name.push_str(name);
                }
                self.draft.clear();
                if kind == SitemapKind::Rdf {
                    self.identify(start);
                }
            }
            return None;
        };
        let field = if depth == entry + 1 {
            self.field_of(kind, prefix, local, start)
        } else {
            None
        };
        let field = field.or_else(|| {
            if self.draft.extra.wanted().is_some()
                && kind == SitemapKind::UrlSet
                && !self.is_core(prefix)
            {
                self.draft.extra.start(local, start).map(Field::Extra)
            } else {
                None
            }
        });
        if let Some(field) = field
            && !empty
        {
            self.text.clear();
            self.field = Some((field, depth));
        }
        None
    }

    fn root(
        &mut self,
        start: &BytesStart<'_>,
        prefix: &str,
        local: &str,
        empty: bool,
    ) -> Option<Found> {
        let kind = match local {
            "urlset" => SitemapKind::UrlSet,
            "sitemapindex" => SitemapKind::Index,
            "rss" => SitemapKind::Rss,
            "RDF" => SitemapKind::Rdf,
            "feed" => SitemapKind::Atom,
            _ => return Some(Found::Foreign),
        };
        self.kind = Some(kind);
        self.prefixes.push(String::new());
        self.prefixes.push(prefix.to_owned());
        for attribute in start.attributes().with_checks(false).flatten() {
            let key = attribute.key.into_inner();
            let value: &str = &attribute.value;
            let bound = value.contains("sitemaps.org/schemas/sitemap/")
                || value.contains("google.com/schemas/sitemap/");
            if let Some(prefix) = key.strip_prefix("xmlns:")
                && bound
                && self.prefixes.len() < MAX_PREFIXES
            {
                self.prefixes.push(prefix.to_owned());
            }
        }
        if empty {
            // `<urlset/>` opens and closes the document.
            self.depth = 0;
        }
        None
    }

    fn is_core(&self, prefix: &str) -> bool {
        prefix.is_empty() || self.prefixes.iter().any(|known| known == prefix)
    }

    fn field_of(
        &mut self,
        kind: SitemapKind,
        prefix: &str,
        local: &str,
        start: &BytesStart<'_>,
    ) -> Option<Field> {
        let core = self.is_core(prefix);
        match (kind, local) {
            (SitemapKind::UrlSet | SitemapKind::Index, _) if core => match local {
                "loc" if !self.draft.has_location => Some(Field::Location),
                "lastmod" => Some(Field::LastMod),
                "changefreq" => Some(Field::ChangeFrequency),
                "priority" => Some(Field::Priority),
                _ => None,
            },
            (SitemapKind::Rss | SitemapKind::Rdf, "link") if core && !self.draft.has_location => {
                Some(Field::Location)
            }
            (SitemapKind::Rss, "guid") if core => {
                let is_link = attribute(start, "isPermaLink").is_none_or(|value| value != "false");
                is_link.then_some(Field::Identifier)
            }
            (SitemapKind::Rss, "pubDate") | (SitemapKind::Rss | SitemapKind::Rdf, "date") => {
                Some(Field::Published)
            }
            (SitemapKind::Rss | SitemapKind::Rdf, "updated" | "modified") => Some(Field::LastMod),
            (SitemapKind::Atom, "updated") if core => Some(Field::LastMod),
            (SitemapKind::Atom, "published") if core => Some(Field::Published),
            (SitemapKind::Atom, "link") if core => {
                let alternate = attribute(start, "rel").is_none_or(|rel| rel == "alternate");
                if alternate
                    && !self.draft.has_location
                    && let Some(href) = attribute(start, "href")
                    && href.len() <= MAX_TEXT
                {
                    self.draft.location = href;
                    self.draft.has_location = true;
                }
                None
            }
            _ => None,
        }
    }

    /// An RDF item is named by an attribute.
    fn identify(&mut self, start: &BytesStart<'_>) {
        for attribute in start.attributes().with_checks(false).flatten() {
            if attribute.key.into_inner().ends_with(":about") && attribute.value.len() <= MAX_TEXT {
                self.draft.identifier = unescaped(&attribute.value);
                return;
            }
        }
    }

    fn end(&mut self, name: &str) -> Option<Found> {
        self.depth = self.depth.saturating_sub(1);
        if let Some((field, depth)) = self.field {
            // The end of the entry also ends a field whose own end is missing.
            let entry_ends = self.depth > depth && name == self.entry_name;
            if self.depth > depth && !entry_ends {
                return None;
            }
            self.field = None;
            self.set(field);
        }
        let entry = self.entry?;
        if self.depth > entry && name != self.entry_name {
            self.draft.extra.end(name);
            return None;
        }
        self.depth = entry;
        self.entry = None;
        Some(Found::Entry)
    }

    fn push(&mut self, text: &str) {
        if self.field.is_some() && self.text.len() <= MAX_TEXT {
            self.text.push_str(text);
        }
    }

    fn push_reference(&mut self, name: &str) {
        if self.field.is_none() {
            return;
        }
        match referenced(name) {
            Some(c) => self.text.push(c),
            None => {
                self.push("&");
                self.push(name);
                self.push(";");
            }
        }
    }

    fn set(&mut self, field: Field) {
        let text = self.text.trim();
        if text.is_empty() || text.len() > MAX_TEXT {
            return;
        }
        let draft = &mut self.draft;
        match field {
            Field::Location => {
                draft.has_location = true;
                if text.len() == self.text.len() {
                    std::mem::swap(&mut draft.location, &mut self.text);
                } else {
                    draft.location.clear();
                    draft.location.push_str(text);
                }
            }
            Field::Identifier => {
                draft.identifier.clear();
                draft.identifier.push_str(text);
            }
            Field::LastMod | Field::Published => {
                let date = match self.kind {
                    Some(SitemapKind::Rss) => LastMod::parse_rss(text),
                    _ => LastMod::parse(text),
                };
                draft.bad_date |= date.is_none();
                if field == Field::LastMod {
                    draft.last_mod = date;
                } else {
                    draft.published = date;
                }
            }
            Field::ChangeFrequency => draft.change_frequency = ChangeFrequency::parse(text),
            Field::Priority => draft.priority = priority(text),
            Field::Extra(field) => draft.extra.set(field, text),
        }
    }
}

/// Prefix and local name.
fn split(name: &str) -> (&str, &str) {
    // Names are short: a loop is quicker than a search that wants to be quick.
    match name.bytes().position(|byte| byte == b':') {
        Some(colon) => (&name[..colon], &name[colon + 1..]),
        None => ("", name),
    }
}

fn priority(text: &str) -> Option<f32> {
    match *text.as_bytes() {
        // As nearly all are written.
        [b'0', b'.', tenth @ b'0'..=b'9'] => Some(f32::from(tenth - b'0') / 10.0),
        _ => text
            .parse()
            .ok()
            .filter(|priority| (0.0..=1.0).contains(priority)),
    }
}

fn entry_name(kind: SitemapKind) -> &'static str {
    match kind {
        SitemapKind::Index => "sitemap",
        SitemapKind::Rss | SitemapKind::Rdf => "item",
        SitemapKind::Atom => "entry",
        SitemapKind::UrlSet | SitemapKind::Text => "url",
    }
}
