//! Connecting: name resolution with overrides, TCP, TLS, all within one time.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tower_service::Service;

use super::error::ConnectError;
use super::names::{HeldNames, Lookup, Resolve};
use crate::BoxError;

/// What the connector is made from.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectConfig {
    /// Host and port to the address that is connected to in their place.
    pub(super) resolve: HashMap<(String, u16), IpAddr>,
    pub(super) roots: Vec<CertificateDer<'static>>,
    pub(super) public_only: bool,
    pub(super) timeout: Duration,
    /// What looks names up, if it is not the system.
    pub(super) resolver: Option<Resolve>,
    /// Whether names are held to one address.
    pub(super) by_address: bool,
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Connects within its time.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<Redirected>,
    timeout: Duration,
    names: Option<HeldNames>,
}

impl Connector {
    /// # Errors
    /// When a root certificate cannot be read.
    pub(super) fn new(config: ConnectConfig) -> Result<Self, BoxError> {
        let mut roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.into(),
        };
        for certificate in config.roots {
            roots.add(certificate)?;
        }
        // The provider is named: with two of them in one build, rustls would panic at the first handshake.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let lookup = Lookup::new(config.resolver, config.public_only);
        let resolve = Arc::new(config.resolve);
        let names = config
            .by_address
            .then(|| HeldNames::new(lookup.clone(), Arc::clone(&resolve), config.timeout));
        let mut tcp = HttpConnector::new_with_resolver(Resolver {
            lookup: lookup.clone(),
            names: names.clone(),
        });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let redirected = Redirected {
            inner: tcp,
            resolve,
            lookup,
        };
        let inner = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions();
        Ok(Self {
            inner: inner.wrap_connector(redirected),
            timeout: config.timeout,
            names,
        })
    }

    /// Which addresses names are held to, where budgets go by address.
    pub(super) fn names(&self) -> Option<&HeldNames> {
        self.names.as_ref()
    }
}

impl Service<Uri> for Connector {
    type Response = <HttpsConnector<Redirected> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let name = uri.host().map(name_of);
        let names = self.names.clone();
        let connecting = tokio::time::timeout(self.timeout, self.inner.call(uri));
        Box::pin(async move {
            let connected = connecting
                .await
                .map_err(|_| ConnectError::TimedOut.into())
                .flatten();
            if let (Err(_), Some(names), Some(name)) = (&connected, names, name) {
                names.failed(&name);
            }
            connected
        })
    }
}

/// Connects to the address that was set for a host and port, if one was.
#[derive(Clone)]
pub(super) struct Redirected {
    inner: HttpConnector<Resolver>,
    resolve: Arc<HashMap<(String, u16), IpAddr>>,
    lookup: Lookup,
}

impl Redirected {
    fn target(&self, uri: Uri) -> Result<Uri, BoxError> {
        let Some(host) = uri.host() else {
            return Ok(uri);
        };
        let default = if uri.scheme() == Some(&Scheme::HTTPS) {
            443
        } else {
            80
        };
        let port = uri.port_u16().unwrap_or(default);
        let host = name_of(host);
        let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let Some(address) = self.resolve.get(&(host, port)).copied() else {
            // A literal address is never resolved: the filter has to see it here.
            if let Some(address) = literal {
                self.lookup.admit(address)?;
            }
            return Ok(uri);
        };
        self.lookup.admit(address)?;
        let authority: Authority = SocketAddr::new(address, port).to_string().parse()?;
        let mut parts = uri.into_parts();
        parts.authority = Some(authority);
        Ok(Uri::from_parts(parts)?)
    }
}

/// A host as it is known by: an absolute name is the same host.
fn name_of(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

impl Service<Uri> for Redirected {
    type Response = <HttpConnector<Resolver> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self.target(uri) {
            Ok(target) => {
                let connecting = self.inner.call(target);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// The addresses of a name that may be connected to: the one that it is held to where budgets go by address.
#[derive(Clone)]
pub(super) struct Resolver {
    lookup: Lookup,
    names: Option<HeldNames>,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let Self { lookup, names } = self.clone();
        Box::pin(async move {
            let found = match names {
                Some(names) => vec![names.of_name(name.as_str()).await?],
                None => lookup.look_up(name.as_str().to_owned()).await?,
            };
            // The connector puts the port in.
            let found = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(found.collect::<Vec<_>>().into_iter())
        })
    }
}
