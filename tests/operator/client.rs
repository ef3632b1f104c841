//! The clients that the sites are visited with.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use etiquette_tests::client::fetch;
pub(crate) use etiquette_tests::client::{Page, TOKEN, get as request, identity, refusal};
use http::Request;
use http_body_util::Empty;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tower_etiquette::{BoxError, BoxedService, Etiquette, HostPolicy, Hosts, Refusal};
use tower_etiquette_reqwest::ReqwestService;
use tower_http::follow_redirect::FollowRedirect;

/// Which HTTP client is under the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HttpClient {
    Hyper,
    Reqwest,
}

/// A whole stack around one of them.
#[derive(Clone)]
pub(crate) struct Client(BoxedService<Empty<Bytes>>);

impl HttpClient {
    /// The layers of `etiquette` around this client, with a pool of its own.
    pub(crate) fn client(self, etiquette: &Etiquette) -> Client {
        Client(match self {
            Self::Hyper => {
                let client = legacy::Client::builder(TokioExecutor::new()).build_http();
                etiquette.boxed(client)
            }
            Self::Reqwest => {
                let builder = reqwest_builder(&[]);
                etiquette.boxed(ReqwestService::from_builder(builder).unwrap())
            }
        })
    }
}

/// A reqwest client that trusts `roots`, in DER, and speaks HTTP/1.1 and HTTP/2.
///
/// Its TLS provider is named: without that, features of other packages decide which one it is, and whether there is one.
pub(crate) fn reqwest_builder(roots: &[&[u8]]) -> ::reqwest::ClientBuilder {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(CertificateDer::from(root.to_vec())).unwrap();
    }
    let mut tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(store)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    ::reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
}

impl Client {
    pub(crate) fn new(service: BoxedService<Empty<Bytes>>) -> Self {
        Self(service)
    }

    /// GETs `url` and reads the body.
    pub(crate) async fn get(&self, url: &str) -> Result<Page, BoxError> {
        self.send(request(url)).await
    }

    /// Sends `request` and reads the body.
    pub(crate) async fn send(&self, request: Request<Empty<Bytes>>) -> Result<Page, BoxError> {
        fetch(self.0.clone(), request).await
    }

    /// GETs `url`, follows redirects outside the stack, and reads the body.
    pub(crate) async fn follow(&self, url: &str) -> Result<Page, BoxError> {
        fetch(FollowRedirect::new(self.0.clone()), request(url)).await
    }

    /// GETs `url`, which must be refused.
    pub(crate) async fn refused(&self, url: &str) -> Refusal {
        refusal(self.get(url).await)
    }
}

/// The whole stack with host state of its own and `min_delay` instead of the default of a second.
pub(crate) fn etiquette(min_delay: Duration) -> Etiquette {
    Etiquette::new(identity()).hosts(Hosts::new(policy(min_delay)))
}

/// The delay does not follow the latency here, which is that of a test machine with other things to do.
pub(crate) fn policy(min_delay: Duration) -> HostPolicy {
    HostPolicy::new().min_delay(min_delay).latency_factor(0)
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Waits until `seen` is true of a site, at most 20 s: for what must happen, however slow the machine is.
pub(crate) async fn eventually(what: &str, mut seen: impl FnMut() -> bool) {
    let patience = async {
        while !seen() {
            tokio::time::sleep(millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), patience)
        .await
        .unwrap_or_else(|_| panic!("never seen: {what}"));
}
