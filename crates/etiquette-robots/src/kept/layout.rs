//! What is stored of a file, and how it is read back.

use std::ops::Range;
use std::time::Duration;

use crate::draft::SectionId;
use crate::record::Record;
use crate::rule_kind::RuleKind;
use crate::token::ProductToken;
use crate::unusable::Unusable;

pub(super) const NONE: u32 = u32::MAX;

/// A rule without an inner wildcard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plain {
    pub(super) end: u32,
    pub(super) facts: Facts,
    /// The longest other rule of the section that is a prefix of this one.
    pub(super) parent: u32,
}

/// A rule with an inner wildcard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wild {
    pub(super) end: u32,
    pub(super) facts: Facts,
    pub(super) letters: u32,
}

/// Line, kind, and one mark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts(pub(super) u32);

impl Facts {
    pub(super) const ALLOW: u32 = 1;
    /// Of a plain rule: one further up the chain may still win.
    pub(super) const OUTRANKED: u32 = 2;
    /// Of a rule with wildcards: it is more specific than what is kept of it is long; see [`Extras::longer`].
    pub(super) const LONGER: u32 = 2;

    pub(super) const fn new(line: u32, allow: bool) -> Self {
        Self(line << 2 | if allow { Self::ALLOW } else { 0 })
    }

    pub(super) const fn line(self) -> u32 {
        self.0 >> 2
    }

    pub(super) const fn allow(self) -> bool {
        self.0 & Self::ALLOW != 0
    }

    pub(super) const fn outranked(self) -> bool {
        self.0 & Self::OUTRANKED != 0
    }

    pub(super) const fn longer(self) -> bool {
        self.0 & Self::LONGER != 0
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Section {
    pub(super) plain_end: u32,
    pub(super) wild_end: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) end: u32,
    pub(super) links_end: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RecordAt {
    pub(super) end: u32,
    pub(super) line: u32,
    /// [`NONE`] before the first group.
    pub(super) section: u32,
    /// A place in [`KNOWN_NAMES`], or their number plus the bytes of the name before the value.
    pub(super) name: u32,
}

/// Names of records that need not be kept as text.
pub(super) const KNOWN_NAMES: &[&str] = &[
    "request-rate",
    "content-signal",
    "content-usage",
    "visit-time",
];

#[derive(Debug, Clone, Copy)]
pub(super) struct SitemapAt {
    pub(super) end: u32,
    pub(super) line: u32,
}

/// The text of a rule that is kept in another form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    /// Plain rules first, then those with wildcards.
    pub(super) rule: u32,
    pub(super) end: u32,
}

/// What many files do not have.
#[derive(Debug, Default)]
pub(super) struct Extras {
    pub(super) written: Box<[Written]>,
    pub(super) written_base: u32,
    /// Rules with wildcards and their specificity, where it is not their length.
    pub(super) longer: Box<[(u32, u32)]>,
    pub(super) records: Box<[RecordAt]>,
    pub(super) records_base: u32,
    pub(super) sitemaps: Box<[SitemapAt]>,
    pub(super) sitemaps_base: u32,
    pub(super) delays: Box<[(SectionId, Duration)]>,
}

/// Where a rule is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleAt {
    Plain(u32),
    Wild(u32),
}

/// A parsed file.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(super) arena: Box<[u8]>,
    pub(super) plain: Box<[Plain]>,
    pub(super) wild: Box<[Wild]>,
    pub(super) sections: Box<[Section]>,
    pub(super) names: Box<[Name]>,
    pub(super) links: Box<[SectionId]>,
    pub(super) wild_base: u32,
    pub(super) names_base: u32,
    pub(super) extras: Option<Box<Extras>>,
    /// The tokens the file was parsed for, unless for all.
    pub(crate) wanted: Option<Box<[ProductToken]>>,
    pub(crate) cut: bool,
    pub(crate) unusable: Option<Unusable>,
    /// Rules that a limit changed or dropped.
    pub(crate) over_limit: u32,
}

pub(super) fn without_last_star(canonical: &[u8]) -> &[u8] {
    canonical.strip_suffix(b"*").unwrap_or(canonical)
}

impl Kept {
    /// Whether groups that name `token` were kept if there were any.
    pub(crate) fn keeps(&self, token: &ProductToken) -> bool {
        self.wanted
            .as_ref()
            .is_none_or(|wanted| wanted.contains(token))
    }

    /// Bytes on the heap.
    pub(crate) fn size(&self) -> usize {
        let extras = self.extras.as_ref().map_or(0, |extras| {
            size_of::<Extras>()
                + size_of_val(&*extras.written)
                + size_of_val(&*extras.longer)
                + size_of_val(&*extras.records)
                + size_of_val(&*extras.sitemaps)
                + size_of_val(&*extras.delays)
        });
        // The two counters of the Arc around it.
        2 * size_of::<usize>()
            + size_of::<Self>()
            + size_of_val(&*self.arena)
            + size_of_val(&*self.plain)
            + size_of_val(&*self.wild)
            + size_of_val(&*self.sections)
            + size_of_val(&*self.names)
            + size_of_val(&*self.links)
            + self.wanted.as_deref().map_or(0, size_of_val)
            + extras
    }

    pub(super) fn text(&self, start: u32, end: u32) -> &[u8] {
        &self.arena[start as usize..end as usize]
    }

