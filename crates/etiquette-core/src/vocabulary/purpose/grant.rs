//! The grant for one page that a person asked for: good for its URL and the redirects from there, once.
//!
//! **Flow**: [`UserGrant::begin`] before each request of the caller or hop of a redirect, [`Attempt::answered`] with what
//! came. Retries below that place belong to the attempt and are not seen. An attempt that is dropped without an answer
//! (cancelled, refused further in, failed) spends nothing.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use http::{Extensions, Method, StatusCode, Uri};

use super::slots::Slots;
use super::target::Target;
use crate::Origin;

/// How many redirects are followed under one grant.
const MAX_HOPS: u8 = 5;

/// A grant for one page, by [`Session::grant`](super::Session::grant). Clones are the same grant.
#[derive(Clone)]
pub struct UserGrant(Arc<Inner>);

struct Inner {
    number: u64,
    target: Target,
    session: Weak<Slots>,
    state: Mutex<State>,
    kept: Mutex<Extensions>,
}

/// Where a grant stands.
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

/// The request was not sent, because no grant covers it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrantRefused {
    /// The origin that was asked for, if the request names one.
    pub origin: Option<Origin>,
    /// What the grant does not cover.
    pub why: GrantRefusal,
    /// Where the client's operator can be reached, if it has an identity.
    pub contact: Option<Arc<str>>,
}

/// What a grant does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GrantRefusal {
    /// Another URL than the granted one.
    NotTheGrantedUrl,
    /// The page has been fetched, or is being fetched: a grant is for one page, once.
    OnePageOnly,
    /// A method other than GET and HEAD.
    Method,
    /// A sixth redirect.
    TooManyRedirects,
}

impl GrantRefusal {
    /// The stable name of the cause.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::NotTheGrantedUrl => "not_the_granted_url",
            Self::OnePageOnly => "one_page_only",
            Self::Method => "method",
            Self::TooManyRedirects => "too_many_redirects",
        }
    }
}

impl GrantRefused {
    /// A refusal because of `why`.
    #[must_use]
    pub fn new(origin: Option<Origin>, why: GrantRefusal, contact: Option<Arc<str>>) -> Self {
        Self {
            origin,
            why,
            contact,
        }
    }
}

impl fmt::Display for GrantRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            GrantRefusal::NotTheGrantedUrl => "the grant is for another URL",
            GrantRefusal::OnePageOnly => {
                "the grant is for one page, which has been fetched or is being fetched"
            }
            GrantRefusal::Method => "only GET and HEAD fetch a page for a person",
            GrantRefusal::TooManyRedirects => return write!(f, "more than {MAX_HOPS} redirects"),
        })
    }
}

impl Error for GrantRefused {}

impl UserGrant {
    pub(super) fn new(target: Target, session: Weak<Slots>) -> Self {
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

    /// Whether the session that gave the grant lasts.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.0.session.strong_count() > 0
    }

    /// What a layer keeps for the grant's session, as [`Session::slot`](super::Session::slot); nothing when the session is over.
    pub fn slot<T: std::any::Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        Some(self.0.session.upgrade()?.slot(make))
    }

    /// What a layer keeps for the visit: the `T` that `make` makes when there is none yet. It goes with the grant.
    ///
    /// `make` runs under a lock of the grant and must not use it.
    pub fn keep<T: std::any::Any + Clone + Send + Sync>(&self, make: impl FnOnce() -> T) -> T {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(make).clone()
    }

    /// Begins a request of the caller, or the hop that a redirect led to.
    ///
    /// # Errors
    /// What the grant does not cover. Nothing may be sent then.
    pub fn begin(&self, method: &Method, url: &Uri) -> Result<Attempt, GrantRefusal> {
        let mut state = self.0.state();
        let (next, hops) = match &*state {
            State::Spent | State::InFlight { .. } => return Err(GrantRefusal::OnePageOnly),
            State::TooFar { next } => {
                return Err(match Target::of(url) {
                    Ok(target) if target == *next => GrantRefusal::TooManyRedirects,
                    _ => GrantRefusal::NotTheGrantedUrl,
                });
            }
            State::Open { next, hops } => (next, *hops),
        };
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(GrantRefusal::Method);
        }
        // The granted URL itself may be asked for again where a hop came to nothing; its hops stay counted.
        let target = match Target::of(url) {
            Ok(target) if target == *next || target == self.0.target => target,
            _ => return Err(GrantRefusal::NotTheGrantedUrl),
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
impl fmt::Debug for UserGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UserGrant").field(&self.0.number).finish()
    }
}

/// A request under a grant, from its start to its answer. Dropping it without an answer spends nothing.
#[derive(Debug)]
#[must_use = "an answer spends the grant"]
pub struct Attempt(UserGrant);

impl Attempt {
    /// Takes note of the answer. `next` is where a redirect leads, if it leads anywhere.
    ///
    /// A 429 or 503 leaves the grant as it was: the page did not come. Any other answer spends it, unless it is a
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

    fn grant() -> (Session, UserGrant) {
        let session = Session::new();
        let grant = session.grant(&PAGE.parse().unwrap()).unwrap();
        (session, grant)
    }

    fn get(grant: &UserGrant, url: &str) -> Result<Attempt, GrantRefusal> {
        grant.begin(&Method::GET, &url.parse().unwrap())
    }

    #[test]
    fn only_an_answer_spends() {
        let (_session, grant) = grant();
        drop(get(&grant, PAGE).unwrap());
        for status in [429, 503] {
            let status = StatusCode::from_u16(status).unwrap();
            get(&grant, PAGE).unwrap().answered(status, None);
        }
        get(&grant, PAGE)
            .unwrap()
            .answered(StatusCode::NOT_FOUND, None);
        assert_eq!(get(&grant, PAGE).unwrap_err(), GrantRefusal::OnePageOnly);
    }

    #[test]
    fn one_request_at_a_time() {
        let (_session, grant) = grant();
        let first = get(&grant, PAGE).unwrap();
        assert_eq!(
            get(&grant.clone(), PAGE).unwrap_err(),
            GrantRefusal::OnePageOnly
        );
        drop(first);
        assert!(get(&grant, PAGE).is_ok());
    }

    #[test]
    fn a_loop_of_redirects_ends_however_it_is_asked_for() {
        let (_session, grant) = grant();
        let elsewhere = "http://site.example/p2".parse().unwrap();
        for _ in 0..6 {
            // The caller starts over each time instead of following.
            get(&grant, PAGE)
                .unwrap()
                .answered(StatusCode::FOUND, Some(&elsewhere));
        }
        assert_eq!(
            get(&grant, "http://site.example/p2").unwrap_err(),
            GrantRefusal::TooManyRedirects
        );
        assert_eq!(
            get(&grant, PAGE).unwrap_err(),
            GrantRefusal::NotTheGrantedUrl
        );
    }

    #[test]
    fn a_redirect_that_leads_nowhere_is_final() {
        let (_session, grant) = grant();
        get(&grant, PAGE).unwrap().answered(StatusCode::FOUND, None);
        assert_eq!(get(&grant, PAGE).unwrap_err(), GrantRefusal::OnePageOnly);
    }
}
