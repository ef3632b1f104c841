//! A client's side of a test: who asks, a request, an answer that is read to its end.

use std::fmt::Debug;

use bytes::Bytes;
use etiquette_core::vocabulary::identity::Builder;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use tower::{Service, ServiceExt};
use tower_etiquette::{BoxError, Facts, Identity, Refusal};

/// The product token of [`identity`].
pub const TOKEN: &str = "ExampleBot";

/// The name that tests ask under.
///
/// # Panics
/// Never: it is valid.
#[must_use]
pub fn identity() -> Identity {
    identity_builder().build().expect("a valid identity")
}

/// As [`identity`], for more than a token, a version and a link.
pub fn identity_builder() -> Builder {
    Identity::builder(TOKEN, "0.1", "https://www.example.com/bot.html")
}

/// A GET of `url`.
///
/// # Panics
/// When that is no URI.
#[must_use]
pub fn get(url: &str) -> Request<Empty<Bytes>> {
    Request::get(url)
        .body(Empty::new())
        .expect("a test names a URI")
}

/// An answer that was read to its end.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Page {
    /// The status.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// What the layers tell; their default where no layer told anything.
    pub facts: Facts,
}

/// Sends `request` through `client` and reads the answer to its end.
///
/// # Errors
/// Those of the client and of the body.
pub async fn fetch<S, R, B>(client: S, request: Request<R>) -> Result<Page, BoxError>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: Body,
    B::Error: Into<BoxError>,
{
    read(client.oneshot(request).await.map_err(Into::into)?).await
}

/// Reads an answer to its end.
///
/// # Errors
/// Those of the body.
pub async fn read<B>(response: Response<B>) -> Result<Page, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let facts = Facts::of(&response).cloned().unwrap_or_default();
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(Into::into)?.to_bytes();
    Ok(Page {
        status: head.status.as_u16(),
        headers: head.headers,
        body,
        facts,
    })
}

/// The refusal that `result` has to be.
///
/// # Panics
/// When it is none.
#[track_caller]
pub fn refusal<T: Debug>(result: Result<T, BoxError>) -> Refusal {
    let error = result.expect_err("the request was not refused");
    Refusal::find(&*error)
        .unwrap_or_else(|| panic!("no refusal: {error:?}"))
        .clone()
}
