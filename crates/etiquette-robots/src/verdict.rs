//! The answer to "may this crawler fetch this URL?", with its reason.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::kept::{Kept, RuleAt};
use crate::rule_kind::RuleKind;
use crate::token::ProductToken;

/// One rule of a robots.txt. Cloning is cheap; the rule keeps the file it is from in memory.
#[derive(Clone)]
pub struct Rule {
    file: Arc<Kept>,
    at: RuleAt,
}

impl Rule {
    pub(crate) const fn new(file: Arc<Kept>, at: RuleAt) -> Self {
        Self { file, at }
    }

    /// Whether it opens or closes.
    #[must_use]
    pub fn kind(&self) -> RuleKind {
        self.file.kind(self.at)
    }

    /// The pattern as the file has it. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// The pattern as the file has it.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.file.written(self.at)
    }

    /// The number of its line, counted from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.file.line(self.at)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.kind() == other.kind() && self.line() == other.line() && self.bytes() == other.bytes()
    }
}

impl Eq for Rule {}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind(), self.text())
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("kind", &self.kind())
            .field("text", &self.text())
            .field("line", &self.line())
            .finish()
    }
}

/// Why a verdict is as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A rule matches; [`Verdict::rule`] has it.
    Rule,
    /// A group holds for the crawler, but none of its rules matches: allowed.
    NoRule,
    /// No group holds for the crawler: allowed.
    NoGroup,
    /// robots.txt itself is always allowed (RFC 9309, 2.2.2).
    RobotsTxt,
    /// The file was parsed for other tokens, so its rules for this one are not known: disallowed. A mistake of the
    /// caller; see [`RobotsBuilder::tokens`](crate::RobotsBuilder::tokens).
    NotParsedFor,
}

/// Which group of the file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupName {
    /// Named by this token.
    Token(ProductToken),
    Star,
    None,
}

impl GroupName {
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Token(token) => Some(token.as_str()),
            Self::Star => Some("*"),
            Self::None => None,
        }
    }
}

/// Whether a URL may be fetched, and why. Owned, and cheap to clone.
///
/// ```
/// use etiquette_robots::{ProductToken, Robots};
///
/// let robots = Robots::parse(b"User-agent: *\nDisallow: /private/\n");
/// let token = ProductToken::try_from("ExampleBot")?;
/// let verdict = robots.group(&token).check(b"/private/x");
/// assert!(!verdict.allowed());
/// assert_eq!(
///     verdict.to_string(),
///     "disallowed by line 2 (`Disallow: /private/`) in the group of `*`"
/// );
/// # Ok::<(), etiquette_robots::InvalidToken>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    allowed: bool,
    cause: Cause,
    rule: Option<Rule>,
    group: GroupName,
}

impl Verdict {
    pub(crate) fn new(cause: Cause, rule: Option<Rule>, group: GroupName) -> Self {
        let allowed = match &rule {
            Some(rule) => rule.kind() == RuleKind::Allow,
            None => cause != Cause::NotParsedFor,
        };
        Self {
            allowed,
            cause,
            rule,
            group,
        }
    }

    /// Whether no rule forbids the URL. It is no legal advice: a site's terms and the law are other questions.
    #[must_use]
    pub const fn allowed(&self) -> bool {
        self.allowed
    }

    /// The rule that decided, if one did.
    #[must_use]
    pub const fn rule(&self) -> Option<&Rule> {
        self.rule.as_ref()
    }

    /// The group that was read: the crawler's token, `*`, or `None` where no group holds for it.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_str()
    }

    /// Why.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.allowed {
            "allowed"
        } else {
            "disallowed"
        })?;
        match (self.cause, &self.rule) {
            (_, Some(rule)) => write!(f, " by line {} (`{rule}`)", rule.line())?,
            (Cause::RobotsTxt, _) => return f.write_str(": robots.txt is always open"),
            (Cause::NoGroup, _) => return f.write_str(": no group is for this crawler"),
            (Cause::NotParsedFor, _) => {
                return f.write_str(": the file was parsed for other crawlers");
            }
            (Cause::NoRule | Cause::Rule, None) => f.write_str(": no rule matches")?,
        }
        match self.group() {
            Some(group) => write!(f, " in the group of `{group}`"),
            None => Ok(()),
        }
    }
}
