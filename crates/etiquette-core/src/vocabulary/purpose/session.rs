//! One person's session: where grants come from, and the only place where anything of their pages is kept.

use std::any::Any;
use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;

use super::grant::UserGrant;
use super::slots::Slots;
use super::target::Target;
use crate::InvalidOrigin;

/// How many distinct URLs a session grants.
const MAX_URLS: usize = 30;

/// One person's session with a client that fetches pages for them.
///
/// Clones are the same session. What layers keep for the session ([`Session::slot`]) goes with its last clone: a
/// grant does not keep it.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    max_urls: usize,
    granted: Mutex<HashSet<Target>>,
    slots: Arc<Slots>,
}

/// Why a session gives no grant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotGranted {
    /// The URL has no origin.
    NoOrigin(InvalidOrigin),
    /// The session has granted as many distinct URLs as one person plausibly chooses: something mints grants in a
    /// loop, and what a loop chooses is a crawl.
    TooManyGrants {
        /// How many distinct URLs a session grants.
        limit: usize,
    },
}

impl NotGranted {
    /// A short stable name of the error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoOrigin(_) => "no_origin",
            Self::TooManyGrants { .. } => "too_many_grants",
        }
    }
}

impl fmt::Display for NotGranted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOrigin(_) => f.write_str("the URL has no origin"),
            Self::TooManyGrants { limit } => write!(
                f,
                "the session has granted {limit} distinct URLs, more is a crawl"
            ),
        }
    }
}

impl Error for NotGranted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NoOrigin(cause) => Some(cause),
            Self::TooManyGrants { .. } => None,
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

impl Session {
    /// A session that grants 30 distinct URLs.
    #[must_use]
    pub fn new() -> Self {
        Self::with_max_urls(MAX_URLS)
    }

    /// A session that grants `max_urls` distinct URLs. A trip-wire against loops that mint grants, not a quota:
    /// asking again for a URL costs nothing.
    #[must_use]
    pub fn with_max_urls(max_urls: usize) -> Self {
        Self(Arc::new(Inner {
            max_urls,
            granted: Mutex::default(),
            slots: Arc::default(),
        }))
    }

    /// The act of the person: a grant for the page at `url`, which they chose.
    ///
    /// Call it where a person typed, pasted or clicked the URL, and nowhere else. A URL chosen by a model or a program
    /// is a crawl.
    ///
    /// # Errors
    /// [`NotGranted`] when `url` has no origin, or the session has granted too many distinct URLs.
    pub fn grant(&self, url: &Uri) -> Result<UserGrant, NotGranted> {
        let target = Target::of(url).map_err(NotGranted::NoOrigin)?;
        let mut granted = self
            .0
            .granted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !granted.contains(&target) {
            if granted.len() >= self.0.max_urls {
                return Err(NotGranted::TooManyGrants {
                    limit: self.0.max_urls,
                });
            }
            granted.insert(target.clone());
        }
        Ok(UserGrant::new(target, Arc::downgrade(&self.0.slots)))
    }

    /// What a layer keeps for this session: the `T` that `make` makes when there is none yet.
    ///
    /// `make` runs under the session's lock and must not use the session.
    pub fn slot<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.0.slots.slot(make)
    }
}

/// Says nothing about the pages.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("max_urls", &self.0.max_urls)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(session: &Session, url: &str) -> Result<UserGrant, NotGranted> {
        session.grant(&url.parse().unwrap())
    }

    #[test]
    fn spellings_of_one_url_count_once() {
        let session = Session::with_max_urls(1);
        for url in [
            "http://site.example",
            "http://SITE.example:80/",
            "http://site.example/#top",
        ] {
            assert!(grant(&session, url).is_ok(), "{url}");
        }
        let error = grant(&session, "http://site.example/?").unwrap_err();
        assert_eq!(error.kind(), "too_many_grants");
        assert_eq!(grant(&session, "/x").unwrap_err().kind(), "no_origin");
    }

    #[test]
    fn what_is_kept_goes_with_the_session_and_not_with_its_grants() {
        let session = Session::new();
        let grant = grant(&session, "http://site.example/").unwrap();
        let kept = session.slot(|| 7_u8);
        assert_eq!(grant.slot(|| 8_u8).as_deref(), Some(&7));
        let weak = Arc::downgrade(&kept);
        drop((session, kept));
        assert!(weak.upgrade().is_none());
        assert!(grant.slot(|| 9_u8).is_none());
    }
}
