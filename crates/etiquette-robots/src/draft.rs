//! Records into groups (RFC 9309, 2.2.1).
//!
//! A rule belongs to the user-agent lines before it, up to the last rule before those; nothing else ends a group. Groups
//! with the same names are one *section*, so that a token reads few sections and no rule is kept twice.
//!
//! Records that describe a group (Crawl-delay, Content-Signal …) also belong to the user-agent lines before them. One
//! that stands between user-agent lines, before any rule, is meant for the names above it only, while the rules that
//! follow are for all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use crate::key::Key;
use crate::lex::{Line, Lines};
use crate::record;
use crate::token::{ProductToken, leading_bytes};

/// The number of a name among [`Draft::names`].
pub(crate) type NameId = u32;
/// The number of a section.
pub(crate) type SectionId = u32;

/// `*`, whether or not the file has it.
pub(crate) const STAR: NameId = 0;

/// Unknown records kept. A file of nothing but short unknown lines would otherwise take up more memory than it is long.
pub(crate) const MOST_UNKNOWN_RECORDS: usize = 1_000;

#[derive(Debug)]
pub(crate) struct RuleDraft<'a> {
    pub(crate) section: SectionId,
    pub(crate) line: u32,
    pub(crate) allow: bool,
    pub(crate) text: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct RecordDraft<'a> {
    /// `None` for a record before the first user-agent line.
    pub(crate) section: Option<SectionId>,
    pub(crate) line: u32,
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

#[derive(Debug)]
pub(crate) struct SitemapDraft<'a> {
    pub(crate) line: u32,
    pub(crate) value: &'a [u8],
}

/// A name and whether a user-agent line has it.
#[derive(Debug)]
pub(crate) struct NameDraft<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) named: bool,
}

/// A file as groups.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) names: Vec<NameDraft<'a>>,
    pub(crate) sections: u32,
    /// Which name reads which section.
    pub(crate) links: Vec<(NameId, SectionId)>,
    pub(crate) rules: Vec<RuleDraft<'a>>,
    pub(crate) records: Vec<RecordDraft<'a>>,
    pub(crate) sitemaps: Vec<SitemapDraft<'a>>,
    pub(crate) delays: Vec<(SectionId, Duration)>,
    /// Whether any line was a record with a name this crate knows.
    pub(crate) recognised: bool,
    /// Whether any line was neither empty nor a comment.
    pub(crate) content: bool,
}

impl<'a> Draft<'a> {
    /// Reads `bytes`. With `wanted`, only groups that these tokens or `*` read are kept.
    pub(crate) fn read(bytes: &'a [u8], wanted: Option<&'a [ProductToken]>) -> Self {
        let mut reader = Reader::new(wanted);
        for line in Lines::new(bytes) {
            match line.record() {
                Some(record) => reader.line(&record),
                None => reader.draft.content |= !line.text.trim_ascii().is_empty(),
            }
        }
        reader.draft
    }
}

/// Bytes compared without regard to ASCII case.
#[derive(Debug)]
struct Folded<'a>(&'a [u8]);

impl PartialEq for Folded<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(other.0)
    }
}

impl Eq for Folded<'_> {}

impl Hash for Folded<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for chunk in self.0.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            word.make_ascii_lowercase();
            state.write(&word);
        }
        state.write_usize(self.0.len());
    }
}

/// Sets of names, each with its section.
#[derive(Debug, Default)]
struct Sections {
    /// For sets of one, the common case.
    single: Vec<Option<SectionId>>,
    larger: HashMap<Vec<NameId>, SectionId>,
}

struct Reader<'a> {
    draft: Draft<'a>,
    /// Numbers of the names seen; not used where `filtered`.
    ids: HashMap<Folded<'a>, NameId>,
    filtered: bool,
    sections: Sections,
    /// The names that the next rule is for.
    agents: Vec<NameId>,
    /// The names that the next describing record is for, as long as no rule has come.
    fresh: Vec<NameId>,
    /// Whether a user-agent line has been seen at all.
    grouped: bool,
    in_rules: bool,
    described: bool,
    agents_section: Option<SectionId>,
    fresh_section: Option<SectionId>,
    unknown: usize,
}

impl<'a> Reader<'a> {
    fn new(wanted: Option<&'a [ProductToken]>) -> Self {
        let mut names = vec![NameDraft {
            text: b"*",
            named: false,
        }];
        for token in wanted.into_iter().flatten() {
            let text = token.as_str().as_bytes();
            if !names
                .iter()
                .any(|name| name.text.eq_ignore_ascii_case(text))
            {
                names.push(NameDraft { text, named: false });
            }
        }
        Self {
            draft: Draft {
                names,
                sections: 0,
                links: Vec::new(),
                rules: Vec::new(),
                records: Vec::new(),
                sitemaps: Vec::new(),
                delays: Vec::new(),
                recognised: false,
                content: false,
            },
            ids: HashMap::new(),
            filtered: wanted.is_some(),
            sections: Sections::default(),
            agents: Vec::new(),
            fresh: Vec::new(),
            grouped: false,
            in_rules: false,
            described: false,
            agents_section: None,
            fresh_section: None,
            unknown: 0,
        }
    }

