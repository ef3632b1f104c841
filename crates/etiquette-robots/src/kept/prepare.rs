//! Rules on their way into the lists: canonical form, limits, order.

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use super::{Facts, NONE, without_last_star};
use crate::canon;
use crate::draft::{RuleDraft, SectionId};

/// Rules with inner wildcards that are matched in full, in one file. Each costs time at every check that reaches it.
pub(crate) const MOST_WILD_RULES: usize = 10_000;
/// Inner wildcards that are matched in one rule.
pub(crate) const MOST_WILDCARDS: usize = 64;

/// A rule on its way into the lists.
pub(super) struct Prepared<'a> {
    pub(super) section: SectionId,
    pub(super) facts: Facts,
    pub(super) written: &'a [u8],
    pub(super) canonical: &'a [u8],
    /// Without a `*` at the end.
    pub(super) prefix: &'a [u8],
    /// The first octets of `prefix`, as a number that sorts as they do.
    pub(super) head: u64,
    pub(super) specificity: u32,
    pub(super) wild: bool,
}

impl Prepared<'_> {
    pub(super) fn by_prefix(&self, other: &Self) -> Ordering {
        (self.section, self.head)
            .cmp(&(other.section, other.head))
            .then_with(|| self.prefix.cmp(other.prefix))
            // Of equal prefixes the last decides.
            .then_with(|| self.specificity.cmp(&other.specificity))
            .then_with(|| self.facts.allow().cmp(&other.facts.allow()))
            .then_with(|| other.facts.line().cmp(&self.facts.line()))
    }

    pub(super) fn by_specificity(&self, other: &Self) -> Ordering {
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
pub(super) struct Canonical {
    /// Empty: the text is canonical as it is.
    scratch: Range<u32>,
    specificity: u32,
    /// Whether runs of stars were made one star, so that the specificity does not follow from what is kept.
    collapsed: bool,
}

pub(super) fn canonical(text: &[u8], scratch: &mut Vec<u8>) -> Canonical {
    let stars = has_star_run(text);
    if !stars && canon::is_canonical_rule(text) {
        return Canonical {
            scratch: 0..0,
            specificity: text.len() as u32,
            collapsed: false,
        };
    }
    let start = scratch.len();
    canon::rule(text, scratch);
    let specificity = (scratch.len() - start) as u32;
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
fn limited(canonical: &[u8], allow: bool, wild_rules: usize) -> Option<&[u8]> {
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

pub(super) fn prepare<'a>(
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
pub(super) fn link(rules: &[Prepared<'_>]) -> Vec<(u32, bool)> {
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
