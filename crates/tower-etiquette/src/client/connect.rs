//! Connecting: name resolution with overrides, TCP, TLS, all within one time.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use etiquette_core::address;
use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use tower_service::Service;

use crate::BoxError;

/// What the connector is made from.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Host and port to the address that is connected to in their place.
    pub(super) resolve: HashMap<(String, u16), IpAddr>,
    pub(super) roots: Vec<CertificateDer<'static>>,
    pub(super) public_only: bool,
    pub(super) timeout: Duration,
}

/// A connection could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(super) enum ConnectError {
    TimedOut,
    /// The host has addresses, but none that may be asked.
    NotPublic(IpAddr),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("no connection in time"),
            Self::NotPublic(address) => write!(f, "{address} is no public address"),
        }
    }
}

impl std::error::Error for ConnectError {}

type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Connects within its time.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<Redirected>,
    timeout: Duration,
}

impl Connector {
    /// # Errors
    /// When a root certificate cannot be read.
    pub(super) fn new(settings: Settings) -> Result<Self, BoxError> {
        let mut roots = RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.into(),
        };
        for certificate in settings.roots {
            roots.add(certificate)?;
        }
        // The provider is named: with two of them in one build, rustls would panic at the first handshake.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let filter = Filter {
            public_only: settings.public_only,
        };
        let mut tcp = HttpConnector::new_with_resolver(Resolver {
            inner: GaiResolver::new(),
            filter,
        });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(60)));
        let redirected = Redirected {
            inner: tcp,
            resolve: Arc::new(settings.resolve),
            filter,
        };
        let inner = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions();
        Ok(Self {
            inner: inner.wrap_connector(redirected),
            timeout: settings.timeout,
        })
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
        let connecting = tokio::time::timeout(self.timeout, self.inner.call(uri));
        Box::pin(async move { connecting.await.map_err(|_| ConnectError::TimedOut)? })
    }
}

/// Connects to the address that was set for a host and port, if one was.
#[derive(Clone)]
pub(super) struct Redirected {
    inner: HttpConnector<Resolver>,
    resolve: Arc<HashMap<(String, u16), IpAddr>>,
    filter: Filter,
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
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let Some(address) = self.resolve.get(&(host, port)).copied() else {
            // A literal address is never resolved: the filter has to see it here.
            if let Some(address) = literal {
                self.filter.admit(address)?;
            }
            return Ok(uri);
        };
        self.filter.admit(address)?;
        let authority: Authority = SocketAddr::new(address, port).to_string().parse()?;
        let mut parts = uri.into_parts();
        parts.authority = Some(authority);
        Ok(Uri::from_parts(parts)?)
    }
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

/// Which addresses may be connected to.
#[derive(Clone, Copy)]
struct Filter {
    public_only: bool,
}

impl Filter {
    fn admit(self, address: IpAddr) -> Result<(), ConnectError> {
        if self.public_only && !address::is_public(address) {
            return Err(ConnectError::NotPublic(address));
        }
        Ok(())
    }
}

/// The system's resolver, without the addresses that may not be connected to.
#[derive(Clone)]
pub(super) struct Resolver {
    inner: GaiResolver,
    filter: Filter,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.inner.call(name);
        let filter = self.filter;
        Box::pin(async move {
            let mut refused = None;
            let mut admitted = Vec::new();
            for address in resolving.await? {
                match filter.admit(address.ip()) {
                    Ok(()) => admitted.push(address),
                    Err(error) => refused = Some(error),
                }
            }
            match refused {
                // A name with a private address among its public ones is not trusted with the public ones either.
                Some(error) => Err(error.into()),
                None => Ok(admitted.into_iter()),
            }
        })
    }
}
