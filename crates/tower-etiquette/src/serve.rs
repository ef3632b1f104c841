//! What the client's operator serves from memory.

use bytes::Bytes;
use http::header::ALLOW;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;

/// What `respond` gives for GET, its head for HEAD, and 405 for other methods (RFC 9110, 15.5.6).
pub(crate) fn get_or_head<B>(
    request: &Request<B>,
    respond: impl FnOnce() -> Response<Full<Bytes>>,
) -> Response<Full<Bytes>> {
    match *request.method() {
        Method::GET => respond(),
        Method::HEAD => respond().map(|_| Full::default()),
        _ => {
            let mut response = status_only(StatusCode::METHOD_NOT_ALLOWED);
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allowed);
            response
        }
    }
}

/// A response without fields and without content.
pub(crate) fn status_only(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
