//! What travels with a request and a response: one context, one set of facts.
//!
//! The layers never import each other. They meet here and in the hosts' state.

use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::decide::host::Pace;
use etiquette_core::decide::preferences::{Preferences, Use, Wish};
use etiquette_core::vocabulary::purpose::Api;
use etiquette_core::{Identity, Now, Purpose, PurposeKind, Refusal};
use http::{Extensions, Request, Response};

use crate::robots::RobotsFacts;

/// What the layers tell each other about a request on its way in. One extension, so that it costs one allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    /// Who is asking: the one source of the token that robots.txt is asked for.
    pub(crate) identity: Option<Identity>,
    /// What robots.txt says at the moment at which the request starts.
    pub(crate) rules: Option<Arc<dyn Rules>>,
    /// The request reads robots.txt: it goes before pages and is nobody's page.
    pub(crate) reads_robots_txt: bool,
    /// The journey over redirects that this request is a step of.
    pub(crate) visit: Option<Visit>,
    /// The hosts whose budget holds a permit for this request already.
    pub(crate) held_by: HostsSet,
    /// The hosts that have counted its start already, without a permit.
    pub(crate) counted_by: HostsSet,
    /// The largest delay of the budgets that hold a permit for it.
    pub(crate) delay: Duration,
    /// A retry layer further out wants to know whether a budget on the same hosts is below it.
    pub(crate) handshake: Option<Arc<Handshake>>,
}

impl Context {
    /// The context of a request, made if there is none.
    pub(crate) fn of(extensions: &mut Extensions) -> &mut Self {
        extensions.get_or_insert_default()
    }

    /// Where the client can be reached, as its identity publishes it.
    pub(crate) fn contact(&self) -> Option<Arc<str>> {
        Some(Arc::clone(self.identity.as_ref()?.help()))
    }
}

/// The address whose budget a request is in: whoever sends it sends it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtAddress(pub(crate) IpAddr);

/// A few `Hosts`, by their numbers. More than four are not told apart; nobody stacks that many budgets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostsSet([u32; 4]);

impl HostsSet {
    pub(crate) fn contains(&self, id: u32) -> bool {
        self.0.contains(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0[0] == 0
    }

    pub(crate) fn insert(&mut self, id: u32) {
        if !self.contains(id) {
            let free = self.0.iter().position(|slot| *slot == 0);
            self.0[free.unwrap_or(self.0.len() - 1)] = id;
        }
    }
}

/// How a retry layer learns that a budget further in holds the same hosts: then only the budget queues.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) hosts: u32,
    pub(crate) budget_below: AtomicBool,
}

/// The purpose that holds for a request; absent is a crawl, and so is an API request without its key.
pub(crate) fn purpose<B>(request: &Request<B>) -> PurposeKind {
    Purpose::kind_of(request.extensions(), request.uri(), request.headers())
}

/// The API that a request names.
pub(crate) fn api<B>(request: &Request<B>) -> Option<Api> {
    match request.extensions().get() {
        Some(Purpose::Api(api)) => Some(api.clone()),
        _ => None,
    }
}

/// robots.txt's word on one request, asked at the moment at which it would start.
///
/// The robots layer puts it into the context; whoever lets a request wait asks it again before the start, so that a
/// request meets the rules as they are known then and not as they were when it was queued.
pub(crate) trait Rules: fmt::Debug + Send + Sync {
    /// What is known at `now`. Quick, does not wait.
    fn at_start(&self, now: Now) -> AtStart;

    /// The request has started, right after [`Rules::at_start`] said that it may.
    fn started(&self) {}

