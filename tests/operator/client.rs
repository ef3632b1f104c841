//! The clients that the sites are visited with.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tower::ServiceExt;
use tower_etiquette::identity::Identity;
use tower_etiquette::{Body, BoxError, BoxedService, Etiquette, Facts, HostPolicy, Hosts, Refusal};
use tower_etiquette_reqwest::ReqwestService;
use tower_http::follow_redirect::FollowRedirect;

/// Which client is under the stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Hyper,
    Reqwest,
}

/// A whole stack around one of them.
#[derive(Clone)]
pub(crate) struct Client(BoxedService<Empty<Bytes>>);

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    pub(crate) facts: Facts,
}

impl Wire {
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
        read(self.0.clone().oneshot(request(url)).await?).await
    }

    /// Sends `request` and reads the body.
    pub(crate) async fn send(&self, request: Request<Empty<Bytes>>) -> Result<Page, BoxError> {
        read(self.0.clone().oneshot(request).await?).await
    }

    /// GETs `url`, follows redirects outside the stack, and reads the body.
    pub(crate) async fn follow(&self, url: &str) -> Result<Page, BoxError> {
        let client = FollowRedirect::new(self.0.clone());
        read(client.oneshot(request(url)).await?).await
    }

    /// GETs `url`, which must be refused.
    pub(crate) async fn refused(&self, url: &str) -> Refusal {
        refusal(self.get(url).await)
    }
}

/// The refusal that `result` must be.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, BoxError>) -> Refusal {
    let error = result.expect_err("the request was not refused");
    Refusal::find(&*error)
        .unwrap_or_else(|| panic!("no refusal: {error:?}"))
        .clone()
}

pub(crate) fn request(url: &str) -> Request<Empty<Bytes>> {
    Request::get(url).body(Empty::new()).unwrap()
}

async fn read(response: Response<Body>) -> Result<Page, BoxError> {
    let status = response.status().as_u16();
    let facts = Facts::of(&response).cloned().unwrap_or_default();
    let body = response.into_body().collect().await?.to_bytes();
    Ok(Page {
        status,
        body,
        facts,
    })
}

pub(crate) const TOKEN: &str = "ExampleBot";

pub(crate) fn identity() -> Identity {
    let link = "https://www.example.com/bot.html";
    Identity::builder(TOKEN, "0.1", link).build().unwrap()
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
