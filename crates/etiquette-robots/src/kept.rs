//! A file in the form that is kept: small, and fast to ask.
//!
//! Rules without an inner wildcard are sorted, so that all rules that are prefixes of a URL lie on one chain: the
//! greatest rule not above the URL, its longest prefix among the rules, that one's longest prefix, and so on. One binary
//! search and a walk up finds the longest. Rules with wildcards are sorted by how specific they are and tried from the
//! top; the first that matches is the best of them, and none below the best prefix is tried at all.
//!
//! Each list holds ends only: an entry starts where the one before it ends.

use std::cmp::{Ordering, Reverse};
use std::ops::Range;
use std::time::Duration;

use crate::canon::{self, Target};
use crate::draft::{Draft, RecordDraft, RuleDraft, SectionId};
use crate::pattern;
use crate::record::Record;
use crate::robots::Unusable;
use crate::token::ProductToken;
use crate::verdict::{RuleAt, RuleKind};

/// Rules with inner wildcards that are matched in full, in one file. Each costs time at every check that reaches it.
pub(crate) const MOST_WILD_RULES: usize = 10_000;
/// Inner wildcards that are matched in one rule.
pub(crate) const MOST_WILDCARDS: usize = 64;

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
    specificity: u32,
    letters: u32,
}

/// Line, kind, and whether a rule further up the chain may still win.
#[derive(Debug, Clone, Copy)]
struct Facts(u32);

impl Facts {
    const ALLOW: u32 = 1;
    const OUTRANKED: u32 = 2;

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
    /// A place in [`KNOWN_NAMES`], or their number plus the octets of the name before the value.
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

/// A rule on its way into the lists.
struct Prepared<'a> {
    section: SectionId,
    facts: Facts,
    written: &'a [u8],
    canonical: &'a [u8],
    /// Without a `*` at the end.
    prefix: &'a [u8],
    /// The first octets of `prefix`, as a number that sorts as they do.
    head: u64,
    specificity: u32,
    wild: bool,
}

impl Prepared<'_> {
    fn by_prefix(&self, other: &Self) -> Ordering {
        (self.section, self.head)
            .cmp(&(other.section, other.head))
            .then_with(|| self.prefix.cmp(other.prefix))
            // Of equal prefixes the last decides.
            .then_with(|| self.specificity.cmp(&other.specificity))
            .then_with(|| self.facts.allow().cmp(&other.facts.allow()))
            .then_with(|| other.facts.line().cmp(&self.facts.line()))
    }

    fn by_specificity(&self, other: &Self) -> Ordering {
        let key = |rule: &Self| {
            (
                rule.section,
                Reverse(rule.specificity),
                Reverse(rule.facts.allow()),
                rule.facts.line(),
            )
        };
        key(self).cmp(&key(other))
    }
}

fn head(prefix: &[u8]) -> u64 {
    let mut octets = [0; 8];
    let length = prefix.len().min(8);
    octets[..length].copy_from_slice(&prefix[..length]);
    u64::from_be_bytes(octets)
}

fn without_last_star(canonical: &[u8]) -> &[u8] {
    canonical.strip_suffix(b"*").unwrap_or(canonical)
}

/// Makes one star of each run of stars from `start` on.
fn collapse_stars(octets: &mut Vec<u8>, start: usize) {
    let mut to = start;
    for from in start..octets.len() {
        if octets[from] == b'*' && to > start && octets[to - 1] == b'*' {
            continue;
        }
        octets[to] = octets[from];
        to += 1;
    }
    octets.truncate(to);
}

fn has_star_run(octets: &[u8]) -> bool {
    octets.windows(2).any(|pair| pair == b"**")
}

/// Rules in canonical form, or a range of `scratch` where that is another text.
struct Canonical {
    /// Empty: the text is canonical as it is.
    scratch: Range<u32>,
    specificity: u32,
    /// Whether runs of stars were made one star, so that the specificity does not follow from what is kept.
    collapsed: bool,
}

fn canonical(text: &[u8], scratch: &mut Vec<u8>) -> Canonical {
    let stars = has_star_run(text);
    if !stars && canon::is_canonical_rule(text) {
        return Canonical {
            scratch: 0..0,
            specificity: canon::specificity(text),
            collapsed: false,
        };
    }
    let start = scratch.len();
    canon::rule(text, scratch);
    let specificity = canon::specificity(&scratch[start..]);
    if stars {
        collapse_stars(scratch, start);
    }
    Canonical {
        scratch: start as u32..scratch.len() as u32,
        specificity,
        collapsed: stars,
    }
}

/// Applies the limits: a Disallow that is too much closes more than it says, an Allow is dropped.
/// Returns what is kept of `canonical`.
fn limited<'a>(canonical: &'a [u8], allow: bool, wild_rules: usize) -> Option<&'a [u8]> {
    let most = if wild_rules >= MOST_WILD_RULES {
        0
    } else {
        MOST_WILDCARDS
    };
    let beyond = without_last_star(canonical)
        .iter()
        .enumerate()
        .filter(|(_, octet)| **octet == b'*')
        .nth(most);
    match beyond {
        None => Some(canonical),
        Some(_) if allow => None,
        Some((at, _)) => Some(&canonical[..=at]),
    }
}

