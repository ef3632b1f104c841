//! What a site says about one use, and about all of them.

use std::fmt;

/// What a site says about one use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wish {
    /// Nothing.
    #[default]
    Unknown,
    /// It may be done.
    Allow,
    /// It shall not be done.
    Disallow,
}

impl Wish {
    /// Both taken together: any disallow wins, then any allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Disallow, _) | (_, Self::Disallow) => Self::Disallow,
            (Self::Allow, _) | (_, Self::Allow) => Self::Allow,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "unknown",
            Self::Allow => "allow",
            Self::Disallow => "disallow",
        })
    }
}

/// A use of what is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Use {
    /// Training of models (`train-ai`; Content-Signal's `ai-train`).
    TrainAi,
    /// A search index with links and excerpts.
    Search,
    /// Input to a model that answers, such as retrieval. Only Content-Signal speaks of it.
    AiInput,
}

impl Use {
    /// The name of the category, such as `train-ai`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TrainAi => "train-ai",
            Self::Search => "search",
            Self::AiInput => "ai-input",
        }
    }
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One wish for each use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Wishes {
    /// Training of models.
    pub train_ai: Wish,
    /// A search index.
    pub search: Wish,
    /// Input to a model.
    pub ai_input: Wish,
}

impl Wishes {
    /// The wish about one use.
    #[must_use]
    pub fn about(&self, what: Use) -> Wish {
        match what {
            Use::TrainAi => self.train_ai,
            Use::Search => self.search,
            Use::AiInput => self.ai_input,
        }
    }

    /// Both taken together, use by use.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            train_ai: self.train_ai.and(other.train_ai),
            search: self.search.and(other.search),
            ai_input: self.ai_input.and(other.ai_input),
        }
    }
}
