//! The origin of a timeline: answers by its rules and writes down what it sees.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Empty;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tower_etiquette::BoxError;

use super::scenario::normal;

/// One request as the origin sees it. Times in seconds from the start.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: f64,
    pub(crate) host: String,
    pub(crate) path: String,
    pub(crate) user_agent: Option<String>,
    pub(crate) group: Option<Group>,
    pub(crate) head: Option<f64>,
    pub(crate) status: u16,
    pub(crate) end: Option<f64>,
}

/// Which submission a request belongs to; rides along as an extension.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) id: Option<String>,
    pub(crate) serial: usize,
    /// How many redirects it has followed.
    pub(crate) hop: usize,
}

#[derive(Clone)]
pub(crate) struct Site(Arc<Shared>);

struct Shared {
    start: Instant,
    wall: SystemTime,
    rules: Vec<Value>,
    default_latency: f64,
    default_body_time: f64,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    arrivals: Vec<Arrival>,
    per_host: HashMap<String, u64>,
}

impl Site {
    pub(crate) fn new(wall: SystemTime, rules: Vec<Value>, latency: f64, body_time: f64) -> Self {
        Self(Arc::new(Shared {
            start: Instant::now(),
            wall,
            rules,
            default_latency: latency,
            default_body_time: body_time,
            log: Mutex::default(),
        }))
    }

    pub(crate) fn now(&self) -> f64 {
        self.0.start.elapsed().as_secs_f64()
    }

    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.0.log.lock().unwrap().arrivals.clone()
    }

    fn arrived<B>(&self, request: &Request<B>) -> (usize, u64, Arrival) {
        let uri = request.uri();
        let authority = uri.authority().unwrap().as_str();
        let arrival = Arrival {
            at: self.now(),
            host: normal(authority, uri.scheme_str().unwrap()),
            path: uri.path().into(),
            user_agent: request
                .headers()
                .get("user-agent")
                .map(|value| value.to_str().unwrap().into()),
            group: request.extensions().get().cloned(),
            head: None,
            status: 0,
            end: None,
        };
        let mut log = self.0.log.lock().unwrap();
        let number = log.per_host.entry(arrival.host.clone()).or_default();
        *number += 1;
        let number = *number;
        log.arrivals.push(arrival.clone());
        (log.arrivals.len() - 1, number, arrival)
    }

    fn rule<B>(&self, request: &Request<B>, number: u64, arrival: &Arrival) -> Value {
        let conditional = request.headers().contains_key("if-none-match")
            || request.headers().contains_key("if-modified-since");
        let fits = |rule: &&Value| {
            let host = rule["host"].as_str();
            let numbers = rule["arrival"].as_array();
            let when = rule["when"].as_array();
            host.is_none_or(|host| normal(host, "http") == arrival.host)
                && rule["path"]
                    .as_str()
                    .is_none_or(|path| path == arrival.path)
                && rule["conditional"]
                    .as_bool()
                    .is_none_or(|c| c == conditional)
                && numbers.is_none_or(|all| all.iter().any(|n| n.as_u64() == Some(number)))
                && when.is_none_or(|when| {
                    (when[0].as_f64().unwrap()..when[1].as_f64().unwrap()).contains(&arrival.at)
                })
        };
        match self.0.rules.iter().find(fits) {
            Some(rule) => rule.clone(),
            None if arrival.path == "/robots.txt" => serde_json::json!({"status": 404}),
            None => Value::Null,
        }
    }

    async fn answer(self, request: Request<Empty<Bytes>>) -> Result<Response<SiteBody>, BoxError> {
        let (index, number, arrival) = self.arrived(&request);
        let ending = Ending(self.clone(), index);
        let rule = self.rule(&request, number, &arrival);
        let head_request = request.method() == http::Method::HEAD;
        drop(request);
        if rule["panic"].as_bool() == Some(true) {
            // Without the panic hook, which would fill the test's output.
            std::panic::resume_unwind(Box::new("the row asks for a panic"));
        }
        let latency = rule["latency"].as_f64().unwrap_or(self.0.default_latency);
        if latency > 0.0 {
            sleep(Duration::from_secs_f64(latency)).await;
        }
        if rule["error"].is_string() {
            return Err("connection refused".into());
        }
        let status = rule["status"].as_u64().unwrap_or(200) as u16;
        let mut response = Response::builder().status(status);
        for (name, value) in rule["headers"].as_object().into_iter().flatten() {
            let mut value = value.as_str().unwrap().to_owned();
            if let Some(ahead) = value.strip_prefix("@+") {
                let present = self.0.wall + self.0.start.elapsed();
                let ahead: f64 = ahead.parse().unwrap();
                let up = Duration::from_nanos(999_999_999);
                let at = present + Duration::from_secs_f64(ahead) + up;
                value = httpdate::fmt_http_date(at);
                response = response.header("date", httpdate::fmt_http_date(present));
            }
            response = response.header(name, value);
        }
        {
            let mut log = self.0.log.lock().unwrap();
            log.arrivals[index].head = Some(self.now());
            log.arrivals[index].status = status;
        }
        let text = rule["body"].as_str().unwrap_or_default().to_owned();
        let body_time = rule["body_time"]
            .as_f64()
            .unwrap_or(self.0.default_body_time);
        let error_at = rule["body_error_at"].as_f64();
        let bodiless = head_request || matches!(status, 204 | 304);
        let until = error_at.unwrap_or(body_time);
        let has_text = !text.is_empty() && !bodiless;
        let takes_time = until > 0.0 && !bodiless;
        let end = Instant::now() + Duration::from_secs_f64(until);
        let body = SiteBody {
            text: has_text.then(|| text.into()),
            timer: takes_time.then(|| Box::pin(sleep_until(end))),
            fails: error_at.is_some(),
            // Without a body the head is the end.
            ending: (has_text || takes_time || error_at.is_some()).then_some(ending),
        };
        Ok(response.body(body)?)
    }
}

impl tower::Service<Request<Empty<Bytes>>> for Site {
    type Response = Response<SiteBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Empty<Bytes>>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// Writes the end down, however it comes.
struct Ending(Site, usize);

impl Drop for Ending {
    fn drop(&mut self) {
        let now = self.0.now();
        // A panic of the site must not poison the log.
        if let Ok(mut log) = self.0.0.log.lock() {
            log.arrivals[self.1].end.get_or_insert(now);
        }
    }
}

/// Text at once, and an end, or an error, when its time has come.
pub(crate) struct SiteBody {
    text: Option<Bytes>,
    timer: Option<Pin<Box<Sleep>>>,
    fails: bool,
    ending: Option<Ending>,
}

impl Body for SiteBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(text) = self.text.take() {
            return Poll::Ready(Some(Ok(Frame::data(text))));
        }
        if let Some(timer) = &mut self.timer {
            std::task::ready!(timer.as_mut().poll(cx));
            self.timer = None;
        }
        self.ending = None;
        if std::mem::take(&mut self.fails) {
            return Poll::Ready(Some(Err("the connection was closed".into())));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_none() && self.timer.is_none() && !self.fails
    }
}
