use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use etiquette_core::signing::{Signer, directory};
use http::header::HOST;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tower_service::Service;

use crate::serve::{get_or_head, status_only};
use crate::{Clock, TokioClock};

/// Serves the public key of a [`Signer`] as a key directory, signed for the host that it is asked at.
///
/// A service of its own, to nest where the client's operator serves the link of its signatures:
/// `Router::new().route_service(KeyDirectory::PATH, directory)` in axum. It serves GET and HEAD at [`Self::PATH`] and
/// 404 elsewhere.
#[derive(Clone, Debug)]
#[must_use]
pub struct KeyDirectory {
    signer: Signer,
    body: Bytes,
    clock: Arc<dyn Clock>,
}

/// The future of [`KeyDirectory`].
pub type DirectoryFuture = Ready<Result<Response<Full<Bytes>>, Infallible>>;

impl KeyDirectory {
    /// Where verifiers look for it.
    pub const PATH: &'static str = directory::PATH;

    /// The directory with the key of `signer`.
    pub fn new(signer: &Signer) -> Self {
        Self {
            body: directory::document([signer.key().public()]).into(),
            signer: signer.clone(),
            clock: Arc::new(TokioClock),
        }
    }

    /// Where the time of the signature comes from; the system's wall clock by default.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    fn respond<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if request.uri().path() != Self::PATH {
            return status_only(StatusCode::NOT_FOUND);
        }
        get_or_head(request, || {
            let Some(authority) = authority(request) else {
                return status_only(StatusCode::BAD_REQUEST);
            };
            let mut response = Response::new(Full::new(self.body.clone()));
            *response.headers_mut() = directory::headers(
                self.signer.key(),
                std::str::from_utf8(&self.body).unwrap_or_default(),
                &authority,
                self.clock.now().wall,
                directory::LIFETIME,
            );
            response
        })
    }
}

/// The host that the request was made to, in lower case and without a default port: what a verifier puts for
/// `@authority`. Over TLS the port of `https` is the default one; this service does not know which it is.
fn authority<B>(request: &Request<B>) -> Option<String> {
    let host = match request.uri().authority() {
        Some(authority) => authority.as_str(),
        None => request.headers().get(HOST)?.to_str().ok()?,
    };
    let host = host.trim().to_ascii_lowercase();
    let host = host
        .strip_suffix(":443")
        .or_else(|| host.strip_suffix(":80"))
        .unwrap_or(&host);
    // What goes into the base that is signed must not end its line.
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_graphic());
    is_host.then(|| host.to_owned())
}

impl<B> Service<Request<B>> for KeyDirectory {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = DirectoryFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> DirectoryFuture {
        ready(Ok(self.respond(&request)))
    }
}

#[cfg(test)]
mod tests {
    use etiquette_core::signing::SigningKey;
    use http::Method;

    use super::*;

    #[test]
    fn answers_where_it_is_looked_for() {
        let (key, jwk) = SigningKey::generate().unwrap();
        let signer = Signer::new(key, "https://www.example.com").unwrap();
        let directory = KeyDirectory::new(&signer);
        let ask = |method: Method, path: &str| {
            let request = Request::builder()
                .method(method)
                .uri(path)
                .header(HOST, "WWW.example.com:443");
            directory.respond(&request.body(()).unwrap())
        };
        let response = ask(Method::GET, KeyDirectory::PATH);
        assert_eq!(response.headers()["content-type"], directory::MEDIA_TYPE);
        assert!(response.headers().contains_key("signature"));
        let keys = directory::keys(std::str::from_utf8(&directory.body).unwrap()).unwrap();
        assert_eq!(keys, [signer.key().public().clone()]);
        let secret = jwk
            .split("\"d\":\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        assert!(
            !std::str::from_utf8(&directory.body)
                .unwrap()
                .contains(secret)
        );
        assert_eq!(ask(Method::POST, KeyDirectory::PATH).status(), 405);
        assert_eq!(ask(Method::GET, "/").status(), 404);
    }
}
