//! llms.txt: what a site tells language models about itself.
//!
//! # Flow
//! [`LlmsTxt::parse`] reads the Markdown subset that llmstxt.org describes: a title, a quoted summary, prose, and sections
//! with lists of links. Nothing is rendered.
//!
//! # Scope
//! Lenient: any list mark, links with or without a note, sections of any heading level from two on, a list before the
//! first section. The prose between is given out as it stands, without code blocks taken for structure.
//!
//! # Bounds
//! [`MAX_BYTES`] are read and [`MAX_LINKS`] links kept; linear in the length.
//!
//! # Non-goals
//! Markdown in general; fetching what the links lead to, about which robots.txt decides.

use std::fmt;

use http::Uri;

use crate::reference::resolve;

/// How much of a file is read: 1 MiB. (`llms-full.txt` holds whole sites; it is no list of links.)
pub const MAX_BYTES: usize = 1024 * 1024;

/// Links beyond this many are not kept.
pub const MAX_LINKS: usize = 10_000;

/// A parsed llms.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlmsTxt {
    /// The name of the site or project.
    pub title: String,
    /// The quoted summary below it.
    pub summary: Option<String>,
    /// The prose before the first section, as Markdown.
    pub details: Option<String>,
    /// The sections, in the order of the file. Links before the first heading are in one without a title.
    pub sections: Vec<Section>,
    /// Whether the file was longer than what was read or kept.
    pub truncated: bool,
}

/// A section of an llms.txt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// Its links.
    pub links: Vec<LlmsLink>,
}

impl Section {
    /// Whether its links may be left out where a short context is needed: the section is called "Optional".
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.title.eq_ignore_ascii_case("optional")
    }
}

/// A link of an llms.txt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlmsLink {
    /// Its text.
    pub title: String,
    /// Where it leads, absolute.
    pub uri: Uri,
    /// What is said about it.
    pub notes: Option<String>,
}

/// The file has no title, so it is no llms.txt: usually an error page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLlmsTxt;

impl fmt::Display for NotLlmsTxt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file has no title, so it is no llms.txt")
    }
}

impl std::error::Error for NotLlmsTxt {}

impl LlmsTxt {
    /// Reads the file at `uri`, its address after redirects. Bytes that are no UTF-8 become replacement characters.
    ///
    /// # Errors
    /// [`NotLlmsTxt`] when no first-level heading comes before anything else.
    ///
    /// ```
    /// use etiquette_discovery::llms_txt::LlmsTxt;
    ///
    /// let uri = "https://www.example.com/llms.txt".parse().unwrap();
    /// let file = b"# Example\n> What we do.\n\n## Docs\n- [Start](start.md): how to begin\n";
    /// let parsed = LlmsTxt::parse(&uri, file)?;
    /// assert_eq!(parsed.summary.as_deref(), Some("What we do."));
    /// assert_eq!(parsed.sections[0].links[0].uri, "https://www.example.com/start.md");
    /// # Ok::<(), etiquette_discovery::llms_txt::NotLlmsTxt>(())
    /// ```
    pub fn parse(uri: &Uri, file: &[u8]) -> Result<Self, NotLlmsTxt> {
        let mut parsed = Self {
            truncated: file.len() > MAX_BYTES,
            ..Self::default()
        };
        let text = String::from_utf8_lossy(&file[..file.len().min(MAX_BYTES)]);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut lines = text.lines();
        let title = lines
            .find(|line| !line.trim().is_empty())
            .and_then(heading)
            .filter(|(level, title)| *level == 1 && !title.is_empty())
            .ok_or(NotLlmsTxt)?;
        parsed.title = title.1.to_owned();

        let mut details = String::new();
        let mut links = 0;
        let mut in_code = false;
        let mut before_prose = true;
        for line in lines {
            let trimmed = line.trim();
            if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
                in_code = !in_code;
            } else if !in_code {
                if let Some((level, title)) = heading(line)
                    && level >= 2
                {
                    parsed.sections.push(Section {
                        title: title.to_owned(),
                        links: Vec::new(),
                    });
                    continue;
                }
                if let Some(link) = link(uri, trimmed) {
                    if links == MAX_LINKS {
                        parsed.truncated = true;
                        break;
                    }
                    links += 1;
                    if parsed.sections.is_empty() {
                        parsed.sections.push(Section::default());
                    }
                    if let Some(section) = parsed.sections.last_mut() {
                        section.links.push(link);
                    }
                    continue;
                }
                if before_prose && let Some(quoted) = trimmed.strip_prefix('>') {
                    let summary = parsed.summary.get_or_insert_default();
                    if !summary.is_empty() {
                        summary.push(' ');
                    }
                    summary.push_str(quoted.trim());
                    continue;
                }
            }
            before_prose &= trimmed.is_empty();
            if parsed.sections.is_empty() {
                details.push_str(line);
                details.push('\n');
            }
        }
        let details = details.trim();
        parsed.details = (!details.is_empty()).then(|| details.to_owned());
        Ok(parsed)
    }

    /// All links with the sections they stand in.
    pub fn links(&self) -> impl Iterator<Item = (&Section, &LlmsLink)> {
        self.sections
            .iter()
            .flat_map(|section| section.links.iter().map(move |link| (section, link)))
    }
}

