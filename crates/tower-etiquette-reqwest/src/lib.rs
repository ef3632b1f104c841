//! A [`reqwest::Client`] as a tower service that tower-etiquette can wrap.
//!
//! reqwest follows redirects, retries and decompresses by itself, below every layer: hops would skip the rules and the
//! budget of their host, a second try would skip the pause, and a cache would judge other headers than were sent.
//! [`ReqwestService`] switches all of that off. Follow redirects and decompress outside the stack, with tower-http.
//!
//! ```no_run
//! use tower_etiquette::{Etiquette, Identity};
//! use tower_etiquette_reqwest::ReqwestService;
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html").build()?;
//! let inner = ReqwestService::from_builder(reqwest::Client::builder())?;
//! let client = Etiquette::new(identity).boxed::<_, http_body_util::Empty<bytes::Bytes>, _>(inner);
//! # let _ = client;
//! # Ok(())
//! # }
//! ```
//!
//! TLS, HTTP/2, proxies and name resolution are reqwest's own settings, on the builder that is handed over. Behind a
//! proxy, the connections that a site sees are the proxy's.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

type BoxError = Box<dyn Error + Send + Sync>;

/// A reqwest client that sends each request once, as it is. Cloning is cheap and shares its connections.
///
/// # Cancel safety
/// Dropping its future drops the request, and with it the connection if the request has started.
#[derive(Clone, Debug)]
pub struct ReqwestService {
    client: reqwest::Client,
}

impl ReqwestService {
    /// A service from the settings of `builder`, with redirects, retries, `Referer` and decompression off. A default
    /// User-Agent set there is replaced by the name that the request carries.
    ///
    /// # Errors
    /// When reqwest cannot build the client, for instance without a TLS backend that can start.
    pub fn from_builder(builder: reqwest::ClientBuilder) -> Result<Self, reqwest::Error> {
        let client = builder
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .build()?;
        Ok(Self { client })
    }
}

impl<B> Service<Request<B>> for ReqwestService
where
    B: Body + Send + Sync + 'static,
    B::Data: Into<Bytes>,
    B::Error: Into<BoxError>,
{
    type Response = Response<reqwest::Body>;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let request = convert(request).map(|request| self.client.execute(request));
        ResponseFuture(Box::pin(async move { Ok(request?.await?.into()) }))
    }
}

fn convert<B>(request: Request<B>) -> Result<reqwest::Request, BoxError>
where
    B: Body + Send + Sync + 'static,
    B::Data: Into<Bytes>,
    B::Error: Into<BoxError>,
{
    let asked = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str())
        .to_owned();
    let empty = request.body().is_end_stream();
    let request = request.map(|body| {
        if empty {
            reqwest::Body::default()
        } else {
            reqwest::Body::wrap(body)
        }
    });
    let request = reqwest::Request::try_from(request)?;
    let url = request.url();
    let same = match url.query() {
        Some(query) => {
            asked
                .strip_prefix(url.path())
                .and_then(|rest| rest.strip_prefix('?'))
                == Some(query)
        }
        None => asked == url.path(),
    };
    // reqwest's URLs drop dot segments and re-encode; the rules were asked about the path as it stood.
    if same {
        Ok(request)
    } else {
        Err(TargetChanged {
            asked,
            sent: url.as_str().to_owned(),
        }
        .into())
    }
}

/// reqwest would send another request target than the one that the layers admitted. Nothing was sent.
///
/// It happens with dot segments and with characters that URLs carry percent-encoded: normalise the URI first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetChanged {
    /// The path and query that were admitted.
    pub asked: String,
    /// The URL that reqwest would have sent.
    pub sent: String,
}

impl fmt::Display for TargetChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reqwest would send the target {} instead of {}",
            self.sent, self.asked
        )
    }
}

impl Error for TargetChanged {}

/// The future of a [`ReqwestService`].
pub struct ResponseFuture(
    Pin<Box<dyn Future<Output = Result<Response<reqwest::Body>, BoxError>> + Send>>,
);

impl Future for ResponseFuture {
    type Output = Result<Response<reqwest::Body>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Empty;

    use super::*;

    fn converted(uri: &str) -> Result<String, BoxError> {
        let request = Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
        convert(request).map(|request| request.url().to_string())
    }

    #[test]
    fn what_was_admitted_is_what_is_sent() {
        for uri in [
            "http://a.example/",
            "http://a.example/x?y=%20",
            "https://a.example:8443/a%2Fb?",
            "http://A.example/",
        ] {
            assert!(converted(uri).is_ok(), "{uri}");
        }
        for uri in [
            "http://a.example/open/../private",
            "http://a.example/open/%2e%2e/private",
            "http://a.example/{x}",
        ] {
            let error = converted(uri).unwrap_err();
            assert!(error.downcast_ref::<TargetChanged>().is_some(), "{uri}");
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
