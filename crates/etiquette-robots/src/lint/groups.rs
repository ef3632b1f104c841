//! Problems of groups and rules as they are read together.

use std::collections::HashMap;

use super::problem::{Finding, Problem, excerpt};
use crate::canon::Target;
use crate::draft::{Draft, SectionId};
use crate::kept::{Kept, RuleAt};
use crate::key::Key;
use crate::lex::Lines;
use crate::rule_kind::RuleKind;
use crate::token::leading_bytes;

/// With more rules that have wildcards, rules are only compared with those that have none.
const MOST_WILD_RULES: usize = 2_000;

/// Adds to `findings`; `false` where the file has content but no record that is known.
pub(super) fn check(text: &[u8], findings: &mut Vec<Finding>) -> bool {
    let draft = Draft::read(text, None);
    if draft.content && !draft.recognised {
        return false;
    }
    let kept = Kept::build(&draft);
    let groups = Groups::read(text);
    let mut found = |line, problem| findings.push(Finding { line, problem });
    for section in 0..draft.sections {
        idle_rules(&kept, section, &mut found);
    }
    for group in &groups.names {
        if let Some(second) = group.second {
            let problem = Problem::SplitGroup {
                name: excerpt(group.name),
                first: group.first,
            };
            found(second, problem);
        }
    }
    shadowed_star(&kept, &groups, &mut found);
    true
}

/// Rules over which another rule always wins: one that matches all that the rule matches, and outranks it.
///
/// The rule itself is taken for a URL. Its wildcards are then bytes that only a wildcard of another rule takes, so what
/// matches it matches all that it matches.
fn idle_rules(kept: &Kept, section: SectionId, found: &mut impl FnMut(u32, Problem)) {
    let with_wild = kept.wild_rules() <= MOST_WILD_RULES;
    for rule in kept.rules(&[section]) {
        if kept.matches_nothing(rule) {
            continue;
        }
        let target = Target::of_rule(kept.canonical(rule));
        let best = if with_wild {
            kept.best(section, &target)
        } else {
            kept.best_without_wildcards(section, &target)
        };
        match best.map(|hit| hit.at) {
            Some(best) if best != rule => found(
                kept.line(rule),
                Problem::NeverDecides {
                    rule: excerpt(kept.written(rule)),
                    other: kept.line(best),
                },
            ),
            _ => {}
        }
    }
}

fn shadowed_star(kept: &Kept, groups: &Groups<'_>, found: &mut impl FnMut(u32, Problem)) {
    let star = kept.sections_of(b"*").unwrap_or_default();
    let closed: Vec<(RuleAt, Target)> = kept
        .rules(star)
        .into_iter()
        .filter(|&rule| kept.kind(rule) == RuleKind::Disallow && !kept.matches_nothing(rule))
        .map(|rule| (rule, Target::of_rule(kept.canonical(rule))))
        .collect();
    // Many names with one group are one finding, and no name is worth more comparisons than a file has lines.
    let mut effort = 1_000_000_usize;
    let mut told = Vec::new();
    for group in groups.names.iter().filter(|group| group.name != b"*") {
        let sections = kept.sections_of(group.name).unwrap_or_default();
        if group.open || told.contains(&sections) || sections.iter().any(|own| star.contains(own)) {
            continue;
        }
        effort = effort.saturating_sub(closed.len() * sections.len().max(1));
        if effort == 0 {
            return;
        }
        let decided = |target: &Target| {
            sections
                .iter()
                .any(|&section| kept.best(section, target).is_some())
        };
        let mut missing = closed.iter().filter(|(_, target)| !decided(target));
        if let Some(&(first, _)) = missing.next() {
            let problem = Problem::ShadowsStar {
                name: excerpt(group.name),
                missing: 1 + missing.count(),
                first: kept.line(first),
            };
            found(group.first, problem);
        }
        told.push(sections);
    }
}

/// Names and where they stand.
struct Groups<'a> {
    names: Vec<Named<'a>>,
}

struct Named<'a> {
    name: &'a [u8],
    first: u32,
    /// The first user-agent line of a second group with the name.
    second: Option<u32>,
    /// Whether one of its groups opens everything in so many words: `Disallow:` or `Allow: /`.
    open: bool,
}

