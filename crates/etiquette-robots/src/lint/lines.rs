//! Problems of a line by itself, or of its place between others.

use super::problem::{Finding, Problem, excerpt};
use crate::kept::MOST_WILDCARDS;
use crate::key::Key;
use crate::lex::{Line, Lines, RawLine};
use crate::record;
use crate::token::leading_bytes;
use crate::url;

/// Longer Crawl-delays are not waited for by the budget of `tower-etiquette` either.
const LONGEST_DELAY: u64 = 300;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Names a slip of which is looked for. `Disallow` and its like are recognised by [`Key::of`] already.
const NAMES: &[&str] = &[
    "User-agent",
    "Disallow",
    "Allow",
    "Sitemap",
    "Crawl-delay",
    "Request-rate",
    "Content-Signal",
    "Content-Usage",
];

pub(super) fn check(text: &[u8]) -> Vec<Finding> {
    let mut checker = Checker::default();
    for line in Lines::new(text) {
        checker.raw(&line);
        if let Some(record) = line.record() {
            checker.record(&record, &line);
        } else {
            checker.no_record(&line);
        }
    }
    checker.findings
}

/// Where in a group the last line was.
#[derive(Default, Clone, Copy, PartialEq)]
enum Place {
    #[default]
    Outside,
    UserAgents,
    Rules,
}

#[derive(Default)]
struct Checker {
    findings: Vec<Finding>,
    place: Place,
    /// Records after a user-agent line and before a rule: a problem if another user-agent line follows.
    between: Vec<(u32, String)>,
}

impl Checker {
    fn found(&mut self, line: u32, problem: Problem) {
        self.findings.push(Finding { line, problem });
    }

    fn raw(&mut self, line: &RawLine<'_>) {
        if line.text.starts_with(BYTE_ORDER_MARK) {
            self.found(line.number, Problem::ByteOrderMark);
        } else if str::from_utf8(line.text).is_err() {
            self.found(line.number, Problem::NotUtf8);
        }
    }

    fn no_record(&mut self, line: &RawLine<'_>) {
        let text = line.text.trim_ascii();
        if !text.is_empty() && !text.starts_with(BYTE_ORDER_MARK) {
            let problem = match text {
                // A name alone, such as `Disallow` for `Disallow:`.
                name if Key::of(name).by_the_book().is_some() => {
                    Problem::MissingColon(excerpt(name))
                }
                _ => Problem::NoRecord(excerpt(text)),
            };
            self.found(line.number, problem);
        }
    }

    fn record(&mut self, line: &Line<'_>, raw: &RawLine<'_>) {
        let number = line.number;
        if !line.colon {
            self.found(number, Problem::MissingColon(excerpt(line.name)));
        }
        self.name(line);
        match line.key {
            Key::UserAgent => self.user_agent(line),
            Key::Allow | Key::Disallow => self.rule(line, raw),
            Key::Sitemap => {
                // Resolved against a host that cannot be: what comes back as it is, is absolute.
                let absolute = url::path_to_match(&String::from_utf8_lossy(line.value)).is_some()
                    && !line.value.to_ascii_lowercase().starts_with(b"ftp");
                if !absolute {
                    self.found(number, Problem::SitemapNotAbsolute(excerpt(line.value)));
                }
            }
            Key::CrawlDelay => match record::crawl_delay(line.value) {
                None => self.found(number, Problem::UnreadableDelay(excerpt(line.value))),
                Some(delay) if delay.as_secs() > LONGEST_DELAY => {
                    self.found(number, Problem::DelayTooLong(excerpt(line.value)));
                }
                Some(_) => {}
            },
            Key::Extension | Key::Unknown | Key::Junk => {}
        }
        match (line.key, self.place) {
            (Key::CrawlDelay | Key::Extension, Place::Outside) => {
                self.found(number, Problem::OutsideGroup(excerpt(line.name)));
            }
            (Key::CrawlDelay | Key::Extension | Key::Unknown | Key::Sitemap, Place::UserAgents) => {
                self.between.push((number, excerpt(line.name)))
            }
            _ => {}
        }
    }

    fn name(&mut self, line: &Line<'_>) {
        let written = line.name;
        if let Some(meant) = line.key.by_the_book() {
            if !written.eq_ignore_ascii_case(meant.as_bytes()) {
                let problem = Problem::Misspelled {
                    written: excerpt(written),
                    meant,
                    forgiven: true,
                };
                self.found(line.number, problem);
            }
            return;
        }
        let slip = NAMES
            .iter()
            .find(|name| line.key == Key::Unknown && is_slip(written, name.as_bytes()));
        if let Some(meant) = slip {
            let problem = Problem::Misspelled {
                written: excerpt(written),
                meant,
                forgiven: false,
            };
            self.found(line.number, problem);
        }
    }

    fn user_agent(&mut self, line: &Line<'_>) {
        if self.place == Place::UserAgents {
            for (number, name) in std::mem::take(&mut self.between) {
                self.found(number, Problem::BetweenUserAgents(name));
            }
        }
        self.between.clear();
        self.place = Place::UserAgents;
        if line.value == b"*" {
            return;
        }
        let read = if line.value.starts_with(b"* ") || line.value.starts_with(b"*\t") {
            &line.value[..1]
        } else {
            leading_bytes(line.value)
        };
        if read.is_empty() {
            self.found(line.number, Problem::NoName(excerpt(line.value)));
        } else if read.len() < line.value.len() {
            let problem = Problem::NameCut {
                written: excerpt(line.value),
                read: excerpt(read),
            };
            self.found(line.number, problem);
        }
    }

