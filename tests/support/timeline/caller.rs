//! One caller of a timeline: sends a request, follows redirects if it is told to, and reads the answer or does not.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::Clock;
use http::{Method, Request, Response, Uri, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};
use tower_etiquette::{BoxError, PausedClock, Purpose, Refusal, Session, Visit};

use super::observed::{Completion, Group, RefusedRequest};
use super::scenario::normal;

/// An answer as the callers get it.
pub(super) type Answered = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The stack of a timeline.
pub(super) type Client = BoxCloneSyncService<Request<Empty<Bytes>>, Answered, BoxError>;

/// `service` as a [`Client`].
pub(super) fn boxed<S, B>(service: S) -> Client
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(
        service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into),
    )
}

/// What the callers got.
#[derive(Debug, Default)]
pub(super) struct CallerLog {
    pub(super) completed: Vec<Completion>,
    pub(super) refusals: Vec<RefusedRequest>,
}

/// One request and what its caller does with the answer.
pub(super) struct Caller {
    pub(super) client: Client,
    pub(super) clock: Arc<PausedClock>,
    pub(super) log: Arc<Mutex<CallerLog>>,
    pub(super) start: Instant,
    /// What the row says about the request.
    pub(super) row: Value,
    pub(super) host: String,
    pub(super) group: Group,
    /// Whether redirects are followed.
    pub(super) follow: bool,
}

impl Caller {
    pub(super) async fn call(mut self) {
        let scheme = self.row["scheme"].as_str().unwrap_or("http");
        let path = self.row["path"].as_str().unwrap_or("/");
        let mut uri: Uri = format!("{scheme}://{}{path}", self.host).parse().unwrap();
        let method: Method = self.row["method"]
            .as_str()
            .unwrap_or("GET")
            .parse()
            .unwrap();
        let visit = Visit::new();
        let session = Session::new();
        let grant = (self.row["mode"] == "user").then(|| session.grant(&uri).unwrap());
        loop {
            let mut request = Request::new(Empty::new());
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            visit.attach(&mut request);
            request.extensions_mut().insert(self.group.clone());
            if let Some(grant) = &grant {
                request
                    .extensions_mut()
                    .insert(Purpose::UserFetch(grant.clone()));
            }
            let response = match self.client.ready().await.unwrap().call(request).await {
                Ok(response) => response,
                Err(error) => return self.failed(&*error),
            };
            let target = response.headers().get(header::LOCATION);
            if let (true, Some(target)) = (self.follow, target) {
                let target = target.to_str().unwrap();
                uri = if target.starts_with('/') {
                    let authority = uri.authority().unwrap();
                    format!("{scheme}://{authority}{target}").parse().unwrap()
                } else {
                    target.parse().unwrap()
                };
                self.group.hop += 1;
                self.host = uri.authority().unwrap().to_string();
                drop(response);
                continue;
            }
            return self.read(response).await;
        }
    }

    async fn read(self, response: Answered) {
        let drop_at = self.row["drop_body_at"].as_f64();
        let hold = self.row["hold_body"].as_bool() == Some(true);
        let keep = self.row["hold_response"].as_bool() == Some(true);
        if keep {
            // The head is all there is: the answer is complete when it arrives.
            self.completed();
            std::future::pending::<()>().await;
            drop(response);
            return;
        }
        let drop_at = drop_at.map(|at| self.start + Duration::from_secs_f64(at));
        if hold {
            match drop_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
            return;
        }
        let read = collect(response.into_body());
        let outcome = match drop_at {
            Some(at) => tokio::time::timeout_at(at, read).await.unwrap_or(Err(())),
            None => read.await,
        };
        if outcome.is_ok() {
            self.completed();
        }
    }

    /// Seconds since the start.
    fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    fn completed(&self) {
        let completion = Completion {
            host: normal(&self.host, "http"),
            at: self.now(),
        };
        self.log.lock().unwrap().completed.push(completion);
    }

    fn failed(&self, error: &(dyn std::error::Error + 'static)) {
        let Some(refusal) = Refusal::find(error) else {
            return;
        };
        let now = self.now();
        let wall = self.clock.now().wall;
        let retry_at = refusal.retry_at().map(|at| match at.duration_since(wall) {
            Ok(ahead) => now + ahead.as_secs_f64(),
            Err(ago) => now - ago.duration().as_secs_f64(),
        });
        self.log.lock().unwrap().refusals.push(RefusedRequest {
            host: normal(&self.host, "http"),
            kind: refusal.kind(),
            at: now,
            retry_at,
        });
    }
}

async fn collect(body: UnsyncBoxBody<Bytes, BoxError>) -> Result<(), ()> {
    let mut body = Pin::from(Box::new(body));
    while let Some(frame) = body.as_mut().frame().await {
        frame.map_err(|_| ())?;
    }
    Ok(())
}