impl<'a> Groups<'a> {
    fn read(text: &'a [u8]) -> Self {
        let mut names: Vec<Named<'a>> = Vec::new();
        let mut known: HashMap<Vec<u8>, (usize, u32)> = HashMap::new();
        let mut current: Vec<usize> = Vec::new();
        let mut in_rules = false;
        let mut group = 0;
        for line in Lines::new(text).filter_map(|line| line.record()) {
            match line.key {
                Key::UserAgent => {
                    if in_rules {
                        current.clear();
                        in_rules = false;
                        group += 1;
                    }
                    let name = match line.value {
                        [b'*'] | [b'*', b' ' | b'\t', ..] => &line.value[..1],
                        value => leading_bytes(value),
                    };
                    if name.is_empty() {
                        continue;
                    }
                    let (at, last) = *known.entry(name.to_ascii_lowercase()).or_insert_with(|| {
                        names.push(Named {
                            name,
                            first: line.number,
                            second: None,
                            open: false,
                        });
                        (names.len() - 1, group)
                    });
                    if last != group && names[at].second.is_none() {
                        names[at].second = Some(line.number);
                    }
                    current.push(at);
                }
                Key::Allow | Key::Disallow => {
                    in_rules = true;
                    let opens = match line.key {
                        Key::Allow => matches!(line.value, b"/" | b"*" | b"/*"),
                        _ => line.value.is_empty(),
                    };
                    if opens {
                        for &at in &current {
                            names[at].open = true;
                        }
                    }
                }
                _ => {}
            }
        }
        Self { names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, Problem)> {
        let mut findings = Vec::new();
        assert!(check(text.as_bytes(), &mut findings));
        findings
            .into_iter()
            .map(|finding| (finding.line, finding.problem))
            .collect()
    }

    fn never(rule: &str, other: u32) -> Problem {
        Problem::NeverDecides {
            rule: rule.to_owned(),
            other,
        }
    }

    #[test]
    fn rules_that_never_decide() {
        assert_eq!(
            found(
                "User-agent: *\nDisallow: /aa\nAllow: /aa\nDisallow: /bb\nDisallow: /%62b\nDisallow: /cc\nDisallow: /cc*\n\
                 Disallow: /d*e\nDisallow: /d**e\nDisallow: /\nAllow: /*\nDisallow: /ff$\nAllow: /ff\nDisallow: /g\n"
            ),
            [
                (2, never("/aa", 3)),
                (5, never("/%62b", 4)),
                (6, never("/cc", 7)),
                (8, never("/d*e", 9)),
                (10, never("/", 11)),
                // As long as line 11, and of equal ones Allow decides.
                (14, never("/g", 11)),
            ]
        );
    }

    #[test]
    fn rules_that_do_decide() {
        assert_eq!(
            found(
                "User-agent: *\nDisallow: /\nAllow: /a\nDisallow: /a/b\nAllow: /*.css$\nDisallow: /*?\nDisallow: x\n"
            ),
            []
        );
    }

    #[test]
    fn groups_that_hide_others() {
        let shadows = |name: &str, missing, first| Problem::ShadowsStar {
            name: name.to_owned(),
            missing,
            first,
        };
        let star = "User-agent: *\nDisallow: /a\nDisallow: /b*c\nAllow: /a/x\n";
        let with = |group: &str| found(&format!("{star}{group}"));
        assert_eq!(
            with("User-agent: x\nUser-agent: y\nCrawl-delay: 5\n"),
            [(5, shadows("x", 2, 2))]
        );
        assert_eq!(
            with("User-agent: x\nDisallow: /a\n"),
            [(5, shadows("x", 1, 3))]
        );
        assert_eq!(with("User-agent: x\nDisallow: /\n"), []);
        assert_eq!(with("User-agent: x\nDisallow:\n"), []);
        assert_eq!(with("User-agent: x\nAllow: /\n"), []);
        assert_eq!(with("User-agent: x\nAllow: /a\nDisallow: /b\n"), []);
    }

    #[test]
    fn one_name_in_several_groups() {
        assert_eq!(
            found(
                "User-agent: a\nUser-agent: A\nDisallow: /1\nUser-agent: b\nDisallow: /2\nUser-agent: a\nDisallow: /3\n"
            ),
            [(
                6,
                Problem::SplitGroup {
                    name: "a".to_owned(),
                    first: 1
                }
            )]
        );
    }
}