/// Level and text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let separated = text.is_empty() || text.starts_with([' ', '\t']);
    ((1..=6).contains(&level) && separated)
        .then(|| (level, text.trim().trim_end_matches('#').trim_end()))
}

/// `- [title](address "hover"): notes`
fn link(base: &Uri, line: &str) -> Option<LlmsLink> {
    let item = line.strip_prefix(['-', '*', '+'])?;
    let item = item.strip_prefix([' ', '\t'])?.trim_start();
    // Titles may be emphasised.
    let item = item.trim_start_matches(['*', '_']);
    let (title, rest) = item.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = match rest.strip_prefix('<') {
        Some(rest) => {
            let (target, rest) = rest.split_once('>')?;
            (target, &rest[rest.find(')')? + 1..])
        }
        None => {
            let end = closing(rest)?;
            let inside = rest[..end].trim();
            (inside.split_ascii_whitespace().next()?, &rest[end + 1..])
        }
    };
    let notes = rest
        .trim_start_matches(['*', '_', ' '])
        .trim_start_matches([':', '-', '–', '—'])
        .trim();
    Some(LlmsLink {
        title: title.trim().to_owned(),
        uri: resolve(base, target).ok()?,
        notes: (!notes.is_empty()).then(|| notes.to_owned()),
    })
}

/// Where the parenthesis closes that was opened before `text`; addresses may hold pairs of them.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' if open == 0 => return Some(at),
            b')' => open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uri() -> Uri {
        "https://www.example.com/docs/llms.txt".parse().unwrap()
    }

    fn parse(file: &str) -> LlmsTxt {
        LlmsTxt::parse(&uri(), file.as_bytes()).unwrap()
    }

    #[test]
    fn all_parts() {
        let parsed = parse(
            "\u{feff}\n# Example #\r\n\r\n> What we do,\n> in two lines.\n\nImportant:\n\n- prose that is a list\n\n\
             ```\n## not a section\n- [not](a-link)\n```\n\n\
             ## Docs\n\nAbout them.\n- [Start](start.md): how to begin\n* [A (b)](</c d>) - note\n\
             + **[Wiki](https://en.example/X_(y) \"hover\")**\n- [mail](mailto:x@example.com)\n\n## Optional\n  - [More](/more)\n",
        );
        assert_eq!(parsed.title, "Example");
        assert_eq!(parsed.summary.as_deref(), Some("What we do, in two lines."));
        let details = parsed.details.as_deref().unwrap();
        assert!(details.starts_with("Important:\n\n- prose that is a list"));
        assert!(details.contains("## not a section"));
        let [docs, optional] = &parsed.sections[..] else {
            panic!("{parsed:?}")
        };
        assert_eq!(docs.title, "Docs");
        assert!(!docs.is_optional() && optional.is_optional());
        let seen: Vec<_> = docs
            .links
            .iter()
            .map(|link| (&*link.title, link.uri.to_string(), link.notes.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                (
                    "Start",
                    "https://www.example.com/docs/start.md".to_owned(),
                    Some("how to begin")
                ),
                (
                    "A (b)",
                    "https://www.example.com/c%20d".to_owned(),
                    Some("note")
                ),
                ("Wiki", "https://en.example/X_(y)".to_owned(), None),
            ]
        );
        assert_eq!(optional.links[0].uri, "https://www.example.com/more");
        assert_eq!(parsed.links().count(), 4);
    }

    #[test]
    fn links_before_any_section_are_kept() {
        let parsed = parse("# T\n- [a](/a)\n");
        assert_eq!(parsed.sections.len(), 1);
        assert_eq!(parsed.sections[0].title, "");
    }

    #[test]
    fn without_a_title_it_is_something_else() {
        for file in [
            "",
            "\n\n",
            "<!doctype html>",
            "## Second level\n",
            "#\n",
            "#hash\n",
            "text\n# late\n",
        ] {
            assert_eq!(
                LlmsTxt::parse(&uri(), file.as_bytes()),
                Err(NotLlmsTxt),
                "{file}"
            );
        }
    }

    #[test]
    fn no_more_than_the_bounds() {
        let file = format!("# T\n{}", "- [a](b)\n".repeat(MAX_LINKS + 1));
        let parsed = parse(&file);
        assert!(parsed.truncated);
        assert_eq!(parsed.links().count(), MAX_LINKS);
        let parsed = parse(&format!("# T\n{}", "x".repeat(MAX_BYTES)));
        assert!(parsed.truncated);
    }

    proptest! {
        #[test]
        fn nothing_panics(file in r#"# t\n([-*#\[\]()<>`: \nñ]|- \[a\]\()*"#) {
            let _ = LlmsTxt::parse(&uri(), file.as_bytes());
        }
    }
}
