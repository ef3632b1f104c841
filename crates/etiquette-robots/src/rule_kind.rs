//! Allow or Disallow.

use std::fmt;

/// Whether a rule opens or closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuleKind {
    /// `Allow`
    Allow,
    /// `Disallow`
    Disallow,
}

impl RuleKind {
    /// The name of the record: `Allow` or `Disallow`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Disallow => "Disallow",
        }
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
