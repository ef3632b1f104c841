//! The builder: addresses and settings to a store.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "test-util")]
use std::sync::atomic::AtomicI64;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use etiquette_core::store::StoreFailed;
use redis::{Client, cluster::ClusterClient};

use crate::connection::{Server, SharedConnection};
use crate::event::{Event, OnEvent};
use crate::settings::Settings;
use crate::store::{Inner, RedisStore};

/// Makes a [`RedisStore`]. All processes that share a namespace should agree on [`Builder::lease`] and
/// [`Builder::nodes`].
#[must_use]
pub struct Builder {
    urls: Vec<String>,
    cluster: bool,
    settings: Settings,
    on_event: Option<OnEvent>,
    #[cfg(feature = "tls")]
    roots: Option<Vec<u8>>,
}

impl RedisStore {
    /// A store at `url`: `redis://[user:password@]host[:port][/db]`, or `rediss://` with feature `tls`.
    pub fn builder(url: impl Into<String>) -> Builder {
        Builder::new(url.into())
    }
}

impl Builder {
    pub(crate) fn new(url: String) -> Self {
        Self {
            urls: vec![url],
            cluster: false,
            settings: Settings::default(),
            on_event: None,
            #[cfg(feature = "tls")]
            roots: None,
        }
    }

    /// The server is a Cluster, of which `more` are further addresses to begin with.
    pub fn cluster<U: Into<String>>(mut self, more: impl IntoIterator<Item = U>) -> Self {
        self.cluster = true;
        self.urls.extend(more.into_iter().map(Into::into));
        self
    }

    /// What all keys begin with. Default `etiquette`. Processes with the same namespace share everything.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.settings.namespace = namespace.into();
        self
    }

    /// How long a permit is kept for a process that tells nothing, and how long a server without memory grants nothing.
    /// Default 10 s, at least 100 ms.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.max(Duration::from_millis(100));
        self
    }

    /// The longest that a call may take. Default 500 ms.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// How long nothing starts when the server fails. Default 30 s; [`Duration::MAX`]: until it is back.
    pub fn hold(mut self, hold: Duration) -> Self {
        self.settings.hold = hold;
        self
    }

    /// How many processes share the budget when they cannot see each other. Default 2.
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.settings.nodes = nodes.max(1);
        self
    }

    /// How long a response is kept after it was stored. Default 7 days.
    pub fn keep_responses(mut self, keep: Duration) -> Self {
        self.settings.keep = keep;
        self
    }

    /// The largest body that is stored. Default 64 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.settings.max_body = bytes;
        self
    }

    /// How long a process may take to fetch a robots.txt before another one may. Default 60 s.
    pub fn robots_lease(mut self, lease: Duration) -> Self {
        self.settings.robots_lease = lease;
        self
    }

    /// Hears of each change in how the server can be used.
    pub fn on_event(mut self, hear: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(hear));
        self
    }

    /// The root certificates that a `rediss://` server may be signed by, in PEM, in place of the system's: for a server
    /// with an authority of its own.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.roots = Some(pem.into());
        self
    }

    /// The present of the script in microseconds, in place of the server's, for tests on paused time.
    #[cfg(feature = "test-util")]
    pub fn script_clock(mut self, micros: Arc<AtomicI64>) -> Self {
        self.settings.clock = micros;
        self
    }

    /// The store, connected at its first use.
    ///
    /// # Errors
    /// When the address cannot be read.
    pub fn build(self) -> Result<RedisStore, StoreFailed> {
        let wrong = |error| StoreFailed::new("read its address", error);
        // The provider is named: with two of them in one build there is no default, and asking for it panics.
        #[cfg(feature = "tls")]
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Whoever was faster is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        #[cfg(feature = "tls")]
        let roots = self.roots.map(|pem| redis::TlsCertificates {
            client_tls: None,
            root_cert: Some(pem),
        });
        let server = if self.cluster {
            let builder = ClusterClient::builder(self.urls)
                .retries(1)
                .connection_timeout(self.settings.timeout)
                .response_timeout(self.settings.timeout);
            #[cfg(feature = "tls")]
            let builder = match roots {
                Some(roots) => builder.certs(roots),
                None => builder,
            };
            Server::Cluster(Box::new(builder.build().map_err(wrong)?))
        } else {
            let url = self.urls.concat();
            #[cfg(feature = "tls")]
            let client = match roots {
                Some(roots) => Client::build_with_tls(url, roots),
                None => Client::open(url),
            };
            #[cfg(not(feature = "tls"))]
            let client = Client::open(url);
            Server::Single(Box::new(client.map_err(wrong)?))
        };
        let connection = SharedConnection::new(server, self.settings.timeout, self.on_event);
        Ok(RedisStore(Arc::new(Inner {
            settings: self.settings,
            connection,
            script: redis::Script::new(include_str!("host.lua")),
            late: AtomicU64::new(10_000),
            owner: owner(),
        })))
    }

    /// The store, once the server has responded.
    ///
    /// # Errors
    /// When the address cannot be read, or the server cannot be used.
    pub async fn connect(self) -> Result<RedisStore, StoreFailed> {
        let store = self.build()?;
        store.mark_all().await?;
        Ok(store)
    }
}

/// A number that no other process has.
fn owner() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses may hold credentials.
        f.debug_struct("Builder")
            .field("namespace", &self.settings.namespace)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}