    pub(super) fn plain_text(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.plain[before].end);
        self.text(start, self.plain[at].end)
    }

    pub(super) fn wild_text(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at
            .checked_sub(1)
            .map_or(self.wild_base, |before| self.wild[before].end);
        self.text(start, self.wild[at].end)
    }

    pub(super) fn name_text(&self, at: usize) -> &[u8] {
        let start = at
            .checked_sub(1)
            .map_or(self.names_base, |before| self.names[before].end);
        self.text(start, self.names[at].end)
    }

    /// The numbers of the plain rules and of the rules with wildcards of a section.
    pub(super) fn rules_of(&self, section: SectionId) -> (Range<u32>, Range<u32>) {
        let at = section as usize;
        let end = self.sections[at];
        let start = at.checked_sub(1).map_or((0, 0), |at| {
            (self.sections[at].plain_end, self.sections[at].wild_end)
        });
        (start.0..end.plain_end, start.1..end.wild_end)
    }

    /// All names on user-agent lines, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        (0..self.names.len())
            .map(|at| str::from_utf8(self.name_text(at)).expect("names are tokens or `*`"))
    }

    pub(super) fn facts(&self, at: RuleAt) -> Facts {
        match at {
            RuleAt::Plain(at) => self.plain[at as usize].facts,
            RuleAt::Wild(at) => self.wild[at as usize].facts,
        }
    }

    pub(crate) fn kind(&self, at: RuleAt) -> RuleKind {
        if self.facts(at).allow() {
            RuleKind::Allow
        } else {
            RuleKind::Disallow
        }
    }

    pub(crate) fn line(&self, at: RuleAt) -> u32 {
        self.facts(at).line()
    }

    /// The rule as the file has it.
    pub(crate) fn written(&self, at: RuleAt) -> &[u8] {
        let canonical = self.canonical(at);
        let number = match at {
            RuleAt::Plain(at) => at,
            RuleAt::Wild(at) => self.plain.len() as u32 + at,
        };
        let Some(extras) = &self.extras else {
            return canonical;
        };
        match extras
            .written
            .binary_search_by_key(&number, |written| written.rule)
        {
            Ok(found) => {
                let start = found
                    .checked_sub(1)
                    .map_or(extras.written_base, |before| extras.written[before].end);
                self.text(start, extras.written[found].end)
            }
            Err(_) => canonical,
        }
    }

    /// The rule in the form that is compared.
    pub(crate) fn canonical(&self, at: RuleAt) -> &[u8] {
        match at {
            RuleAt::Plain(at) => self.plain_text(at),
            RuleAt::Wild(at) => self.wild_text(at),
        }
    }

    /// Whether the rule starts as no path does.
    pub(crate) fn matches_nothing(&self, at: RuleAt) -> bool {
        !matches!(self.canonical(at).first(), Some(b'/' | b'*'))
    }

    /// How many rules have inner wildcards.
    pub(crate) const fn wild_rules(&self) -> usize {
        self.wild.len()
    }

    /// The rules of the sections in the order of the file.
    pub(crate) fn rules(&self, sections: &[SectionId]) -> Vec<RuleAt> {
        let mut rules: Vec<RuleAt> = sections
            .iter()
            .flat_map(|&section| {
                let (plain, wild) = self.rules_of(section);
                plain.map(RuleAt::Plain).chain(wild.map(RuleAt::Wild))
            })
            .collect();
        rules.sort_unstable_by_key(|&rule| self.line(rule));
        rules
    }

    pub(crate) fn delay(&self, section: SectionId) -> Option<Duration> {
        let delays = &self.extras.as_ref()?.delays;
        let found = delays.binary_search_by_key(&section, |&(section, _)| section);
        found.ok().map(|at| delays[at].1)
    }

    /// The records of a section, or those before the first group, in the order of the file.
    pub(crate) fn records(&self, section: Option<SectionId>) -> impl Iterator<Item = Record<'_>> {
        let section = section.unwrap_or(NONE);
        self.extras
            .iter()
            .flat_map(move |extras| {
                let records = &extras.records;
                let start = records.partition_point(|record| record.section < section);
                let end = records.partition_point(|record| record.section <= section);
                (start..end).map(move |at| (extras, at))
            })
            .map(|(extras, at)| {
                let record = extras.records[at];
                let start = at
                    .checked_sub(1)
                    .map_or(extras.records_base, |before| extras.records[before].end);
                let text = self.text(start, record.end);
                let (name, value) = match KNOWN_NAMES.get(record.name as usize) {
                    Some(name) => (*name, text),
                    None => {
                        let (name, value) = text.split_at(record.name as usize - KNOWN_NAMES.len());
                        let name = str::from_utf8(name).expect("names of records are ASCII");
                        (name, value)
                    }
                };
                Record::new(name, value, record.line)
            })
    }

    /// The sitemaps with their lines, in the order of the file.
    pub(crate) fn sitemaps(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.extras.iter().flat_map(|extras| {
            extras.sitemaps.iter().enumerate().map(|(at, sitemap)| {
                let start = at
                    .checked_sub(1)
                    .map_or(extras.sitemaps_base, |before| extras.sitemaps[before].end);
                (self.text(start, sitemap.end), sitemap.line)
            })
        })
    }
}
