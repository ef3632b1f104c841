use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::store::journal::HostJournal;
use etiquette_core::store::{ResponseStore, RobotsStore};
use etiquette_core::vocabulary::identity::Identity;
use http::{Request, Response};
use http_body::Body;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use tower_http::decompression::Decompression;
use tower_http::follow_redirect::FollowRedirect;
#[cfg(feature = "signatures")]
use tower_layer::Layer;
use tower_service::Service;

use super::attempt::{Attempt, Timeouts};
use super::body::RequestBody;
use super::connect::{ConnectConfig, Connector};
use super::error::Error;
use super::names::{LookedUp, Resolve};
use super::redirect::Redirects;
use super::service::Client;
#[cfg(feature = "signatures")]
use crate::SignLayer;
use crate::conditional_cache::MemoryStore;
use crate::hosts::AddressBudget;
use crate::retry_after::CloneWith;
use crate::{BoxError, BoxedService, Etiquette, HostPolicy, Hosts};

/// The layers of a [`Client`]: its bodies are in memory, so that each request can be sent again.
pub type Stack<St = MemoryStore> =
    Etiquette<St, CloneWith<fn(&RequestBody) -> Option<RequestBody>>>;

fn copy(body: &RequestBody) -> Option<RequestBody> {
    Some(body.clone())
}

/// Builds a [`Client`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientBuilder<St = MemoryStore> {
    stack: Stack<St>,
    config: ClientConfig,
}

/// What does not depend on the store of responses.
#[derive(Clone, Debug)]
struct ClientConfig {
    connect: ConnectConfig,
    timeouts: Timeouts,
    max_body: u64,
    max_redirects: usize,
    #[cfg(feature = "signatures")]
    sign: Option<SignLayer>,
    per_address: Option<HostPolicy>,
}

impl Client {
    /// A client in the name of `identity`, with the defaults of the [module](super).
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self::builder(identity)
            .build()
            .expect("the built-in root certificates can be read")
    }

    /// A client whose limits and layers can be changed.
    pub fn builder(identity: Identity) -> ClientBuilder {
        ClientBuilder {
            stack: Etiquette::new(identity)
                .retry_after(|layer| layer.clone_body(copy as fn(&_) -> _)),
            config: ClientConfig {
                connect: ConnectConfig {
                    timeout: Duration::from_secs(10),
                    ..ConnectConfig::default()
                },
                timeouts: Timeouts {
                    head: Duration::from_secs(30),
                    idle: Duration::from_secs(30),
                    total: Duration::from_secs(300),
                },
                max_body: 64 << 20,
                max_redirects: 10,
                #[cfg(feature = "signatures")]
                sign: None,
                per_address: None,
            },
        }
    }
}

impl<St: ResponseStore> ClientBuilder<St> {
    /// Host state of its own; see [`Etiquette::hosts`].
    pub fn hosts(self, hosts: Hosts) -> Self {
        self.stack(|stack| stack.hosts(hosts))
    }

    /// Changes the layers.
    pub fn stack(mut self, change: impl FnOnce(Stack<St>) -> Stack<St>) -> Self {
        self.stack = change(self.stack);
        self
    }

    /// Keeps responses in `store` instead of the memory of this process.
    pub fn store<Other: ResponseStore>(self, store: Other) -> ClientBuilder<Other> {
        self.with(|stack| stack.cache(|cache| cache.store(store)))
    }

    /// Keeps responses, robots.txt files and the pauses of hosts in `store`; see [`Etiquette::keep_in`].
    pub fn keep_in<Other>(self, store: Other) -> ClientBuilder<Other>
    where
        Other: ResponseStore + RobotsStore + HostJournal + Clone,
    {
        self.with(|stack| stack.keep_in(store))
    }

    /// As [`ClientBuilder::stack`], for a change that brings another store.
    fn with<Other>(self, change: impl FnOnce(Stack<St>) -> Stack<Other>) -> ClientBuilder<Other> {
        ClientBuilder {
            stack: change(self.stack),
            config: self.config,
        }
    }

    /// Gives hosts whose names lead to one address a second budget, which they share: permits, and a delay that follows the
    /// machine's latency, under `policy`. A thousand virtual hosts on one machine are then not asked a thousand times at
    /// once. Off by default.
    ///
    /// Each host keeps its own budget, and its pauses, backoff level, Crawl-delay and robots.txt are its own; of `policy` only
    /// permits, delays and waits count. [`HostPolicy::new`] means one request at a time for all hosts of an address: right
    /// for a small machine, slow for the front end of a thousand sites, which bears more at once.
    ///
    /// A name is held to one of its addresses, looked up anew after five minutes, and to the next one after a connection
    /// that failed, which costs its request an error. A machine with several addresses counts as several. When a name
    /// moves, one request may still go to where it was, over a connection that was open. None of it holds behind another
    /// HTTP proxy, whose address is the only one to be seen, nor for [`Hosts::try_start`].
    pub fn per_address(mut self, policy: HostPolicy) -> Self {
        self.config.per_address = Some(policy);
        self
    }

