//! The client towards the upstream.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use etiquette_core::decide::address::{AddressRefused, is_public};
use http::uri::{Authority, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower::Service;
use tower_etiquette::{BoxError, Origin, Refusal};

use super::body::PassedBody;

/// The client towards the upstream: no retries, no redirects followed.
#[must_use]
pub fn client() -> Client<HttpConnector, PassedBody> {
    pool().build(connector())
}

/// Servers end a connection that was idle for five seconds or longer (Node and Apache for five). A request that meets
/// its end is lost, since nothing is sent twice: a connection is given up before.
const LONGEST_IDLE: Duration = Duration::from_secs(3);

fn pool() -> Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(LONGEST_IDLE)
        .retry_canceled_requests(false);
    builder
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(Duration::from_secs(5)));
    connector
}

/// The same for `upstream`, which is asked at addresses that are not public only where it is there, or `any` is set.
pub(super) fn client_of(upstream: &Uri, any: bool) -> Client<Public, PassedBody> {
    pool().build(Public {
        inner: connector(),
        upstream: upstream.authority().cloned(),
        any,
    })
}

/// Connects to the upstream wherever it is, and elsewhere to public addresses only.
#[derive(Clone)]
pub(super) struct Public {
    inner: HttpConnector,
    upstream: Option<Authority>,
    any: bool,
}

impl Service<Uri> for Public {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut inner = self.inner.clone();
        let checks = !self.any && uri.authority() != self.upstream.as_ref();
        Box::pin(async move {
            let target = if checks { public(&uri).await? } else { uri };
            std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
            Ok(inner.call(target).await?)
        })
    }
}

/// `uri` with the address that its host leads to, so that what was checked is what is connected to.
async fn public(uri: &Uri) -> Result<Uri, BoxError> {
    let origin = Origin::of(uri)?;
    let host = origin.host().trim_matches(['[', ']']);
    let found: Vec<_> = tokio::net::lookup_host((host, origin.port()))
        .await?
        .collect();
    if let Some(private) = found.iter().find(|found| !is_public(found.ip())) {
        let leaf = AddressRefused::new(Some(origin), private.ip(), None);
        return Err(Refusal::from(leaf).into());
    }
    let address = found.first().ok_or("the host has no address")?;
    let target = Uri::builder().scheme("http").path_and_query("/");
    Ok(target.authority(address.to_string()).build()?)
}
