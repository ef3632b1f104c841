//! Which sections a name has, and which of their rules decides for a URL (RFC 9309, 2.2.1 and 2.2.2).

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

use super::layout::{Facts, Kept, NONE, RuleAt, without_last_star};
use crate::canon::Target;
use crate::draft::SectionId;
use crate::pattern;

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

impl Kept {
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
}

pub(super) fn folded_cmp(a: &[u8], b: &[u8]) -> Ordering {
    a.iter()
        .map(u8::to_ascii_lowercase)
        .cmp(b.iter().map(u8::to_ascii_lowercase))
}