    /// Reads robots.txt anew, or joins who is reading it. Ends when [`Rules::at_start`] has a new answer.
    ///
    /// # Cancel safety
    /// Dropping it leaves the reading to others who wait for it, and ends it when nobody does.
    fn renew(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The answer of [`Rules::at_start`].
#[derive(Debug)]
pub(crate) enum AtStart {
    /// No rule forbids it.
    Go {
        /// The Crawl-delay that the site asks this client for, uncut.
        crawl_delay: Option<Duration>,
    },
    /// A rule forbids it, or the site is unreachable. Boxed: this is the rare answer.
    Refuse(Box<Refusal>),
    /// The copy's life is over: [`Rules::renew`] first, without holding a permit of the host.
    Renew,
}

/// A journey over redirects, shared by its steps.
///
/// Whoever follows redirects outside the stack attaches one visit to the first request and to each hop: a redirect's
/// Retry-After then holds its hop (RFC 9110, 10.2.3), and the hops of a page that a person asked for take one delay of each
/// host together.
#[derive(Clone, Debug, Default)]
pub struct Visit(Arc<Mutex<Journey>>);

/// What a journey remembers between its steps.
#[derive(Debug, Default)]
pub(crate) struct Journey {
    /// A redirect came with Retry-After: its target is not asked before this, wherever it leads (RFC 9110, 10.2.3).
    pub(crate) not_before: Option<Instant>,
    /// A person makes it: it takes one delay of each host, as long as nobody else starts there in between.
    pub(crate) one_delay: bool,
    /// For each host that it touched the number of its last start there.
    starts: Vec<(u64, u64)>,
}

/// More hosts than a journey touches: robots.txt, page and hops, each perhaps on a host of its own.
const JOURNEY_HOSTS: usize = 16;

impl Journey {
    /// The number of the journey's last start at a host, where that gives it the right to start again.
    pub(crate) fn last_start(&self, host: u64) -> Option<u64> {
        if !self.one_delay {
            return None;
        }
        let found = self.starts.iter().find(|(key, _)| *key == host);
        found.map(|(_, number)| *number)
    }

    /// The journey has started a request at a host.
    pub(crate) fn started(&mut self, host: u64, number: u64) {
        self.starts.retain(|(key, _)| *key != host);
        if self.starts.len() == JOURNEY_HOSTS {
            self.starts.remove(0);
        }
        self.starts.push((host, number));
    }
}

impl Visit {
    /// A journey that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes `request` a step of this journey.
    pub fn attach<B>(&self, request: &mut Request<B>) {
        Context::of(request.extensions_mut()).visit = Some(self.clone());
    }

    /// Reads or changes the journey.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Journey) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the layers did and learnt on the way to a response. One extension of the response.
///
/// A fact of a layer that is not in the stack is absent.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Facts {
    pub(crate) waited: Duration,
    pub(crate) attempts: u32,
    pub(crate) retry_at: Option<SystemTime>,
    pub(crate) user_fetch: bool,
    pub(crate) preferences: Option<Arc<Preferences>>,
    pub(crate) cache_status: Option<CacheStatus>,
    pub(crate) pace: Option<Pace>,
    /// The hosts that have recorded the response: a layer further out with the same hosts does not again.
    pub(crate) recorded_by: HostsSet,
    pub(crate) robots: Option<RobotsFacts>,
}

impl Facts {
    /// The facts of a response, if any layer of this crate was in its way.
    #[must_use]
    pub fn of<B>(response: &Response<B>) -> Option<&Self> {
        response.extensions().get()
    }

    /// How long the request waited for its host's budget and pauses, over all attempts.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// How often the request was sent: 0 for an answer from the cache, more than 1 after retries.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The wall time before which the site asked not to be asked again, on a 429 or 503 that is handed on.
    #[must_use]
    pub fn retry_at(&self) -> Option<SystemTime> {
        self.retry_at
    }

    /// Whether the page may be kept beyond the session of the person who asked for it. Never for a page that a person
    /// asked for; otherwise it is for the caller and the response's Cache-Control to say.
    #[must_use]
    pub fn may_retain(&self) -> bool {
        !self.user_fetch
    }

    /// Whether the answer may be used to train models, where somebody says so: never for a page that a person asked
    /// for, otherwise what the site wishes. `None` where nobody said anything.
    #[must_use]
    pub fn may_train(&self) -> Option<bool> {
        let preferences = self.preferences.as_deref();
        match preferences.map(|preferences| preferences.about(Use::TrainAi)) {
            _ if self.user_fetch => Some(false),
            Some(Wish::Disallow) => Some(false),
            Some(Wish::Allow) => Some(true),
            _ => None,
        }
    }

    /// What the site wishes to be done with the answer. Absent without a
    /// [`PreferencesLayer`](crate::PreferencesLayer) in the stack.
    #[must_use]
    pub fn preferences(&self) -> Option<&Preferences> {
        self.preferences.as_deref()
    }

    /// What the cache did with the request.
    #[must_use]
    pub fn cache_status(&self) -> Option<CacheStatus> {
        self.cache_status
    }

    /// The pace at which the host is asked since this response, and why. Absent without a budget in the stack.
    #[must_use]
    pub fn pace(&self) -> Option<&Pace> {
        self.pace.as_ref()
    }

    /// What robots.txt said about the request. Absent for answers from `/robots.txt` itself and for an API under a key.
    #[must_use]
    pub fn robots(&self) -> Option<&RobotsFacts> {
        self.robots.as_ref()
    }

    /// Adds to the facts of a response.
    pub(crate) fn edit(extensions: &mut Extensions, change: impl FnOnce(&mut Self)) {
        change(extensions.get_or_insert_default());
    }
}
