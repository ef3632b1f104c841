use std::fmt;
use std::sync::Arc;

use etiquette_core::decide::robots_txt::RobotsPolicy;
use etiquette_core::store::RobotsStore;
use etiquette_core::vocabulary::identity::Identity;
use etiquette_core::{Clock, Origin, RobotsScope};

use super::table::Table;
use crate::{Hosts, TokioClock};

/// Fetches robots.txt before any page and obeys it. See the [module](super) for what it promises and its defaults.
///
/// Clones share what they know: cloning never forgets a rule.
#[derive(Clone, Debug)]
#[must_use]
pub struct RobotsLayer {
    pub(super) config: RobotsConfig,
}

#[derive(Clone)]
pub(super) struct RobotsConfig {
    pub(super) policy: RobotsPolicy,
    pub(super) identity: Option<Identity>,
    pub(super) hosts: Option<Hosts>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) origin: Option<Origin>,
    pub(super) scope: RobotsScope,
    pub(super) store: Option<Arc<dyn RobotsStore>>,
    max_origins: usize,
    /// What is known under these settings, shared by all clones.
    pub(super) table: Arc<Table>,
}

/// More origins than a crawler has open at a time, in a few megabytes; forgetting one costs its site a request.
const MAX_ORIGINS: usize = 10_000;

impl RobotsLayer {
    /// A layer that takes the client's name from the [`UserAgentLayer`](crate::UserAgentLayer) above it.
    pub fn new() -> Self {
        Self {
            config: RobotsConfig {
                policy: RobotsPolicy::default(),
                identity: None,
                hosts: None,
                clock: Arc::new(TokioClock),
                origin: None,
                scope: RobotsScope::default(),
                store: None,
                max_origins: MAX_ORIGINS,
                table: Arc::new(Table::new(MAX_ORIGINS)),
            },
        }
    }

    /// A layer that stands without a `UserAgentLayer`: rules are looked up for the tokens of `identity`, and a request
    /// whose own User-Agent does not carry them is refused.
    pub fn with_identity(identity: Identity) -> Self {
        Self::new().change(|config| config.identity = Some(identity))
    }

    /// How robots.txt is fetched and kept. A layer forgets what it knew when its settings change.
    pub fn policy(self, policy: RobotsPolicy) -> Self {
        self.change(|config| config.policy = policy)
    }

    /// The host state that a [`HostBudgetLayer`](crate::HostBudgetLayer) or
    /// [`RetryAfterLayer`](crate::RetryAfterLayer) below holds. With it a file is fetched again after each pause and
    /// run of blocks, and is not fetched for a page that a pause would refuse anyway.
    pub fn hosts(self, hosts: Hosts) -> Self {
        self.change(|config| {
            config.clock = Arc::clone(hosts.clock());
            config.hosts = Some(hosts);
        })
    }

    /// The clock; tokio's by default, or that of [`RobotsLayer::hosts`].
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.change(|config| config.clock = clock)
    }

    /// The origin of requests whose URI is relative. Without it they are refused.
    pub fn origin(self, origin: Origin) -> Self {
        self.change(|config| config.origin = Some(origin))
    }

    /// Which groups bind user fetches; by default only one that names their token. Crawls always obey `*`.
    pub fn scope(self, scope: RobotsScope) -> Self {
        self.change(|config| config.scope = scope)
    }

    /// Where robots.txt files outlive the process, or are shared with others. A store that fails is as good as none.
    pub fn store(self, store: Arc<dyn RobotsStore>) -> Self {
        self.change(|config| config.store = Some(store))
    }

    /// How many origins are remembered; default 10,000. Beyond it the least recently used are forgotten, and
    /// fetched again when they are asked for: forgetting never allows anything.
    pub fn max_origins(self, origins: usize) -> Self {
        self.change(|config| config.max_origins = origins.max(1))
    }

    fn change(mut self, change: impl FnOnce(&mut RobotsConfig)) -> Self {
        change(&mut self.config);
        self.config.table = Arc::new(Table::new(self.config.max_origins));
        self
    }
}

impl Default for RobotsLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RobotsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsConfig")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}
