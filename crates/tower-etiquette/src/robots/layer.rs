use std::fmt;
use std::sync::Arc;

use etiquette_core::decide::robots_txt::RobotsPolicy;
use etiquette_core::store::RobotsStore;
use etiquette_core::vocabulary::identity::Identity;
use etiquette_core::{Clock, Origin, RobotsScope};
use tower_layer::Layer;

use super::service::Robots;
use super::table::Table;
use crate::TokioClock;
use crate::hosts::Hosts;

/// Reads robots.txt before any page and obeys it. See the [module](super) for what it promises and its defaults.
///
/// Clones share what they know: cloning never forgets a rule.
#[derive(Clone)]
pub struct RobotsLayer {
    shared: Arc<Shared>,
}

/// What all clones of a layer and its services share.
pub(super) struct Shared {
    pub(super) table: Table,
    pub(super) settings: Settings,
}

#[derive(Clone)]
pub(super) struct Settings {
    pub(super) policy: RobotsPolicy,
    pub(super) identity: Option<Identity>,
    pub(super) hosts: Option<Hosts>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Option<Origin>,
    pub(super) scope: RobotsScope,
    pub(super) max_origins: usize,
    pub(super) store: Option<Arc<dyn RobotsStore>>,
}

impl RobotsLayer {
    /// A layer that takes the client's name from the [`UserAgentLayer`](crate::UserAgentLayer) above it.
    #[must_use]
    pub fn new() -> Self {
        Self::with_settings(Settings {
            policy: RobotsPolicy::default(),
            identity: None,
            hosts: None,
            clock: Arc::new(TokioClock),
            origin: None,
            scope: RobotsScope::default(),
            max_origins: 10_000,
            store: None,
        })
    }

    /// A layer that stands without a `UserAgentLayer`: rules are looked up for the tokens of `identity`, and a request
    /// whose own User-Agent does not carry them is refused.
    #[must_use]
    pub fn with_identity(identity: Identity) -> Self {
        Self::new().change(|settings| settings.identity = Some(identity))
    }

    /// How robots.txt is read and kept. A layer forgets what it knew when its settings change.
    #[must_use]
    pub fn policy(self, policy: RobotsPolicy) -> Self {
        self.change(|settings| settings.policy = policy)
    }

    /// The host state that a [`HostBudgetLayer`](crate::HostBudgetLayer) or
    /// [`RetryAfterLayer`](crate::RetryAfterLayer) below holds. With it a file is read again after each pause and run
    /// of blocks, and is not read for a page that a pause would refuse anyway.
    #[must_use]
    pub fn hosts(self, hosts: Hosts) -> Self {
        self.change(|settings| {
            settings.clock = Arc::clone(hosts.clock());
            settings.hosts = Some(hosts);
        })
    }

    /// The clock; tokio's by default, or that of [`RobotsLayer::hosts`].
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.change(|settings| settings.clock = clock)
    }

    /// The origin of requests whose URI is relative. Without it they are refused.
    #[must_use]
    pub fn origin(self, origin: Origin) -> Self {
        self.change(|settings| settings.origin = Some(origin))
    }

    /// Which groups bind user fetches; by default only one that names their token. Crawls always obey `*`.
    #[must_use]
    pub fn scope(self, scope: RobotsScope) -> Self {
        self.change(|settings| settings.scope = scope)
    }

    /// Where what is known outlives the process, or is shared with others. A store that fails is as good as none.
    #[must_use]
    pub fn store(self, store: Arc<dyn RobotsStore>) -> Self {
        self.change(|settings| settings.store = Some(store))
    }

    /// How many origins are remembered; default 10,000. Beyond it the least recently used are forgotten, and read
    /// again when they are asked for: forgetting never allows anything.
    #[must_use]
    pub fn max_origins(self, origins: usize) -> Self {
        self.change(|settings| settings.max_origins = origins.max(1))
    }

    fn with_settings(settings: Settings) -> Self {
        let table = Table::new(settings.max_origins);
        Self {
            shared: Arc::new(Shared { table, settings }),
        }
    }

    fn change(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = self.shared.settings.clone();
        change(&mut settings);
        Self::with_settings(settings)
    }
}

impl Default for RobotsLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for RobotsLayer {
    type Service = Robots<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Robots::new(inner, Arc::clone(&self.shared))
    }
}

impl fmt::Debug for RobotsLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsLayer")
            .field("policy", &self.shared.settings.policy)
            .finish_non_exhaustive()
    }
}
