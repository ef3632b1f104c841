//! The permit for one page that a person asked for: good for its URL and the redirects from there, once.
//!
//! **Flow**: [`Permit::begin`] before each request of the caller or hop of a redirect, [`Attempt::answered`] with what
//! came. Retries below that place belong to the attempt and are not seen. An attempt that is dropped without an answer
//! (cancelled, refused further in, failed) spends nothing.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::uri::PathAndQuery;
use http::{Extensions, Method, StatusCode, Uri};

use super::session;
#[cfg(doc)]
use super::session::Session;
use crate::{InvalidOrigin, Origin};

/// How many redirects are followed under one permit.
const MAX_HOPS: u8 = 5;

/// A permit for one page, by [`Session::permit`]. Clones are the same permit.
#[derive(Clone)]
pub struct Permit(Arc<Inner>);

struct Inner {
    number: u64,
    target: Target,
    session: Weak<session::Inner>,
    state: Mutex<State>,
    kept: Mutex<Extensions>,
}

/// Where a permit stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nothing final has come: `next` may be asked for, after `hops` redirects.
    Open { next: Target, hops: u8 },
    /// A request is on its way.
    InFlight { next: Target, hops: u8 },
    /// A redirect leads to `next`, which is one hop too far.
    TooFar { next: Target },
    /// The final answer came.
    Spent,
}

/// The URL of a page without its fragment, in one spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    origin: Origin,
    page: PathAndQuery,
}

impl Target {
    pub(super) fn of(url: &Uri) -> Result<Self, InvalidOrigin> {
        let page = url.path_and_query().cloned();
        Ok(Self {
            origin: Origin::of(url)?,
            page: page.unwrap_or_else(|| PathAndQuery::from_static("/")),
        })
    }
}

/// The request was not sent, because no permit covers it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermitRefused {
    /// The origin that was asked for, if the request names one.
    pub origin: Option<Origin>,
    /// What the permit does not cover.
    pub why: PermitRefusal,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// What a permit does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PermitRefusal {
    /// Another URL than the permitted one.
    NotThePermittedUrl,
    /// The page has been fetched, or is being fetched: a permit is for one page, once.
    OnePageOnly,
    /// A method other than GET and HEAD.
    Method,
    /// A sixth redirect.
    TooManyRedirects,
}

impl PermitRefusal {
    /// The stable name of the cause.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotThePermittedUrl => "not_the_permitted_url",
            Self::OnePageOnly => "one_page_only",
            Self::Method => "method",
            Self::TooManyRedirects => "too_many_redirects",
        }
    }
}

impl PermitRefused {
    /// A refusal because of `why`.
    #[must_use]
    pub fn new(origin: Option<Origin>, why: PermitRefusal, contact: Option<Arc<str>>) -> Self {
        Self {
            origin,
            why,
            contact,
        }
    }
}

impl fmt::Display for PermitRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            PermitRefusal::NotThePermittedUrl => "the person asked for another URL",
            PermitRefusal::OnePageOnly => {
                "the person asked for one page, and it has been asked for already"
            }
            PermitRefusal::Method => "only GET and HEAD fetch a page for a person",
            PermitRefusal::TooManyRedirects => "the page redirects too often",
        })
    }
}

impl Error for PermitRefused {}

impl Permit {
    pub(super) fn new(target: Target, session: Weak<session::Inner>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(Arc::new(Inner {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            state: Mutex::new(State::Open {
                next: target.clone(),
                hops: 0,
            }),
            target,
            session,
            kept: Mutex::default(),
        }))
    }

