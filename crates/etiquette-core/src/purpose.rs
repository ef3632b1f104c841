//! Why a request is made: a crawl, a page that a person asked for, or an API used under a key.

/// Why a request is made. A request without one is a [`Purpose::Crawl`], the strictest.
///
/// It travels as an extension of the request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Purpose {
    /// A program chose the URL: robots.txt binds it without exception.
    #[default]
    Crawl,
}

/// The kind of a [`Purpose`], without what belongs to one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PurposeKind {
    /// See [`Purpose::Crawl`].
    #[default]
    Crawl,
    /// A person chose the URL.
    UserFetch,
    /// An API used under a key, within its documented limits.
    Api,
}

impl Purpose {
    /// The kind of this purpose.
    #[must_use]
    pub fn kind(&self) -> PurposeKind {
        match self {
            Self::Crawl => PurposeKind::Crawl,
        }
    }
}