    #[inline]
    fn line(&mut self, line: &Line<'a>) {
        self.draft.content = true;
        match line.key {
            Key::Disallow | Key::Allow => self.rule(line),
            Key::UserAgent => self.user_agent(line.value),
            Key::Sitemap => self.draft.sitemaps.push(SitemapDraft {
                line: line.number,
                value: line.value,
            }),
            Key::CrawlDelay => {
                if let Some(section) = self.described_section()
                    && let Some(delay) = record::crawl_delay(line.value)
                {
                    self.draft.delays.push((section, delay));
                }
            }
            Key::Extension => self.record(line),
            Key::Unknown if self.unknown < MOST_UNKNOWN_RECORDS => {
                self.unknown += 1;
                self.record(line);
            }
            Key::Unknown | Key::Junk => {}
        }
        self.draft.recognised |= !matches!(line.key, Key::Unknown | Key::Junk);
    }

    fn user_agent(&mut self, value: &'a [u8]) {
        self.grouped = true;
        if self.in_rules {
            self.agents.clear();
            self.fresh.clear();
            self.in_rules = false;
            self.described = false;
        } else if self.described {
            self.fresh.clear();
            self.described = false;
        }
        self.agents_section = None;
        self.fresh_section = None;
        if let Some(id) = self.name(value) {
            self.draft.names[id as usize].named = true;
            self.agents.push(id);
            self.fresh.push(id);
        }
    }

    /// The number of the name on a user-agent line; `None` for no valid token and for tokens nobody asked for.
    fn name(&mut self, value: &'a [u8]) -> Option<NameId> {
        if let [b'*'] | [b'*', b' ' | b'\t', ..] = value {
            return Some(STAR);
        }
        let token = leading_bytes(value);
        if token.is_empty() {
            return None;
        }
        if self.filtered {
            let wanted = self.draft.names.iter().skip(1);
            let at = wanted
                .clone()
                .position(|name| name.text.eq_ignore_ascii_case(token))?;
            return Some(at as NameId + 1);
        }
        match self.ids.entry(Folded(token)) {
            Entry::Occupied(known) => Some(*known.get()),
            Entry::Vacant(new) => {
                let id = self.draft.names.len() as NameId;
                self.draft.names.push(NameDraft {
                    text: token,
                    named: true,
                });
                Some(*new.insert(id))
            }
        }
    }

    fn rule(&mut self, line: &Line<'a>) {
        self.in_rules = true;
        if line.value.is_empty() {
            return;
        }
        if self.agents_section.is_none() {
            self.agents_section = section(&mut self.sections, &mut self.draft, &mut self.agents);
        }
        let Some(section) = self.agents_section else {
            return;
        };
        self.draft.rules.push(RuleDraft {
            section,
            line: line.number,
            allow: line.key == Key::Allow,
            text: line.value,
        });
    }

    /// The section that a describing record belongs to.
    fn described_section(&mut self) -> Option<SectionId> {
        let (names, known) = if self.in_rules {
            (&mut self.agents, &mut self.agents_section)
        } else {
            self.described = true;
            (&mut self.fresh, &mut self.fresh_section)
        };
        if known.is_none() {
            *known = section(&mut self.sections, &mut self.draft, names);
        }
        *known
    }

    fn record(&mut self, line: &Line<'a>) {
        let described = self.described;
        let section = self.described_section();
        if line.key == Key::Unknown {
            self.described = described;
        }
        // Records of groups that nobody asked for are not kept, those before the first group are.
        if section.is_some() || !self.grouped {
            self.draft.records.push(RecordDraft {
                section,
                line: line.number,
                name: line.name,
                value: line.value,
            });
        }
    }
}

/// The section that the set `names` reads; `None` for an empty set.
fn section(
    sections: &mut Sections,
    draft: &mut Draft<'_>,
    names: &mut Vec<NameId>,
) -> Option<SectionId> {
    if names.len() > 1 {
        names.sort_unstable();
        names.dedup();
    }
    let known = match names[..] {
        [] => return None,
        [name] => {
            let name = name as usize;
            if sections.single.len() <= name {
                sections.single.resize(name + 1, None);
            }
            &mut sections.single[name]
        }
        _ => {
            if let Some(&known) = sections.larger.get(&names[..]) {
                return Some(known);
            }
            sections.larger.insert(names.clone(), draft.sections);
            &mut None
        }
    };
    if let Some(known) = *known {
        return Some(known);
    }
    let new = draft.sections;
    draft.sections += 1;
    *known = Some(new);
    draft.links.extend(names.iter().map(|&name| (name, new)));
    Some(new)
}