    /// Looks names up with `resolve` instead of the system's resolver: a name in lower case to its addresses, the best
    /// first. It has as much time as connecting.
    pub fn resolver<F, Fut>(mut self, resolve: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<IpAddr>, BoxError>> + Send + 'static,
    {
        let resolve = move |name| Box::pin(resolve(name)) as LookedUp;
        self.config.connect.resolver = Some(Resolve(Arc::new(resolve)));
        self
    }

    /// How long connecting may take, TLS included; default 10 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect.timeout = timeout;
        self
    }

    /// How long a response head may take from the start of an attempt, connecting included; default 30 s.
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.head = timeout;
        self
    }

    /// How long a site may be silent within a body; default 30 s. A caller who does not read is no silence.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.idle = timeout;
        self
    }

    /// How long an attempt may take from its start to the end of the body; default 5 min.
    pub fn total_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.total = timeout;
        self
    }

    /// The most bytes of a body after decompression; default 64 MiB.
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.config.max_body = bytes;
        self
    }

    /// How many redirects are followed; default 10. One more is an error. With 0 every redirect is handed on as it is.
    pub fn max_redirects(mut self, redirects: usize) -> Self {
        self.config.max_redirects = redirects;
        self
    }

    /// Connects to `address` instead of what the name of `host` resolves to, for this port.
    pub fn resolve(mut self, host: &str, port: u16, address: IpAddr) -> Self {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.config.connect.resolve.insert((host, port), address);
        self
    }

    /// Trusts a root certificate, in DER, beside the built-in ones.
    pub fn root_certificate(mut self, der: Vec<u8>) -> Self {
        self.config.connect.roots.push(CertificateDer::from(der));
        self
    }

    /// Signs each attempt with `layer`, innermost: retries, redirect hops and requests for robots.txt are signed anew.
    /// Off by default.
    #[cfg(feature = "signatures")]
    #[cfg_attr(docsrs, doc(cfg(feature = "signatures")))]
    pub fn sign(mut self, layer: SignLayer) -> Self {
        self.config.sign = Some(layer);
        self
    }

    /// Refuses to connect to addresses that are not public: private, loopback, link-local, metadata and the like. Off
    /// by default; switch it on where somebody else chooses the URLs. Every hop is checked after name resolution, and
    /// what is refused is [`Refusal::Address`](crate::Refusal::Address). It cannot hold behind another HTTP proxy.
    pub fn public_addresses_only(mut self, only: bool) -> Self {
        self.config.connect.public_only = only;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// When a root certificate cannot be read.
    pub fn build(mut self) -> Result<Client, Error> {
        self.config.connect.by_address = self.config.per_address.is_some();
        let connector = Connector::new(self.config.connect.clone()).map_err(Error::new)?;
        if let (Some(policy), Some(names)) = (self.config.per_address.take(), connector.names()) {
            let names = Arc::new(names.clone());
            self.stack = self.stack.address_budget(|hosts| {
                let shared = Hosts::builder()
                    .policy(policy)
                    .clock(Arc::clone(hosts.clock()))
                    .event_scope("address");
                AddressBudget::new(shared.build(), names)
            });
        }
        let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(90))
            .build::<_, RequestBody>(connector);
        Ok(self.over(http))
    }

    /// How connections are made.
    #[cfg(test)]
    pub(super) fn settings(&self) -> &ConnectConfig {
        &self.config.connect
    }

    /// The client with `http` under its layers.
    pub(super) fn over<S, ResBody>(self, http: S) -> Client
    where
        S: Service<Request<RequestBody>, Response = Response<ResBody>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        ResBody: Body<Data = Bytes> + Send + 'static,
        ResBody::Error: Into<BoxError>,
    {
        let http = Attempt::new(http, self.config.timeouts, self.config.connect.public_only);
        #[cfg(feature = "signatures")]
        let http = self
            .config
            .sign
            .unwrap_or_else(SignLayer::unsigned)
            .layer(http);
        let stack = self.stack.service(http);
        let service = if self.config.max_redirects == 0 {
            BoxedService::new(Decompression::new(stack))
        } else {
            let redirects =
                FollowRedirect::with_policy(stack, Redirects::new(self.config.max_redirects));
            BoxedService::new(Decompression::new(redirects))
        };
        Client::with_service(service, self.config.max_body)
    }
}
