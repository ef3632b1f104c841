//! One URL to be visited, and how urgent it is.

use std::cmp::Reverse;
use std::time::SystemTime;

use http::Uri;
use serde::Serialize;
use tower_etiquette::Origin;

use crate::crawl::visits::Change;

/// A URL to be visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::crawl) struct Target {
    pub(in crate::crawl) uri: Uri,
    pub(in crate::crawl) kind: Kind,
    pub(in crate::crawl) found: Found,
    pub(in crate::crawl) rank: Rank,
    pub(in crate::crawl) read: Read,
    /// Links away from where the crawl started.
    pub(in crate::crawl) depth: usize,
    /// The origin for which a sitemap may speak besides its own.
    pub(in crate::crawl) named_by: Option<Uri>,
    /// Indexes above a sitemap.
    pub(in crate::crawl) indexes: u8,
}

/// A sitemap or a feed, without its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::crawl) struct List {
    pub(in crate::crawl) kind: Kind,
    pub(in crate::crawl) found: Found,
    /// The origin for which a sitemap may speak besides its own.
    pub(in crate::crawl) named_by: Option<Uri>,
    /// Indexes above a sitemap.
    pub(in crate::crawl) indexes: u8,
    /// One that did not change is read from its copy, if there is one.
    pub(in crate::crawl) read: Read,
}

impl List {
    /// One with nothing above it.
    pub(in crate::crawl) fn new(kind: Kind, found: Found) -> Self {
        Self {
            kind,
            found,
            named_by: None,
            indexes: 0,
            read: Read::Ask,
        }
    }
}

/// What a URL is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crawl) enum Kind {
    Sitemap,
    Feed,
    Page,
}

/// What led to a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Found {
    /// The crawl starts with it, or the start page announces it as a sitemap or a feed.
    Start,
    /// A Sitemap line of robots.txt.
    Robots,
    /// An entry of a sitemap.
    Sitemap,
    /// An entry of a feed.
    Feed,
    /// A link of a page.
    Link,
}

/// The order of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::crawl) enum Rank {
    /// Where the crawl starts.
    Start,
    /// New, or changed since the last visit: the newest first, those without a date last.
    Changed(Reverse<Option<SystemTime>>),
    /// Listed without a date.
    Undated,
    /// Listed, and unchanged since the last visit.
    Unchanged,
    /// Known by links only: the nearest first.
    Linked,
}

/// How a URL is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::crawl) enum Read {
    /// As the cache says: not at all while the copy is fresh, else under conditions.
    Ask,
    /// Under conditions even where the copy is fresh: the site says that it changed after the last visit.
    Anew,
    /// Only from the copy, if there is one that may be used; the site is not asked.
    Copy,
}

impl Rank {
    pub(super) fn of(change: &Change) -> Self {
        match change {
            Change::Changed { at, .. } => Self::Changed(Reverse(*at)),
            Change::Unknown => Self::Undated,
            Change::Unchanged => Self::Unchanged,
        }
    }
}

impl Read {
    pub(in crate::crawl) fn of(change: &Change) -> Self {
        match change {
            Change::Changed { certain: true, .. } => Self::Anew,
            Change::Changed { .. } | Change::Unknown => Self::Ask,
            Change::Unchanged => Self::Copy,
        }
    }
}

impl Target {
    pub(super) fn new(
        uri: Uri,
        kind: Kind,
        found: Found,
        rank: Rank,
        read: Read,
        depth: usize,
    ) -> Self {
        Self {
            uri,
            kind,
            found,
            rank,
            read,
            depth,
            named_by: None,
            indexes: 0,
        }
    }

    /// Whether it takes one from the budget of pages.
    pub(super) fn costs_a_page(&self) -> bool {
        self.kind == Kind::Page && self.read != Read::Copy
    }

    /// Of two reasons to visit a page the one that says more counts: that it changed more than that it did not, where
    /// two lists disagree, and a list more than a link.
    pub(super) fn weight(&self) -> u8 {
        match (self.rank, self.read) {
            (Rank::Linked, _) | (Rank::Start, Read::Ask) => 0,
            (Rank::Undated, _) => 1,
            (Rank::Unchanged, _) | (_, Read::Copy) => 2,
            (Rank::Changed(_), _) | (_, Read::Anew) => 3,
        }
    }
}

/// A host as budgets see it: without the scheme, and without the scheme's port.
pub(in crate::crawl) type Host = String;

/// The host of an absolute URI.
pub(in crate::crawl) fn host_of(uri: &Uri) -> Option<Host> {
    let origin = Origin::of(uri).ok()?;
    Some(match origin.explicit_port() {
        Some(port) => format!("{}:{port}", origin.host()),
        None => origin.host().to_owned(),
    })
}

/// A URI in one spelling of its scheme and host, and with a slash for an empty path.
pub(in crate::crawl) fn spelled(uri: &Uri) -> Option<Uri> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Origin::of(uri).ok()?.uri(path)
}
