//! Refusals as responses, for gateways and axum.
//!
//! Below this layer nothing answers with a made-up response: a layer further out would take it for the site's. Outermost,
//! it turns an error that holds a [`Refusal`] into a problem response (RFC 9457); other errors pass.
//!
//! | refusal | status |
//! |---|---|
//! | robots.txt or a grant forbids it, the name is wrong, it cannot be signed, an unwanted use | 403 |
//! | the host's address is not public | 403 |
//! | the host's budget or pause | 429 |
//! | robots.txt is unreachable | 503 |
//! | the answer's type was not asked for | 406 |
//! | nothing is stored, and the site was not to be asked | 504 |
//! | the request names no site | 400 |
//!
//! Each carries `Retry-After` where the time to come back is known, `Proxy-Status` (RFC 9209), which tells it from an
//! answer of the site, and the [`Refusal`] itself as an extension.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Empty};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_etiquette::refuse::RefusalLayer;
//! use tower_etiquette::{BoxError, ConditionalCacheLayer};
//!
//! let site = service_fn(|_: Request<Empty<bytes::Bytes>>| async {
//!     Ok::<_, BoxError>(Response::new(Empty::<bytes::Bytes>::new()))
//! });
//! let gateway = ServiceBuilder::new()
//!     .layer(RefusalLayer::new())
//!     .layer(ConditionalCacheLayer::new())
//!     .service(site);
//! let request = Request::get("http://site.example/").header("cache-control", "only-if-cached");
//! let response = gateway.oneshot(request.body(Empty::new()).unwrap()).await.unwrap();
//! assert_eq!(response.status(), 504);
//! assert_eq!(response.headers()["content-type"], "application/problem+json");
//! # }
//! ```
//!
//! **Order.** Outermost, whatever else is in the stack.

use std::fmt::{self, Write as _};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use etiquette_core::{Clock, Refusal};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::json::Json;
use crate::macros::inner_accessors;
use crate::passed::Passed;
use crate::{BoxError, TokioClock};

/// Turns refusals into problem responses; see the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct RefusalLayer(());

impl RefusalLayer {
    /// The layer. It has no settings.
    #[must_use]
    pub fn new() -> Self {
        Self(())
    }
}

impl<S> Layer<S> for RefusalLayer {
    type Service = Refuse<S>;

    fn layer(&self, inner: S) -> Refuse<S> {
        Refuse { inner }
    }
}

/// The service of [`RefusalLayer`].
#[derive(Clone, Debug)]
pub struct Refuse<S> {
    inner: S,
}

inner_accessors!(Refuse);

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for Refuse<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<ProblemBody<ResBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        ResponseFuture {
            inner: self.inner.call(request),
        }
    }
}

pin_project! {
    /// The future of [`Refuse`].
    ///
    /// # Cancel safety
    /// Dropping it drops the inner future.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
{
    type Output = Result<Response<ProblemBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().inner.poll(cx)) {
            Ok(response) => Ok(response.map(ProblemBody::passing)),
            Err(error) => {
                let error = error.into();
                match Refusal::find(&*error) {
                    Some(refusal) => Ok(problem(refusal, TokioClock.now().wall)),
                    None => Err(error),
                }
            }
        })
    }
}

pin_project! {
    /// The body of a response, or the description of a refusal.
    pub struct ProblemBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProj]
    enum Kind<B> {
        Passing { #[pin] body: Passed<B> },
        Problem { text: Bytes },
    }
}

impl<B> ProblemBody<B> {
    fn passing(body: B) -> Self {
        Self {
            kind: Kind::Passing {
                body: Passed::new(body),
            },
        }
    }
}

impl<B> Body for ProblemBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            KindProj::Passing { body } => body.poll_frame(cx),
            KindProj::Problem { text } if text.is_empty() => Poll::Ready(None),
            KindProj::Problem { text } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passing { body } => body.is_end_stream(),
            Kind::Problem { text } => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passing { body } => body.size_hint(),
            Kind::Problem { text } => SizeHint::with_exact(text.len() as u64),
        }
    }
}

impl<B> fmt::Debug for ProblemBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProblemBody").finish_non_exhaustive()
    }
}

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The problem response of a refusal at `now`.
fn problem<B>(refusal: &Refusal, now: SystemTime) -> Response<ProblemBody<B>> {
    let status = status(refusal);
    let mut text = String::with_capacity(256);
    let detail = refusal.explain().to_string();
    let _ = write!(
        text,
        "{{\"title\":{},\"status\":{},\"detail\":{},\"kind\":{}",
        Json("this client does not send the request"),
        status.as_u16(),
        Json(&detail),
        Json(refusal.kind()),
    );
    if let Some(origin) = refusal.origin() {
        let _ = write!(text, ",\"origin\":{}", Json(&origin.to_string()));
    }
    if let Some(contact) = refusal.contact() {
        let _ = write!(text, ",\"contact\":{}", Json(contact));
    }
    text.push('}');
    let mut response = Response::new(ProblemBody {
        kind: Kind::Problem { text: text.into() },
    });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    let mark = format!(
        "tower-etiquette; error=http_request_denied; details=\"{}\"",
        refusal.kind()
    );
    if let Ok(mark) = HeaderValue::from_str(&mark) {
        headers.insert(PROXY_STATUS, mark);
    }
    if let Some(at) = refusal.retry_at() {
        // Rounded up: who comes back at that second is not sent away again.
        let left = at.duration_since(now).unwrap_or_default();
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        headers.insert(RETRY_AFTER, seconds.into());
    }
    response.extensions_mut().insert(refusal.clone());
    response
}

fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::NoOrigin(_) => StatusCode::BAD_REQUEST,
        Refusal::Host(_) => StatusCode::TOO_MANY_REQUESTS,
        Refusal::RobotsUnreachable(_) => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Type(_) => StatusCode::NOT_ACCEPTABLE,
        Refusal::NotStored(_) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::FORBIDDEN,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use etiquette_core::Origin;
    use etiquette_core::vocabulary::refusal::{HostRefusal, HostRefused};
    use http_body_util::{BodyExt, Empty};

    use super::*;

    #[tokio::test]
    async fn a_refusal_tells_when_to_come_back() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let origin = Origin::of(&"http://site.example".parse().unwrap()).unwrap();
        let at = now + Duration::from_millis(1_500);
        let contact = Some("\"who\"\n@example.com".into());
        let refused = HostRefused::new(origin, HostRefusal::Paused, Some(at), contact);
        let response = problem::<Empty<Bytes>>(&refused.into(), now);
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "2");
        assert!(response.extensions().get::<Refusal>().is_some());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&body).unwrap();
        assert!(
            text.ends_with(",\"contact\":\"\\\"who\\\"\\n@example.com\"}"),
            "{text}"
        );
        assert!(
            text.contains("\"kind\":\"paused\",\"origin\":\"http://site.example\""),
            "{text}"
        );
    }
}
