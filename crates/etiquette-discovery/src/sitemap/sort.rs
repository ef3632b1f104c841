//! What becomes of the entries: given out, left out as another host's, or counted as a warning.

use http::Uri;

use super::entry::{Entry, Item, SitemapKind};
use super::limits::{Limits, PROTOCOL_ENTRIES, PROTOCOL_LOCATION};
use super::scope::{Judged, SitemapScope};
use super::summary::Warning;
use super::xml::Draft;

/// What becomes of the entries.
#[derive(Debug)]
pub(super) struct Sort {
    pub(super) scope: SitemapScope,
    pub(super) limits: Limits,
    resolved: String,
    pub(super) entries: u64,
    pub(super) foreign: u64,
    pub(super) truncated: bool,
    /// There were more entries than the limit allows.
    pub(super) full: bool,
    pub(super) warnings: Vec<Warning>,
}

impl Sort {
    pub(super) fn new(uri: &Uri) -> Self {
        Self {
            scope: SitemapScope::new(uri),
            limits: Limits::default(),
            resolved: String::new(),
            entries: 0,
            foreign: 0,
            truncated: false,
            full: false,
            warnings: Vec::new(),
        }
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// A line of a text sitemap.
    pub(super) fn location(&mut self, location: &str, on: &mut dyn FnMut(Item<'_>)) {
        self.item(SitemapKind::Text, location, &Draft::default(), on);
    }

    pub(super) fn entry(
        &mut self,
        kind: SitemapKind,
        draft: &mut Draft,
        on: &mut dyn FnMut(Item<'_>),
    ) {
        if draft.bad_date {
            self.warn(Warning::BadDate);
        }
        if draft.has_location {
            self.item(kind, &draft.location, draft, on);
        } else {
            self.warn(Warning::BadLocation);
        }
    }

    fn item(
        &mut self,
        kind: SitemapKind,
        location: &str,
        draft: &Draft,
        on: &mut dyn FnMut(Item<'_>),
    ) {
        let seen = self.entries + self.foreign;
        if seen >= self.limits.entries {
            self.full = true;
            return;
        }
        if seen >= PROTOCOL_ENTRIES {
            self.warn(Warning::ManyEntries);
        }
        if location.len() >= PROTOCOL_LOCATION {
            self.warn(Warning::LongLocation);
        }
        match self.scope.judge(location.trim(), &mut self.resolved) {
            Judged::Unusable => self.warn(Warning::BadLocation),
            Judged::Foreign(location) => {
                self.foreign += 1;
                on(Item::Foreign(location));
            }
            Judged::Own(location) => {
                self.entries += 1;
                let entry = Entry {
                    location,
                    last_mod: draft.last_mod,
                    change_frequency: draft.change_frequency,
                    priority: draft.priority,
                    extensions: draft.extra.wanted(),
                };
                on(match kind {
                    SitemapKind::Index => Item::Sitemap(entry),
                    _ => Item::Page(entry),
                });
            }
        }
    }
}