    /// Whether the session that gave the permit lasts.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.0.session.strong_count() > 0
    }

    /// What a layer keeps for the permit's session, as [`Session::slot`]; nothing when the session is over.
    pub fn slot<T: std::any::Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        Some(self.0.session.upgrade()?.slot(make))
    }

    /// What a layer keeps for the visit: the `T` that `make` makes when there is none yet. It goes with the permit.
    ///
    /// `make` runs under a lock of the permit and must not use it.
    pub fn keep<T: std::any::Any + Clone + Send + Sync>(&self, make: impl FnOnce() -> T) -> T {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(make).clone()
    }

    /// Begins a request of the caller, or the hop that a redirect led to.
    ///
    /// # Errors
    /// What the permit does not cover. Nothing may be sent then.
    pub fn begin(&self, method: &Method, url: &Uri) -> Result<Attempt, PermitRefusal> {
        let mut state = self.0.state();
        let (next, hops) = match &*state {
            State::Spent | State::InFlight { .. } => return Err(PermitRefusal::OnePageOnly),
            State::TooFar { next } => {
                return Err(match Target::of(url) {
                    Ok(target) if target == *next => PermitRefusal::TooManyRedirects,
                    _ => PermitRefusal::NotThePermittedUrl,
                });
            }
            State::Open { next, hops } => (next, *hops),
        };
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(PermitRefusal::Method);
        }
        // The permitted URL itself may be asked for again where a hop came to nothing; its hops stay counted.
        let target = match Target::of(url) {
            Ok(target) if target == *next || target == self.0.target => target,
            _ => return Err(PermitRefusal::NotThePermittedUrl),
        };
        *state = State::InFlight { next: target, hops };
        drop(state);
        Ok(Attempt(self.clone()))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says nothing about the page.
impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.0.number).finish()
    }
}

/// A request under a permit, from its start to its answer. Dropping it without an answer spends nothing.
#[derive(Debug)]
#[must_use = "an answer spends the permit"]
pub struct Attempt(Permit);

impl Attempt {
    /// Takes note of the answer. `next` is where a redirect leads, if it leads anywhere.
    ///
    /// A 429 or 503 leaves the permit as it was: the page did not come. Any other answer spends it, unless it is a
    /// redirect, which moves it on.
    pub fn answered(self, status: StatusCode, next: Option<&Uri>) {
        let mut state = self.0.0.state();
        let State::InFlight { hops, .. } = *state else {
            return;
        };
        if matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            return;
        }
        let redirects = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
        *state = match next.filter(|_| redirects).map(Target::of) {
            Some(Ok(next)) if hops < MAX_HOPS => State::Open {
                next,
                hops: hops + 1,
            },
            Some(Ok(next)) => State::TooFar { next },
            _ => State::Spent,
        };
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let mut state = self.0.0.state();
        if let State::InFlight { next, hops } = &*state {
            *state = State::Open {
                next: next.clone(),
                hops: *hops,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Session;
    use super::*;

    const PAGE: &str = "http://site.example/p";

    fn permit() -> (Session, Permit) {
        let session = Session::new();
        let permit = session.permit(&PAGE.parse().unwrap()).unwrap();
        (session, permit)
    }

    fn get(permit: &Permit, url: &str) -> Result<Attempt, PermitRefusal> {
        permit.begin(&Method::GET, &url.parse().unwrap())
    }

    #[test]
    fn only_an_answer_spends() {
        let (_session, permit) = permit();
        drop(get(&permit, PAGE).unwrap());
        for status in [429, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            get(&permit, PAGE).unwrap().answered(status, None);
        }
        get(&permit, PAGE)
            .unwrap()
            .answered(StatusCode::NOT_FOUND, None);
        assert_eq!(get(&permit, PAGE).unwrap_err(), PermitRefusal::OnePageOnly);
    }

    #[test]
    fn one_request_at_a_time() {
        let (_session, permit) = permit();
        let first = get(&permit, PAGE).unwrap();
        assert_eq!(
            get(&permit.clone(), PAGE).unwrap_err(),
            PermitRefusal::OnePageOnly
        );
        drop(first);
        assert!(get(&permit, PAGE).is_ok());
    }

    #[test]
    fn a_loop_of_redirects_ends_however_it_is_asked_for() {
        let (_session, permit) = permit();
        let elsewhere = "http://site.example/p2".parse().unwrap();
        for _ in 0..6 {
            // The caller starts over each time instead of following.
            get(&permit, PAGE)
                .unwrap()
                .answered(StatusCode::FOUND, Some(&elsewhere));
        }
        assert_eq!(
            get(&permit, "http://site.example/p2").unwrap_err(),
            PermitRefusal::TooManyRedirects
        );
        assert_eq!(
            get(&permit, PAGE).unwrap_err(),
            PermitRefusal::NotThePermittedUrl
        );
    }

    #[test]
    fn a_redirect_that_leads_nowhere_is_final() {
        let (_session, permit) = permit();
        get(&permit, PAGE)
            .unwrap()
            .answered(StatusCode::FOUND, None);
        assert_eq!(get(&permit, PAGE).unwrap_err(), PermitRefusal::OnePageOnly);
    }
}