fn prepare<'a>(
    rules: &[RuleDraft<'a>],
    canonicals: &[Canonical],
    scratch: &'a [u8],
    over_limit: &mut u32,
) -> Vec<Prepared<'a>> {
    let mut wild_rules = 0;
    let mut prepared = Vec::with_capacity(rules.len());
    for (rule, kept) in rules.iter().zip(canonicals) {
        let full = if kept.scratch.is_empty() {
            rule.text
        } else {
            &scratch[kept.scratch.start as usize..kept.scratch.end as usize]
        };
        let mut canonical = full;
        let mut wild = kept.collapsed;
        if without_last_star(full).contains(&b'*') {
            wild = true;
            let Some(kept) = limited(full, rule.allow, wild_rules) else {
                *over_limit += 1;
                continue;
            };
            *over_limit += u32::from(kept.len() < full.len());
            canonical = kept;
            wild_rules += 1;
        }
        let prefix = without_last_star(canonical);
        prepared.push(Prepared {
            section: rule.section,
            facts: Facts::new(rule.line, rule.allow),
            written: rule.text,
            canonical,
            prefix,
            head: head(prefix),
            specificity: kept.specificity,
            wild,
        });
    }
    prepared
}

/// Links each of the sorted rules to its longest prefix.
fn link(rules: &[Prepared<'_>]) -> Vec<(u32, bool)> {
    let mut links = Vec::with_capacity(rules.len());
    // The chain of prefixes that the next rule may continue: its number and the highest specificity up to it.
    let mut chain: Vec<(usize, u32)> = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        while let Some(&(above, _)) = chain.last() {
            let above = &rules[above];
            // An equal one before this one never wins, so it is no link.
            if above.section == rule.section
                && above.prefix.len() < rule.prefix.len()
                && rule.prefix.starts_with(above.prefix)
            {
                break;
            }
            chain.pop();
        }
        let above = chain.last().copied();
        let highest = above.map_or(0, |(_, highest)| highest);
        links.push((
            above.map_or(NONE, |(above, _)| above as u32),
            highest >= rule.specificity,
        ));
        chain.push((at, highest.max(rule.specificity)));
    }
    links
}

impl Kept {
    pub(crate) fn build(draft: &Draft<'_>) -> Self {
        let mut over_limit = 0;
        let mut scratch = Vec::new();
        let canonicals: Vec<Canonical> = draft
            .rules
            .iter()
            .map(|rule| canonical(rule.text, &mut scratch))
            .collect();
        let (mut wild, mut plain): (Vec<_>, Vec<_>) =
            prepare(&draft.rules, &canonicals, &scratch, &mut over_limit)
                .into_iter()
                .partition(|rule| rule.wild);
        plain.sort_unstable_by(Prepared::by_prefix);
        wild.sort_unstable_by(Prepared::by_specificity);

        let mut arena = Vec::with_capacity(
            plain
                .iter()
                .chain(&wild)
                .map(|rule| rule.canonical.len())
                .sum(),
        );
        let mut kept = Self {
            over_limit,
            ..Self::default()
        };
        kept.plain = plain
            .iter()
            .zip(link(&plain))
            .map(|(rule, (parent, outranked))| {
                arena.extend_from_slice(rule.canonical);
                let outranked = if outranked { Facts::OUTRANKED } else { 0 };
                Plain {
                    end: arena.len() as u32,
                    facts: Facts(rule.facts.0 | outranked),
                    parent,
                }
            })
            .collect();
        kept.wild_base = arena.len() as u32;
        kept.wild = wild
            .iter()
            .map(|rule| {
                arena.extend_from_slice(rule.canonical);
                Wild {
                    end: arena.len() as u32,
                    facts: rule.facts,
                    specificity: rule.specificity,
                    letters: canon::letters(rule.canonical),
                }
            })
            .collect();
        kept.sections = section_ends(draft.sections, &plain, &wild);
        kept.keep_names(draft, &mut arena);
        kept.keep_extras(draft, &plain, &wild, &mut arena);
        kept.arena = arena.into();
        kept
    }

    fn keep_names(&mut self, draft: &Draft<'_>, arena: &mut Vec<u8>) {
        let mut order: Vec<u32> = (0..draft.names.len() as u32)
            .filter(|&id| draft.names[id as usize].named)
            .collect();
        order.sort_unstable_by(|&a, &b| {
            folded_cmp(draft.names[a as usize].text, draft.names[b as usize].text)
        });
        let mut links = draft.links.clone();
        links.sort_unstable();
        self.names_base = arena.len() as u32;
        let mut link_sections = Vec::with_capacity(links.len());
        self.names = order
            .iter()
            .map(|&id| {
                arena.extend_from_slice(draft.names[id as usize].text);
                let start = links.partition_point(|&(name, _)| name < id);
                let own = links[start..].iter().take_while(|&&(name, _)| name == id);
                link_sections.extend(own.map(|&(_, section)| section));
                Name {
                    end: arena.len() as u32,
                    links_end: link_sections.len() as u32,
                }
            })
            .collect();
        self.links = link_sections.into();
    }

