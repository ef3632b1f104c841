//! A file in the form that is kept: small, and fast to ask.
//!
//! Rules without an inner wildcard are sorted, so that all rules that are prefixes of a URL lie on one chain: the
//! greatest rule not above the URL, its longest prefix among the rules, that one's longest prefix, and so on. One binary
//! search and a walk up finds the longest. Rules with wildcards are sorted by how specific they are and tried from the
//! top; the first that matches is the best of them, and none below the best prefix is tried at all.
//!
//! Each list holds ends only: an entry starts where the one before it ends.

mod build;
mod prepare;

use std::cmp::{Ordering, Reverse};
use std::ops::Range;
use std::time::Duration;

use crate::canon::Target;
use crate::draft::SectionId;
use crate::pattern;
use crate::record::Record;
use crate::robots::Unusable;
use crate::token::ProductToken;
use crate::verdict::{RuleAt, RuleKind};

pub(crate) use prepare::MOST_WILDCARDS;

const NONE: u32 = u32::MAX;

/// A rule without an inner wildcard.
#[derive(Debug, Clone, Copy)]
struct Plain {
    end: u32,
    facts: Facts,
    /// The longest other rule of the section that is a prefix of this one.
    parent: u32,
}

/// A rule with an inner wildcard.
#[derive(Debug, Clone, Copy)]
struct Wild {
    end: u32,
    facts: Facts,
    letters: u32,
}

/// Line, kind, and one mark.
#[derive(Debug, Clone, Copy)]
struct Facts(u32);

impl Facts {
    const ALLOW: u32 = 1;
    /// Of a plain rule: one further up the chain may still win.
    const OUTRANKED: u32 = 2;
    /// Of a rule with wildcards: it is more specific than what is kept of it is long; see [`Extras::longer`].
    const LONGER: u32 = 2;

    const fn new(line: u32, allow: bool) -> Self {
        Self(line << 2 | if allow { Self::ALLOW } else { 0 })
    }

    const fn line(self) -> u32 {
        self.0 >> 2
    }

    const fn allow(self) -> bool {
        self.0 & Self::ALLOW != 0
    }

    const fn outranked(self) -> bool {
        self.0 & Self::OUTRANKED != 0
    }

    const fn longer(self) -> bool {
        self.0 & Self::LONGER != 0
    }
}

#[derive(Debug, Clone, Copy)]
struct Section {
    plain_end: u32,
    wild_end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    end: u32,
    links_end: u32,
}

#[derive(Debug, Clone, Copy)]
struct RecordAt {
    end: u32,
    line: u32,
    /// [`NONE`] before the first group.
    section: u32,
    /// A place in [`KNOWN_NAMES`], or their number plus the bytes of the name before the value.
    name: u32,
}

/// Names of records that need not be kept as text.
const KNOWN_NAMES: &[&str] = &[
    "request-rate",
    "content-signal",
    "content-usage",
    "visit-time",
];

#[derive(Debug, Clone, Copy)]
struct SitemapAt {
    end: u32,
    line: u32,
}

/// The text of a rule that is kept in another form.
#[derive(Debug, Clone, Copy)]
struct Written {
    /// Plain rules first, then those with wildcards.
    rule: u32,
    end: u32,
}

/// What many files do not have.
#[derive(Debug, Default)]
struct Extras {
    written: Box<[Written]>,
    written_base: u32,
    /// Rules with wildcards and their specificity, where it is not their length.
    longer: Box<[(u32, u32)]>,
    records: Box<[RecordAt]>,
    records_base: u32,
    sitemaps: Box<[SitemapAt]>,
    sitemaps_base: u32,
    delays: Box<[(SectionId, Duration)]>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    arena: Box<[u8]>,
    plain: Box<[Plain]>,
    wild: Box<[Wild]>,
    sections: Box<[Section]>,
    names: Box<[Name]>,
    links: Box<[SectionId]>,
    wild_base: u32,
    names_base: u32,
    extras: Option<Box<Extras>>,
    /// The tokens the file was parsed for, unless for all.
    pub(crate) wanted: Option<Box<[ProductToken]>>,
    pub(crate) cut: bool,
    pub(crate) unusable: Option<Unusable>,
    /// Rules that a limit changed or dropped.
    pub(crate) over_limit: u32,
}

/// A rule that matches a URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    specificity: u32,
    facts: Facts,
    pub(crate) at: RuleAt,
}

impl Hit {
    /// The most specific rule wins, then Allow (RFC 9309, 2.2.2), then, for the explanation only, the first line.
    fn rank(&self) -> (u32, bool, Reverse<u32>) {
        (
            self.specificity,
            self.facts.allow(),
            Reverse(self.facts.line()),
        )
    }

    pub(crate) fn better(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.rank() >= self.rank() => other,
            _ => self,
        }
    }
}

