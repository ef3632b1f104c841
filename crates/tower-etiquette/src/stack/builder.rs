use std::sync::Arc;

use etiquette_core::store::journal::HostJournal;
use etiquette_core::store::{ResponseStore, RobotsStore};
use http::{Request, Response};
use http_body::Body as HttpBody;
use tower_layer::Layer;
use tower_service::Service;

use super::EtiquetteService;
use crate::conditional_cache::MemoryStore;
#[cfg(feature = "client")]
use crate::hosts::AddressBudget;
use crate::macros::opaque_debug;
use crate::retry_after::{EmptyBodies, ReplayBody};
use crate::{
    Accept, AcceptLayer, BoxError, BoxedService, ConditionalCacheLayer, HostBudgetLayer, Hosts,
    Identity, PreferencesLayer, RetryAfterLayer, RobotsLayer, UserAgentLayer,
};

/// Builds the whole stack in the right order.
///
/// ```
/// # use std::convert::Infallible;
/// # use http::{Request, Response};
/// # use http_body_util::Empty;
/// # use bytes::Bytes;
/// # use tower::{ServiceExt, service_fn};
/// # use tower_etiquette::{Etiquette, Identity};
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), tower_etiquette::BoxError> {
/// let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
/// let site = service_fn(|request: Request<Empty<Bytes>>| async move {
///     assert!(request.headers()["user-agent"].to_str().unwrap().contains("ExampleBot/0.1"));
///     Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
/// });
/// let client = Etiquette::new(identity).service(site);
/// let request = Request::get("http://site.example/").body(Empty::new())?;
/// let response = client.oneshot(request).await?;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Etiquette<St = MemoryStore, C = EmptyBodies> {
    common: Common,
    cache: ConditionalCacheLayer<St>,
    retry_after: RetryAfterLayer<C>,
}

/// What does not depend on the store of responses and on how bodies are copied.
#[derive(Clone)]
struct Common {
    user_agent: UserAgentLayer,
    accept: AcceptLayer,
    preferences: PreferencesLayer,
    robots: RobotsLayer,
    budget: HostBudgetLayer,
    hosts: Hosts,
    journal: Option<Arc<dyn HostJournal>>,
}

impl Etiquette {
    /// All layers with their defaults, in the name of `identity`, with the host state that the whole process shares.
    pub fn new(identity: Identity) -> Self {
        let hosts = Hosts::process_wide();
        Self {
            common: Common {
                user_agent: UserAgentLayer::new(identity),
                accept: AcceptLayer::new(Accept::any()),
                preferences: PreferencesLayer::new(),
                robots: RobotsLayer::new().hosts(hosts.clone()),
                budget: HostBudgetLayer::new(hosts.clone()),
                hosts: hosts.clone(),
                journal: None,
            },
            cache: ConditionalCacheLayer::new(),
            retry_after: RetryAfterLayer::new(hosts),
        }
    }
}

impl<St: ResponseStore, C> Etiquette<St, C> {
    /// Host state of its own: policy, budgets, pauses. By default every stack of the process shares one, because two
    /// stacks built apart must not double the rate that a site sees.
    pub fn hosts(mut self, hosts: Hosts) -> Self {
        self.cache = self.cache.clock(Arc::clone(hosts.clock()));
        self.common.robots = self.common.robots.hosts(hosts.clone());
        self.retry_after = self.retry_after.hosts(hosts.clone());
        self.common.budget = HostBudgetLayer::new(hosts.clone());
        self.common.hosts = hosts;
        self
    }

    /// Keeps a second budget for the address of each host, once the hosts are chosen.
    #[cfg(feature = "client")]
    pub(crate) fn address_budget(mut self, make: impl FnOnce(&Hosts) -> AddressBudget) -> Self {
        let address_budget = make(self.common.budget.get_hosts());
        self.common.budget = self.common.budget.address_budget(address_budget);
        self
    }

    /// What responses may be; everything by default.
    pub fn accept(mut self, accept: AcceptLayer) -> Self {
        self.common.accept = accept;
        self
    }

    /// Declares what responses are used for, and whether a site's wish against it refuses them. By default wishes are
    /// facts on the response.
    pub fn preferences(mut self, preferences: PreferencesLayer) -> Self {
        self.common.preferences = preferences;
        self
    }

    /// Changes how the client is named.
    pub fn user_agent(mut self, change: impl FnOnce(UserAgentLayer) -> UserAgentLayer) -> Self {
        self.common.user_agent = change(self.common.user_agent);
        self
    }

    /// Changes how robots.txt is read.
    pub fn robots(mut self, change: impl FnOnce(RobotsLayer) -> RobotsLayer) -> Self {
        self.common.robots = change(self.common.robots);
        self
    }

    /// Changes how responses are kept, and where.
    pub fn cache<Other>(
        self,
        change: impl FnOnce(ConditionalCacheLayer<St>) -> ConditionalCacheLayer<Other>,
    ) -> Etiquette<Other, C> {
        Etiquette {
            common: self.common,
            cache: change(self.cache),
            retry_after: self.retry_after,
        }
    }

    /// Keeps everything that outlives the process in one store, such as the folder of feature `disk`: responses,
    /// robots.txt files, and the pauses and backoff levels of hosts, which are read before the first request.
    ///
    /// Hosts that keep a journal already go on with that one; see [`Hosts::keep_in`].
    pub fn keep_in<Other>(self, store: Other) -> Etiquette<Other, C>
    where
        Other: ResponseStore + RobotsStore + HostJournal + Clone,
    {
        let rules = Arc::new(store.clone());
        let journal = Arc::new(store.clone());
        let mut stack = self
            .robots(|robots| robots.store(rules))
            .cache(|cache| cache.store(store));
        stack.common.journal = Some(journal);
        stack
    }

    /// Changes what is retried, and how often.
    pub fn retry_after<Other>(
        self,
        change: impl FnOnce(RetryAfterLayer<C>) -> RetryAfterLayer<Other>,
    ) -> Etiquette<St, Other> {
        Etiquette {
            common: self.common,
            cache: self.cache,
            retry_after: change(self.retry_after),
        }
    }
}

impl<St: ResponseStore, C: Clone> Etiquette<St, C> {
    /// The layers around `inner`.
    #[must_use]
    pub fn service<S>(&self, inner: S) -> EtiquetteService<S, St, C> {
        if let Some(journal) = &self.common.journal {
            self.common.hosts.keep_in(Arc::clone(journal));
        }
        let inner = self.retry_after.layer(self.common.budget.layer(inner));
        let inner = self.common.robots.layer(self.cache.layer(inner));
        let inner = self.common.preferences.layer(inner);
        self.common
            .user_agent
            .layer(self.common.accept.layer(inner))
    }

    /// The layers around `inner`, without their type: `Clone`, `Send` and `Sync`, for axum's `State` and for struct
    /// fields.
    #[must_use]
    pub fn boxed<S, ReqBody, ResBody>(&self, inner: S) -> BoxedService<ReqBody>
    where
        S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        ReqBody: HttpBody + Default + Send + 'static,
        ResBody: HttpBody + Send + 'static,
        ResBody::Data: Send,
        ResBody::Error: Into<BoxError>,
        C: ReplayBody<ReqBody> + Send + Sync + 'static,
    {
        BoxedService::new(self.service(inner))
    }
}

impl<St, C: Clone> Clone for Etiquette<St, C> {
    fn clone(&self) -> Self {
        Self {
            common: self.common.clone(),
            cache: self.cache.clone(),
            retry_after: self.retry_after.clone(),
        }
    }
}

opaque_debug!(Etiquette<St, C>);