    fn keep_extras(
        &mut self,
        draft: &Draft<'_>,
        plain: &[Prepared<'_>],
        wild: &[Prepared<'_>],
        arena: &mut Vec<u8>,
    ) {
        let mut extras = Extras {
            written_base: arena.len() as u32,
            ..Extras::default()
        };
        extras.written = plain
            .iter()
            .chain(wild)
            .enumerate()
            .filter(|(_, rule)| rule.written != rule.canonical)
            .map(|(at, rule)| {
                arena.extend_from_slice(rule.written);
                Written {
                    rule: at as u32,
                    end: arena.len() as u32,
                }
            })
            .collect();
        extras.records_base = arena.len() as u32;
        let section_of = |record: &RecordDraft<'_>| record.section.unwrap_or(NONE);
        let mut records: Vec<&RecordDraft<'_>> = draft.records.iter().collect();
        records.sort_by_key(|record| section_of(record));
        extras.records = records
            .iter()
            .map(|record| {
                let known = KNOWN_NAMES
                    .iter()
                    .position(|known| record.name.eq_ignore_ascii_case(known.as_bytes()));
                let name = known.unwrap_or_else(|| {
                    arena.extend(record.name.iter().map(u8::to_ascii_lowercase));
                    KNOWN_NAMES.len() + record.name.len()
                });
                arena.extend_from_slice(record.value);
                RecordAt {
                    end: arena.len() as u32,
                    line: record.line,
                    section: section_of(record),
                    name: name as u32,
                }
            })
            .collect();
        extras.sitemaps_base = arena.len() as u32;
        extras.sitemaps = draft
            .sitemaps
            .iter()
            .filter(|sitemap| !sitemap.value.is_empty())
            .map(|sitemap| {
                arena.extend_from_slice(sitemap.value);
                SitemapAt {
                    end: arena.len() as u32,
                    line: sitemap.line,
                }
            })
            .collect();
        let mut delays = draft.delays.clone();
        delays.sort_unstable_by_key(|&(section, delay)| (section, Reverse(delay)));
        delays.dedup_by_key(|(section, _)| *section);
        extras.delays = delays.into();
        let empty = extras.written.is_empty()
            && extras.records.is_empty()
            && extras.sitemaps.is_empty()
            && extras.delays.is_empty();
        self.extras = (!empty).then(|| Box::new(extras));
    }

    /// Whether groups that name `token` were kept if there were any.
    pub(crate) fn keeps(&self, token: &ProductToken) -> bool {
        self.wanted
            .as_ref()
            .is_none_or(|wanted| wanted.contains(token))
    }

    /// Octets on the heap.
    pub(crate) fn size(&self) -> usize {
        let extras = self.extras.as_ref().map_or(0, |extras| {
            size_of::<Extras>()
                + size_of_val(&*extras.written)
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
            + self
                .wanted
                .as_deref()
                .map_or(0, |wanted| size_of_val(wanted))
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
        let best = self.best_plain(plain, target.octets());
        for at in wild {
            let rule = self.wild[at as usize];
            let hit = Hit {
                specificity: rule.specificity,
                facts: rule.facts,
                at: RuleAt::Wild(at),
            };
            if best.is_some_and(|best| best.rank() > hit.rank()) {
                break;
            }
            if rule.letters & !target.letters() == 0
                && pattern::matches(self.wild_text(at), target.octets())
            {
                return Some(hit);
            }
        }
        best
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
                    specificity: canon::specificity(self.plain_text(at)),
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
        let (number, canonical) = match at {
            RuleAt::Plain(at) => (at, self.plain_text(at)),
            RuleAt::Wild(at) => (self.plain.len() as u32 + at, self.wild_text(at)),
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

fn section_ends(sections: u32, plain: &[Prepared<'_>], wild: &[Prepared<'_>]) -> Box<[Section]> {
    let mut ends = vec![
        Section {
            plain_end: 0,
            wild_end: 0
        };
        sections as usize
    ];
    for rule in plain {
        ends[rule.section as usize].plain_end += 1;
    }
    for rule in wild {
        ends[rule.section as usize].wild_end += 1;
    }
    let (mut plain_end, mut wild_end) = (0, 0);
    for section in &mut ends {
        plain_end += section.plain_end;
        wild_end += section.wild_end;
        *section = Section {
            plain_end,
            wild_end,
        };
    }
    ends.into()
}

fn folded_cmp(a: &[u8], b: &[u8]) -> Ordering {
    a.iter()
        .map(u8::to_ascii_lowercase)
        .cmp(b.iter().map(u8::to_ascii_lowercase))
}
