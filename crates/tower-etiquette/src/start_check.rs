//! What robots.txt says at the moment at which a request starts.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use etiquette_core::{Now, Refusal};

/// The check of one request against robots.txt, made at the moment at which the request would start.
///
/// The robots layer puts it into the context; whoever lets a request wait makes it once more before the start, so that a
/// request meets the rules as they are known then and not as they were when it was queued.
pub(crate) trait StartCheck: fmt::Debug + Send + Sync {
    /// Decides by what is known at `now`. Quick, does not wait.
    fn check(&self, now: Now) -> StartDecision;

    /// The request has started, right after [`StartCheck::check`] said that it may.
    fn started(&self) {}

    /// Fetches robots.txt again, or joins a fetch that is under way. Ends when [`StartCheck::check`] has a new decision.
    ///
    /// # Cancel safety
    /// Dropping it leaves the fetch to others who wait for it, and ends it when nobody does.
    fn refresh(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// The decision of [`StartCheck::check`].
#[derive(Debug)]
pub(crate) enum StartDecision {
    /// No rule forbids it.
    Start {
        /// The Crawl-delay that the site asks this client for, uncut.
        crawl_delay: Option<Duration>,
    },
    /// A rule forbids it, or the site is unreachable. Boxed: this is rare.
    Refuse(Box<Refusal>),
    /// The copy's life is over: [`StartCheck::refresh`] first, without holding a permit of the host.
    Refresh,
}
