//! One request, as the upstream gets it, and its answer, as the caller gets it.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::header::{HOST, HeaderValue, TE, TRAILER, VIA};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use tower::{Service, ServiceExt};
use tower_etiquette::Body;

use super::body::PassedBody;
use super::stack::Stack;

/// Calls the stack, which stays with its connection: one request after the other.
pub(super) fn answer(
    stack: &Mutex<Stack>,
    upstream: &Uri,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> + use<> {
    let called = towards(upstream, request).map(|request| {
        let mut stack = stack.lock().unwrap_or_else(PoisonError::into_inner);
        // A stack is ready whenever it is asked; what waits does so in its future.
        match stack.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Ok(stack.call(request)),
            _ => Err(Box::pin(stack.clone().oneshot(request))),
        }
    });
    async move {
        let answered = match called {
            None => return Ok(bare(StatusCode::BAD_REQUEST)),
            Some(Ok(answer)) => answer.await,
            Some(Err(answer)) => answer.await,
        };
        let mut response = answered.unwrap_or_else(|_| bare(StatusCode::BAD_GATEWAY));
        between_connections(response.headers_mut());
        Ok(response)
    }
}

/// The request as the upstream gets it; `None` for one that names nothing there.
fn towards(upstream: &Uri, request: Request<Incoming>) -> Option<Request<PassedBody>> {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().cloned()?;
    let path = if path.as_str().starts_with('/') || path == "*" {
        path
    } else {
        PathAndQuery::from_static("/")
    };
    let mut uri = upstream.clone().into_parts();
    uri.path_and_query = Some(path);
    parts.uri = Uri::from_parts(uri).ok()?;
    // There is one upstream, and it is asked under its own name: responses are stored under it.
    parts.headers.remove(HOST);
    let trailers = parts.headers.get(TE).is_some_and(|te| {
        te.to_str().is_ok_and(|te| {
            te.split(',')
                .any(|member| member.trim().eq_ignore_ascii_case("trailers"))
        })
    });
    between_connections(&mut parts.headers);
    if trailers {
        parts
            .headers
            .insert(TE, HeaderValue::from_static("trailers"));
    }
    parts.version = http::Version::HTTP_11;
    Some(Request::from_parts(parts, PassedBody::new(body)))
}

/// Removes what concerns one connection, and says that the message came this way.
fn between_connections(headers: &mut HeaderMap) {
    let trailer: Vec<HeaderValue> = headers.get_all(TRAILER).iter().cloned().collect();
    etiquette_core::decide::cache_policy::remove_connection_fields(headers);
    for value in trailer {
        headers.append(TRAILER, value);
    }
    headers.append(VIA, HeaderValue::from_static("1.1 tower-etiquette"));
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::new(Empty::<Bytes>::new()));
    *response.status_mut() = status;
    response
}
