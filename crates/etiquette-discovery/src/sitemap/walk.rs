//! Which sitemaps of a site to read: an index leads to sitemaps, and hostile ones lead nowhere or in circles.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::time::SystemTime;

use http::Uri;

use super::entry::{Change, Entry};

/// A sitemap to read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SitemapTask {
    /// Where it is.
    pub uri: Uri,
    /// The origin for which it may speak besides its own: that of the robots.txt that named it or the index above it.
    pub named_by: Option<Uri>,
    /// Indexes above it.
    pub depth: u8,
}

/// Why a sitemap is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// It was read or waits to be read.
    Known,
    /// More indexes are above it than the walk allows.
    TooDeep,
    /// The walk has as many sitemaps as it may.
    TooMany,
    /// Its index says that it did not change since the last visit.
    Unchanged,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "the sitemap is known already",
            Self::TooDeep => "too many indexes are above the sitemap",
            Self::TooMany => "the walk has as many sitemaps as it may",
            Self::Unchanged => "the sitemap did not change since the last visit",
        })
    }
}

impl std::error::Error for Refused {}

/// The order in which the sitemaps of a site are read, breadth first, each once.
///
/// By default at most 500 sitemaps, at most 3 indexes deep; the protocol has one level, sites have two.
#[derive(Clone, Debug)]
#[must_use]
pub struct SitemapWalk {
    waiting: VecDeque<SitemapTask>,
    known: HashSet<Uri>,
    max_sitemaps: usize,
    max_depth: u8,
    since: Option<SystemTime>,
}

impl Default for SitemapWalk {
    fn default() -> Self {
        Self::new()
    }
}

impl SitemapWalk {
    /// A walk without a sitemap.
    pub fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            known: HashSet::new(),
            max_sitemaps: 500,
            max_depth: 3,
            since: None,
        }
    }

    /// Reads at most this many sitemaps, indexes included.
    pub fn max_sitemaps(mut self, sitemaps: usize) -> Self {
        self.max_sitemaps = sitemaps;
        self
    }

    /// Allows this many indexes above a sitemap.
    pub fn max_depth(mut self, indexes: u8) -> Self {
        self.max_depth = indexes;
        self
    }

    /// Leaves out sitemaps of which their index says that they did not change since then.
    pub fn changed_since(mut self, since: SystemTime) -> Self {
        self.since = Some(since);
        self
    }

    /// Adds a sitemap that was discovered; `named_by` is the origin whose robots.txt named it.
    ///
    /// # Errors
    /// [`Refused`] says why it is not read.
    pub fn add(&mut self, uri: Uri, named_by: Option<Uri>) -> Result<(), Refused> {
        self.push(SitemapTask {
            uri,
            named_by,
            depth: 0,
        })
    }

    /// Adds what the index `parent` holds.
    ///
    /// # Errors
    /// [`Refused`] says why it is not read.
    pub fn add_from(&mut self, parent: &SitemapTask, entry: &Entry<'_>) -> Result<(), Refused> {
        if let Some(since) = self.since
            && entry.changed_since(since) == Change::Denied
        {
            return Err(Refused::Unchanged);
        }
        if parent.depth >= self.max_depth {
            return Err(Refused::TooDeep);
        }
        self.push(SitemapTask {
            uri: entry.uri(),
            // A sitemap of an index may speak for the hosts for which the index may; two hosts at most, and the
            // sitemap's own is implied.
            named_by: parent.named_by.clone().or_else(|| Some(parent.uri.clone())),
            depth: parent.depth + 1,
        })
    }

    fn push(&mut self, task: SitemapTask) -> Result<(), Refused> {
        if self.known.contains(&task.uri) {
            return Err(Refused::Known);
        }
        if self.known.len() >= self.max_sitemaps {
            return Err(Refused::TooMany);
        }
        self.known.insert(task.uri.clone());
        self.waiting.push_back(task);
        Ok(())
    }

    /// The sitemap to read next.
    pub fn next_task(&mut self) -> Option<SitemapTask> {
        self.waiting.pop_front()
    }
}
