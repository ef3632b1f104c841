//! What is wrong with a line.

use std::fmt;

use crate::unusable::Unusable;

/// One problem and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub(super) line: u32,
    pub(super) problem: Problem,
}

impl Finding {
    /// The number of the line, counted from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// What is wrong.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

/// What crawlers will misread. Texts are shortened to 80 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// The file is something else.
    Unusable(Unusable),
    /// A byte order mark within the file hides the name of the record after it.
    ByteOrderMark,
    /// The line is neither a comment nor a record.
    NoRecord(String),
    /// The colon after this name is missing. Some crawlers guess it, others skip the line.
    MissingColon(String),
    /// A name that looks like a slip. Crawlers differ in which slips they forgive.
    Misspelled {
        /// As the file has it.
        written: String,
        /// As it should be.
        meant: &'static str,
        /// Whether this crate reads it as meant.
        forgiven: bool,
    },
    /// A rule that starts neither with `/` nor with `*` matches nothing.
    RuleWithoutSlash(String),
    /// A rule takes the path of a URL, not the whole. It matches nothing.
    UrlAsRule(String),
    /// A `#` right behind a path starts a comment: what follows is not part of the rule. `%23` is a `#`.
    CommentInRule(String),
    /// A `$` that is not at the end stands for itself.
    DollarWithinRule(String),
    /// An Allow without a path has no effect. An empty Disallow opens all, an empty Allow does nothing.
    EmptyAllow,
    /// A rule or a describing record before the first user-agent line is for nobody.
    OutsideGroup(String),
    /// A record between user-agent lines. Some crawlers take it for the end of the list, and forget the names above it.
    BetweenUserAgents(String),
    /// The name on a user-agent line has more to it than crawlers compare.
    NameCut {
        /// As the file has it.
        written: String,
        /// What is compared.
        read: String,
    },
    /// No crawler can have such a name.
    NoName(String),
    /// No plain number of seconds. Crawlers ignore it.
    UnreadableDelay(String),
    /// A longer Crawl-delay than crawlers wait. Many give up on the site, others take a shorter one.
    DelayTooLong(String),
    /// A sitemap must be given as a full http or https URL.
    SitemapNotAbsolute(String),
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// Nothing from this line on is read: the file is too long. Crawlers read 500 KiB.
    TooLong,
    /// More wildcards than are matched; the rule closes more than it says, or is dropped.
    OverLimit(String),
    /// Whatever this rule matches, another decides.
    NeverDecides {
        /// The rule.
        rule: String,
        /// The line of a rule that always wins over it.
        other: u32,
    },
    /// A name has several groups. They hold together, but some crawlers read the first only.
    SplitGroup {
        /// The name.
        name: String,
        /// The line of the first user-agent line with it.
        first: u32,
    },
    /// A group of its own replaces the one for `*`; rules of `*` that are not repeated do not hold for this crawler.
    ShadowsStar {
        /// The name with the own group.
        name: String,
        /// How many Disallow rules of `*` have no counterpart.
        missing: usize,
        /// The line of the first of them.
        first: u32,
    },
}

impl Problem {
    /// The kind of the problem as a word for programs: `missing-colon`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Unusable(_) => "unusable",
            Self::ByteOrderMark => "byte-order-mark",
            Self::NoRecord(_) => "no-record",
            Self::MissingColon(_) => "missing-colon",
            Self::Misspelled { .. } => "misspelled",
            Self::RuleWithoutSlash(_) => "rule-without-slash",
            Self::UrlAsRule(_) => "url-as-rule",
            Self::CommentInRule(_) => "comment-in-rule",
            Self::DollarWithinRule(_) => "dollar-within-rule",
            Self::EmptyAllow => "empty-allow",
            Self::OutsideGroup(_) => "outside-group",
            Self::BetweenUserAgents(_) => "between-user-agents",
            Self::NameCut { .. } => "name-cut",
            Self::NoName(_) => "no-name",
            Self::UnreadableDelay(_) => "unreadable-delay",
            Self::DelayTooLong(_) => "delay-too-long",
            Self::SitemapNotAbsolute(_) => "sitemap-not-absolute",
            Self::NotUtf8 => "not-utf-8",
            Self::TooLong => "too-long",
            Self::OverLimit(_) => "over-limit",
            Self::NeverDecides { .. } => "never-decides",
            Self::SplitGroup { .. } => "split-group",
            Self::ShadowsStar { .. } => "shadows-star",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(what) => write!(f, "no robots.txt: {what}"),
            Self::ByteOrderMark => {
                f.write_str("a byte order mark within the file hides this record")
            }
            Self::NoRecord(text) => write!(f, "no record: `{text}`; comments start with #"),
            Self::MissingColon(name) => write!(f, "the colon after `{name}` is missing"),
            Self::Misspelled {
                written,
                meant,
                forgiven: true,
            } => write!(
                f,
                "`{written}` should be `{meant}`; not all crawlers forgive it"
            ),
            Self::Misspelled { written, meant, .. } => {
                write!(f, "`{written}` is not known; did you mean `{meant}`?")
            }
            Self::RuleWithoutSlash(rule) => {
                write!(f, "`{rule}` matches nothing: a path starts with / or *")
            }
            Self::UrlAsRule(rule) => {
                write!(
                    f,
                    "`{rule}` matches nothing: a rule is a path, not a full URL"
                )
            }
            Self::CommentInRule(rule) => write!(
                f,
                "the rule ends at `{rule}`: # starts a comment (write %23 for the character)"
            ),
            Self::DollarWithinRule(rule) => {
                write!(
                    f,
                    "$ within `{rule}` stands for itself: only one at the end means the end"
                )
            }
            Self::EmptyAllow => f.write_str("an Allow without a path has no effect"),
            Self::OutsideGroup(name) => {
                write!(f, "`{name}` before the first User-agent line is for nobody")
            }
            Self::BetweenUserAgents(name) => write!(
                f,
                "`{name}` between User-agent lines: some crawlers forget the names above it"
            ),
            Self::NameCut { written, read } => {
                write!(f, "crawlers read the name `{written}` as `{read}`")
            }
            Self::NoName(written) => write!(
                f,
                "`{written}` is no crawler's name: it has letters, `_` and `-` only, or is `*`"
            ),
            Self::UnreadableDelay(value) => {
                write!(f, "Crawl-delay `{value}` is no plain number of seconds")
            }
            Self::DelayTooLong(value) => {
                write!(f, "Crawl-delay `{value}` is longer than crawlers wait")
            }
            Self::SitemapNotAbsolute(value) => {
                write!(f, "sitemap `{value}` is no full http or https URL")
            }
            Self::NotUtf8 => f.write_str("bytes that are not UTF-8"),
            Self::TooLong => f.write_str("nothing from here on is read: the file is over 500 KiB"),
            Self::OverLimit(rule) => write!(f, "`{rule}` has more wildcards than are matched"),
            Self::NeverDecides { rule, other } => {
                write!(f, "`{rule}` has no effect: line {other} always decides")
            }
            Self::SplitGroup { name, first } => write!(
                f,
                "another group for `{name}`, after line {first}: some crawlers read the first only"
            ),
            Self::ShadowsStar {
                name,
                missing,
                first,
            } => write!(
                f,
                "the group of `{name}` replaces that of `*`: {missing} of its Disallow rules, such as line {first}, \
                 do not hold for it"
            ),
        }
    }
}

/// `bytes` as text of at most 80 characters.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(MOST) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
