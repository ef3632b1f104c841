//! What a sitemap holds: locations, and what is said about them.

use std::time::SystemTime;

use http::Uri;

use super::date::LastMod;
use super::extension::Extensions;

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
    pub(super) fn parse(text: &str) -> Option<Self> {
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
    /// What other vocabularies say, if [`SitemapReader::with_extensions`](super::SitemapReader::with_extensions) asked for it.
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
