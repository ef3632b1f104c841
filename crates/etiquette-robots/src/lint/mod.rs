//! What crawlers will misread in a robots.txt, for those who operate a site.
//!
//! **Flow**: [`lint`] looks at each line by itself, then at the groups and rules as they are read together, and returns
//! the problems in the order of their lines. **Scope**: what RFC 9309 crawlers, this one included, read in another way
//! than it is evidently meant, and what never has an effect. **Non-goals**: whether the rules are wise; records that
//! RFC 9309 does not know, except where their name looks like a slip.
//!
//! ```
//! use etiquette_robots::lint::{Problem, lint};
//!
//! let findings = lint(b"User-agent: *\nDisallow: private/\n");
//! assert_eq!(findings[0].line(), 2);
//! assert_eq!(findings[0].problem(), &Problem::RuleWithoutSlash("private/".to_owned()));
//! ```

mod groups;
mod lines;
mod problem;

pub use problem::{Finding, Problem};

use crate::lex;
use crate::robots::MAX_BYTES;
use crate::unusable::Unusable;

/// The problems of a robots.txt, in the order of their lines.
///
/// Takes time linear in the file, and for [`Problem::NeverDecides`] the number of rules times that of those with
/// wildcards; beyond 2,000 of those it looks at rules without wildcards only.
#[must_use]
pub fn lint(bytes: &[u8]) -> Vec<Finding> {
    let counted = lex::cut(bytes, MAX_BYTES);
    let text = lex::without_byte_order_mark(counted);
    let mut findings = lines::check(text);
    if !groups::check(text, &mut findings) {
        // Each line of a web page would be a finding of its own.
        findings.clear();
        let what = Unusable::of(text);
        findings.push(Finding {
            line: 1,
            problem: Problem::Unusable(what),
        });
    }
    if counted.len() < bytes.len() {
        findings.push(Finding {
            line: lex::Lines::new(counted).count() as u32 + 1,
            problem: Problem::TooLong,
        });
    }
    findings.sort_by_key(|finding| finding.line);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, Problem)> {
        lint(text.as_bytes())
            .into_iter()
            .map(|finding| (finding.line, finding.problem))
            .collect()
    }

    #[test]
    fn a_clean_file_has_no_problems() {
        let text = "# ours\n\u{feff}".replace('\u{feff}', "")
            + "User-agent: *\nDisallow: /a/\nAllow: /a/b$\nCrawl-delay: 2\n\nUser-agent: OtherBot\nDisallow: /\n\n\
               Sitemap: https://www.example.com/s.xml\nHost: www.example.com\n";
        assert_eq!(found(&text), []);
        assert_eq!(found(&format!("\u{feff}{text}")), []);
        assert_eq!(found(""), []);
    }

    #[test]
    fn other_files_are_one_problem() {
        assert_eq!(
            found("<!doctype html>\n<p>a\n<p>b\n"),
            [(1, Problem::Unusable(Unusable::Html))]
        );
        assert_eq!(
            lint(b"\xff\xfeU\0s\0e\0r\0")[0].problem,
            Problem::Unusable(Unusable::Utf16)
        );
    }

    #[test]
    fn a_file_that_is_too_long_says_from_where() {
        let text = "User-agent: *\n".to_owned() + &"# padding\n".repeat(60_000) + "Disallow: /\n";
        assert_eq!(found(&text), [(51_200, Problem::TooLong)]);
    }
}
