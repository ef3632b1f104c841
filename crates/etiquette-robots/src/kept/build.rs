//! From groups as they were read to the lists that are kept.

use std::cmp::Reverse;

use super::layout::{
    Extras, Facts, KNOWN_NAMES, Kept, NONE, Name, Plain, RecordAt, Section, SitemapAt, Wild,
    Written,
};
use super::lookup::folded_cmp;
use super::prepare::{Prepared, Rules, link, odd_rules};
use crate::canon;
use crate::draft::{Draft, RecordDraft};

impl Kept {
    pub(crate) fn build(draft: &Draft<'_>) -> Self {
        let mut scratch = Vec::new();
        let odd = odd_rules(&draft.rules, &mut scratch);
        let Rules {
            plain,
            wild,
            over_limit,
        } = Rules::new(&draft.rules, &odd, &scratch);

        let rules = plain.iter().chain(&wild);
        let names = draft.names.iter().map(|name| name.text.len());
        let mut arena = Vec::with_capacity(
            rules.map(|rule| rule.canonical.len()).sum::<usize>() + names.sum::<usize>(),
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
                let longer = rule.specificity > rule.canonical.len() as u32;
                Wild {
                    end: arena.len() as u32,
                    facts: Facts(rule.facts.0 | if longer { Facts::LONGER } else { 0 }),
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
        extras.longer = wild
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.specificity > rule.canonical.len() as u32)
            .map(|(at, rule)| (at as u32, rule.specificity))
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
            && extras.longer.is_empty()
            && extras.records.is_empty()
            && extras.sitemaps.is_empty()
            && extras.delays.is_empty();
        self.extras = (!empty).then(|| Box::new(extras));
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
