use std::sync::Arc;
use std::time::{Duration, SystemTime};

use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_core::decide::host::Pace;
use etiquette_core::decide::preferences::{Preferences, Use, Wish};
use http::{Extensions, Response};

use super::RobotsFacts;
use crate::context::HostsSet;

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

    /// How often the request was sent: 0 for a response from the cache, more than 1 after retries.
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

    /// Whether the response may be used to train models, where somebody says so: never for a page that a person asked
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

    /// What the site wishes to be done with the response. Absent without a
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

    /// What robots.txt said about the request. Absent for responses from `/robots.txt` itself and for an API under a key.
    #[must_use]
    pub fn robots(&self) -> Option<&RobotsFacts> {
        self.robots.as_ref()
    }

    /// Adds to the facts of a response.
    pub(crate) fn edit(extensions: &mut Extensions, change: impl FnOnce(&mut Self)) {
        change(extensions.get_or_insert_default());
    }
}
