//! A client that counts what a site sees of it: each hop, each attempt, each request for robots.txt.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use etiquette_discovery::reference::resolve;
use http::{HeaderMap, Request, Response, Uri, header};
use tower::Service;
use tower_etiquette::client::{Client, Error, RequestBody, ResponseBody};
use tower_etiquette::{Facts, Origin};

/// More hops than a start page needs: scheme, host, language.
const MAX_HOPS: usize = 5;

/// The address of a response after redirects, among its extensions.
#[derive(Clone, Debug)]
pub(super) struct FinalUri(pub(super) Uri);

/// A client without redirects of its own; it follows them here, so that none is hidden from the count.
#[derive(Clone)]
pub(super) struct Counted {
    client: Client,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: u64,
    /// Origins whose robots.txt was fetched. A run is far shorter than the life of a copy.
    origins: HashSet<Origin>,
}

impl Counted {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            seen: Arc::default(),
        }
    }

    /// The requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.seen().requests
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn get(self, mut uri: Uri, headers: HeaderMap) -> Result<Response<ResponseBody>, Error> {
        let mut hops = 0;
        loop {
            let mut request = Request::new(RequestBody::default());
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            let mut outcome = self.client.request(request).await;
            self.count(&uri, &outcome);
            if let Ok(response) = &mut outcome {
                if let Some(to) = target(&uri, response)
                    && hops < MAX_HOPS
                {
                    uri = to;
                    hops += 1;
                    continue;
                }
                response.extensions_mut().insert(FinalUri(uri));
            }
            return outcome;
        }
    }

    fn count(&self, uri: &Uri, outcome: &Result<Response<ResponseBody>, Error>) {
        let mut seen = self.seen();
        let (attempts, obeyed) = match outcome {
            Ok(response) => {
                let facts = Facts::of(response);
                let obeyed = facts.is_some_and(|facts| facts.robots().is_some());
                (facts.map_or(1, Facts::attempts), obeyed)
            }
            Err(error) => match error.refusal() {
                Some(refusal) => (
                    0,
                    matches!(refusal.kind(), "disallowed" | "robots_unreachable"),
                ),
                // robots.txt had an outcome before the attempt that failed.
                None => (1, true),
            },
        };
        seen.requests += u64::from(attempts);
        if let Ok(origin) = Origin::of(uri)
            && obeyed
            && seen.origins.insert(origin)
        {
            seen.requests += 1;
        }
    }
}

/// Where a redirect leads. One that asks to wait is not followed: its target would have to wait too.
fn target(uri: &Uri, response: &Response<ResponseBody>) -> Option<Uri> {
    let followed = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
        && !response.headers().contains_key(header::RETRY_AFTER);
    let location = response
        .headers()
        .get(header::LOCATION)
        .filter(|_| followed)?;
    resolve(uri, location.to_str().ok()?).ok()
}

impl Service<Request<RequestBody>> for Counted {
    type Response = Response<ResponseBody>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    /// The client makes itself ready for each hop.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let (head, _) = request.into_parts();
        Box::pin(self.clone().get(head.uri, head.headers))
    }
}