fn without_last_star(canonical: &[u8]) -> &[u8] {
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

    fn text(&self, start: u32, end: u32) -> &[u8] {
        &self.arena[start as usize..end as usize]
    }

    fn plain_text(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.plain[before].end);
        self.text(start, self.plain[at].end)
    }

    fn wild_text(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = at
            .checked_sub(1)
            .map_or(self.wild_base, |before| self.wild[before].end);
        self.text(start, self.wild[at].end)
    }

    fn name_text(&self, at: usize) -> &[u8] {
        let start = at
            .checked_sub(1)
            .map_or(self.names_base, |before| self.names[before].end);
        self.text(start, self.names[at].end)
    }

    /// The numbers of the plain rules and of the rules with wildcards of a section.
    fn rules_of(&self, section: SectionId) -> (Range<u32>, Range<u32>) {
        let at = section as usize;
        let end = self.sections[at];
        let start = at.checked_sub(1).map_or((0, 0), |at| {
            (self.sections[at].plain_end, self.sections[at].wild_end)
        });
        (start.0..end.plain_end, start.1..end.wild_end)
    }

    /// The sections that the name is for; `None` where no user-agent line has it.
    pub(crate) fn sections_of(&self, name: &[u8]) -> Option<&[SectionId]> {
        let mut from = 0;
        let mut to = self.names.len();
        while from < to {
            let middle = from + (to - from) / 2;
            match folded_cmp(self.name_text(middle), name) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => {
                    let start = middle
                        .checked_sub(1)
                        .map_or(0, |before| self.names[before].links_end);
                    let end = self.names[middle].links_end;
                    return Some(&self.links[start as usize..end as usize]);
                }
            }
        }
        None
    }

    /// All names on user-agent lines, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        (0..self.names.len())
            .map(|at| str::from_utf8(self.name_text(at)).expect("names are tokens or `*`"))
    }

    /// The best rule of a section for `target`, if one matches.
    pub(crate) fn best(&self, section: SectionId, target: &Target) -> Option<Hit> {
        let (plain, wild) = self.rules_of(section);
        let best = self.best_plain(plain, target.bytes());
        let floor = best.map_or(0, |best| best.specificity);
        let rules = &self.wild[wild.start as usize..wild.end as usize];
        let mut start = match wild.start.checked_sub(1) {
            Some(before) => self.wild[before as usize].end,
            None => self.wild_base,
        };
        for (at, rule) in wild.zip(rules) {
            let text = start..rule.end;
            start = rule.end;
            let length = text.len() as u32;
            if length < floor && !rule.facts.longer() {
                break;
            }
            if rule.letters & !target.letters() != 0
                || !pattern::matches(self.text(text.start, text.end), target.bytes())
            {
                continue;
            }
            let hit = Hit {
                specificity: self.specificity(at, length),
                facts: rule.facts,
                at: RuleAt::Wild(at),
            };
            return Some(hit.better(best));
        }
        best
    }

    /// How specific a rule with wildcards is.
    fn specificity(&self, wild: u32, length: u32) -> u32 {
        match &self.extras {
            Some(extras) if self.wild[wild as usize].facts.longer() => extras
                .longer
                .binary_search_by_key(&wild, |&(rule, _)| rule)
                .map_or(length, |at| extras.longer[at].1),
            _ => length,
        }
    }

    /// As [`Kept::best`], but rules with inner wildcards are left out.
    pub(crate) fn best_without_wildcards(
        &self,
        section: SectionId,
        target: &Target,
    ) -> Option<Hit> {
        self.best_plain(self.rules_of(section).0, target.bytes())
    }

    fn best_plain(&self, rules: Range<u32>, url: &[u8]) -> Option<Hit> {
        let prefix = |at| without_last_star(self.plain_text(at));
        let mut from = rules.start;
        let mut to = rules.end;
        while from < to {
            let middle = from + (to - from) / 2;
            if prefix(middle) <= url {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        let mut at = from.checked_sub(1).filter(|at| rules.contains(at))?;
        let common = prefix(at)
            .iter()
            .zip(url)
            .take_while(|(a, b)| a == b)
            .count();
        let mut best: Option<Hit> = None;
        loop {
            let rule = self.plain[at as usize];
            if prefix(at).len() <= common {
                let hit = Hit {
                    specificity: self.plain_text(at).len() as u32,
                    facts: rule.facts,
                    at: RuleAt::Plain(at),
                };
                best = Some(hit.better(best));
                if !rule.facts.outranked() {
                    return best;
                }
            }
            if rule.parent == NONE {
                return best;
            }
            at = rule.parent;
        }
    }

    fn facts(&self, at: RuleAt) -> Facts {
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

fn folded_cmp(a: &[u8], b: &[u8]) -> Ordering {
    a.iter()
        .map(u8::to_ascii_lowercase)
        .cmp(b.iter().map(u8::to_ascii_lowercase))
}