    fn rule(&mut self, line: &Line<'_>, raw: &RawLine<'_>) {
        let (number, value) = (line.number, line.value);
        if self.place == Place::Outside {
            self.found(number, Problem::OutsideGroup(excerpt(line.name)));
        } else {
            self.place = Place::Rules;
        }
        if value.is_empty() {
            if line.key == Key::Allow && !raw.has_comment {
                self.found(number, Problem::EmptyAllow);
            }
            return;
        }
        if value.windows(3).any(|part| part == b"://")
            && value.first().is_some_and(u8::is_ascii_alphabetic)
        {
            self.found(number, Problem::UrlAsRule(excerpt(value)));
        } else if !matches!(value.first(), Some(b'/' | b'*')) {
            self.found(number, Problem::RuleWithoutSlash(excerpt(value)));
        }
        if raw.has_comment && !raw.text.ends_with(b" ") && !raw.text.ends_with(b"\t") {
            self.found(number, Problem::CommentInRule(excerpt(value)));
        }
        if value[..value.len() - 1].contains(&b'$') {
            self.found(number, Problem::DollarWithinRule(excerpt(value)));
        }
        if value
            .split(|&byte| byte == b'*')
            .filter(|part| !part.is_empty())
            .count()
            > MOST_WILDCARDS
        {
            self.found(number, Problem::OverLimit(excerpt(value)));
        }
    }
}

/// Whether `written` is one or two letters off `name`, white space, hyphens and case aside.
fn is_slip(written: &[u8], name: &[u8]) -> bool {
    let fold = |text: &[u8]| -> Vec<u8> {
        text.iter()
            .filter(|byte| byte.is_ascii_alphanumeric())
            .map(u8::to_ascii_lowercase)
            .collect()
    };
    let (written, name) = (fold(written), fold(name));
    let most = if name.len() < 7 { 1 } else { 2 };
    written.len().abs_diff(name.len()) <= most && edits(&written, &name) <= most
}

/// How many letters to insert, drop, replace or swap with their neighbour.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, Problem)> {
        check(text.as_bytes())
            .into_iter()
            .map(|finding| (finding.line, finding.problem))
            .collect()
    }

    #[test]
    fn slips_in_names() {
        let misspelled = |written: &str, meant, forgiven| Problem::Misspelled {
            written: written.to_owned(),
            meant,
            forgiven,
        };
        assert_eq!(
            found(
                "useragent: *\ndissalow: /a\nalow: /b\nUser-agnet: x\nSitmap: x\nHost: x\nCrawldelay: 1\nNoindex: /"
            ),
            [
                (1, misspelled("useragent", "User-agent", true)),
                (2, misspelled("dissalow", "Disallow", true)),
                (3, misspelled("alow", "Allow", false)),
                (4, misspelled("User-agnet", "User-agent", false)),
                (5, misspelled("Sitmap", "Sitemap", false)),
                (7, misspelled("Crawldelay", "Crawl-delay", true)),
            ]
        );
    }

    #[test]
    fn lines_that_are_no_records() {
        assert_eq!(
            found("User-agent *\nDisallow\nhello there world\n\u{feff}Disallow: /\n"),
            [
                (1, Problem::MissingColon("User-agent".to_owned())),
                (2, Problem::MissingColon("Disallow".to_owned())),
                (3, Problem::NoRecord("hello there world".to_owned())),
                (4, Problem::ByteOrderMark),
            ]
        );
        assert_eq!(check(b"# \xff\nHost: \xff\n")[0].line, 2);
    }

    #[test]
    fn rules_that_are_no_paths() {
        let text = |text: &str| text.to_owned();
        assert_eq!(
            found(
                "User-agent: *\nDisallow: a\nDisallow: https://www.example.com/a\nDisallow: /a#b\nDisallow: /a # b\n\
                 Disallow: /a$b\nAllow:\nDisallow:\nDisallow: /x?u=http://y/\n"
            ),
            [
                (2, Problem::RuleWithoutSlash(text("a"))),
                (3, Problem::UrlAsRule(text("https://www.example.com/a"))),
                (4, Problem::CommentInRule(text("/a"))),
                (6, Problem::DollarWithinRule(text("/a$b"))),
                (7, Problem::EmptyAllow),
            ]
        );
    }

    #[test]
    fn records_out_of_place() {
        assert_eq!(
            found(
                "Disallow: /\nCrawl-delay: 1\nUser-agent: a\nX-Note: x\nUser-agent: b\nHost: c\nDisallow: /\nX: y\nUser-agent: c"
            ),
            [
                (1, Problem::OutsideGroup("Disallow".to_owned())),
                (2, Problem::OutsideGroup("Crawl-delay".to_owned())),
                (4, Problem::BetweenUserAgents("X-Note".to_owned())),
            ]
        );
    }

    #[test]
    fn names_and_values() {
        assert_eq!(
            found(
                "User-agent: Foobot/2.1\nUser-agent: 5emeRue\nUser-agent: * all\nCrawl-delay: 1s\nCrawl-delay: 900\nSitemap: /s.xml"
            ),
            [
                (
                    1,
                    Problem::NameCut {
                        written: "Foobot/2.1".to_owned(),
                        read: "Foobot".to_owned()
                    }
                ),
                (2, Problem::NoName("5emeRue".to_owned())),
                (
                    3,
                    Problem::NameCut {
                        written: "* all".to_owned(),
                        read: "*".to_owned()
                    }
                ),
                (4, Problem::UnreadableDelay("1s".to_owned())),
                (5, Problem::DelayTooLong("900".to_owned())),
                (6, Problem::SitemapNotAbsolute("/s.xml".to_owned())),
            ]
        );
    }
}
