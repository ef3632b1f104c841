//! Rules on their way into the lists: canonical form, limits, order.

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use super::layout::{Facts, NONE, without_last_star};
use crate::canon;
use crate::draft::{RuleDraft, SectionId};

/// Rules with inner wildcards that are matched in full, in one file. Each costs time at every check that reaches it.
pub(crate) const MOST_WILD_RULES: usize = 10_000;
/// Inner wildcards that are matched in one rule.
pub(crate) const MOST_WILDCARDS: usize = 64;

/// A rule in the form that is kept.
pub(super) struct Prepared<'a> {
    pub(super) section: SectionId,
    pub(super) facts: Facts,
    pub(super) written: &'a [u8],
    pub(super) canonical: &'a [u8],
    /// More than the length of `canonical` where runs of stars were made one, or a limit cut it.
    pub(super) specificity: u32,
}

impl<'a> Prepared<'a> {
    /// Without a `*` at the end.
    fn prefix(&self) -> &'a [u8] {
        without_last_star(self.canonical)
    }

    fn by_prefix(&self, other: &Self) -> Ordering {
        self.prefix()
            .cmp(other.prefix())
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

/// The rules of a file, sorted.
pub(super) struct Rules<'a> {
    /// Those without an inner wildcard: by section and prefix.
    pub(super) plain: Vec<Prepared<'a>>,
    /// The others: by section, the most specific first.
    pub(super) wild: Vec<Prepared<'a>>,
    /// How many the limits changed or dropped.
    pub(super) over_limit: u32,
}

/// A rule whose canonical form is another text, or that has wildcards.
pub(super) struct Odd {
    rule: usize,
    /// Where in the scratch its canonical form is.
    canonical: Range<usize>,
    specificity: u32,
    collapsed: bool,
}

/// Writes the canonical forms of the odd ones among `rules` to `scratch`.
pub(super) fn odd_rules(rules: &[RuleDraft<'_>], scratch: &mut Vec<u8>) -> Vec<Odd> {
    let mut odd = Vec::new();
    for (rule, draft) in rules.iter().enumerate() {
        if canon::is_plain_rule(draft.text) {
            continue;
        }
        let start = scratch.len();
        canon::rule(draft.text, scratch);
        let specificity = (scratch.len() - start) as u32;
        let collapsed = collapse_stars(scratch, start);
        odd.push(Odd {
            rule,
            canonical: start..scratch.len(),
            specificity,
            collapsed,
        });
    }
    odd
}

/// Makes one star of each run of stars from `start` on, and says whether there were any.
fn collapse_stars(bytes: &mut Vec<u8>, start: usize) -> bool {
    if !bytes[start..].windows(2).any(|pair| pair == b"**") {
        return false;
    }
    let mut to = start;
    for from in start..bytes.len() {
        if bytes[from] == b'*' && to > start && bytes[to - 1] == b'*' {
            continue;
        }
        bytes[to] = bytes[from];
        to += 1;
    }
    bytes.truncate(to);
    true
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
        .filter(|(_, byte)| **byte == b'*')
        .nth(most);
    match beyond {
        None => Some(canonical),
        Some(_) if allow => None,
        Some((at, _)) => Some(&canonical[..=at]),
    }
}

impl<'a> Rules<'a> {
    pub(super) fn new(drafts: &[RuleDraft<'a>], odd: &[Odd], scratch: &'a [u8]) -> Self {
        let mut rules = Self {
            plain: Vec::with_capacity(drafts.len()),
            wild: Vec::new(),
            over_limit: 0,
        };
        let mut odd = odd.iter().peekable();
        for (at, draft) in drafts.iter().enumerate() {
            let mut rule = Prepared {
                section: draft.section,
                facts: Facts::new(draft.line, draft.allow),
                written: draft.text,
                canonical: draft.text,
                specificity: draft.text.len() as u32,
            };
            match odd.next_if(|odd| odd.rule == at) {
                None => rules.plain.push(rule),
                Some(odd) => {
                    rule.canonical = &scratch[odd.canonical.clone()];
                    rule.specificity = odd.specificity;
                    rules.push_odd(rule, odd.collapsed);
                }
            }
        }
        rules.plain = sorted_by_prefix(rules.plain);
        rules.wild.sort_unstable_by(Prepared::by_specificity);
        rules
    }

    fn push_odd(&mut self, mut rule: Prepared<'a>, collapsed: bool) {
        if rule.prefix().contains(&b'*') {
            match limited(rule.canonical, rule.facts.allow(), self.wild.len()) {
                Some(kept) => {
                    self.over_limit += u32::from(kept.len() < rule.canonical.len());
                    rule.canonical = kept;
                }
                None => {
                    self.over_limit += 1;
                    return;
                }
            }
            self.wild.push(rule);
        } else if collapsed {
            // The list of the others has no place for a specificity that is not the length.
            self.wild.push(rule);
        } else {
            self.plain.push(rule);
        }
    }
}

/// What most comparisons are decided by.
struct Key {
    section: SectionId,
    rule: u32,
    /// The first bytes of the prefix, as a number that sorts as they do.
    head: u128,
}

fn head(prefix: &[u8]) -> u128 {
    match prefix.first_chunk() {
        Some(bytes) => u128::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; 16];
            bytes[..prefix.len()].copy_from_slice(prefix);
            u128::from_be_bytes(bytes)
        }
    }
}

fn sorted_by_prefix(rules: Vec<Prepared<'_>>) -> Vec<Prepared<'_>> {
    let mut keys: Vec<Key> = rules
        .iter()
        .enumerate()
        .map(|(rule, prepared)| Key {
            section: prepared.section,
            rule: rule as u32,
            head: head(prepared.prefix()),
        })
        .collect();
    keys.sort_unstable_by(|a, b| {
        (a.section, a.head)
            .cmp(&(b.section, b.head))
            .then_with(|| rules[a.rule as usize].by_prefix(&rules[b.rule as usize]))
    });
    let mut rules: Vec<Option<Prepared<'_>>> = rules.into_iter().map(Some).collect();
    keys.iter()
        .map(|key| {
            rules[key.rule as usize]
                .take()
                .expect("each rule has one key")
        })
        .collect()
}

/// Links each of the sorted rules to its longest prefix, and says whether one further up may win over it.
pub(super) fn link(rules: &[Prepared<'_>]) -> Vec<(u32, bool)> {
    let mut links = Vec::with_capacity(rules.len());
    // The chain of prefixes that the next rule may continue: its number and the highest specificity up to it.
    let mut chain: Vec<(usize, u32)> = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        while let Some(&(above, _)) = chain.last() {
            let above = &rules[above];
            // An equal one before this one never wins, so it is no link.
            if above.section == rule.section
                && above.prefix().len() < rule.prefix().len()
                && rule.prefix().starts_with(above.prefix())
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
