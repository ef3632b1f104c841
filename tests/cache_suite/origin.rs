//! The suite's origin server, as a service.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::Full;
use serde_json::Value;
use tokio::time::Instant;
use tower_etiquette::BoxError;

pub(crate) const UUID: &str = "3e1e1b7a-51d5-4c1b-9d0e-0123456789ab";

/// When the fake clock starts.
pub(crate) fn wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_784_550_000)
}

/// Fields whose integer values are seconds from now.
const DATES: [&str; 5] = [
    "date",
    "expires",
    "last-modified",
    "if-modified-since",
    "if-unmodified-since",
];

pub(crate) fn is_date(name: &str) -> bool {
    DATES.contains(&&*name.to_ascii_lowercase())
}

/// A field value as the suite writes it: text in Latin-1, or a date relative to `now`.
pub(crate) fn value(definition: &Value, name: &str, value: &Value, now: SystemTime) -> HeaderValue {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(delta) if is_date(name) => {
            let old_form = definition["rfc850date"].as_array().is_some_and(|names| {
                names
                    .iter()
                    .any(|n| n.as_str() == Some(&name.to_ascii_lowercase()))
            });
            date(now, delta.as_i64().unwrap(), old_form)
        }
        other => other.to_string(),
    };
    let latin: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    HeaderValue::from_bytes(latin.trim_ascii()).unwrap()
}

fn date(now: SystemTime, delta: i64, old_form: bool) -> String {
    let span = Duration::from_secs(delta.unsigned_abs());
    let at = if delta < 0 { now - span } else { now + span };
    let text = httpdate::fmt_http_date(at);
    if !old_form {
        return text;
    }
    let days = [
        "Sunday",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
    ];
    let day = days.iter().find(|day| day.starts_with(&text[..3])).unwrap();
    format!(
        "{day}, {}-{}-{} {} GMT",
        &text[5..7],
        &text[8..11],
        &text[14..16],
        &text[17..25]
    )
}

/// What the origin saw of one request, and what it was told to check of its answer.
#[derive(Clone)]
pub(crate) struct Record {
    pub(crate) number: usize,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) remembered: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Clone)]
pub(crate) struct Origin {
    definitions: Arc<Vec<Value>>,
    start: Instant,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    records: Vec<Record>,
    /// The fields that were sent for each definition, for its successor's validation.
    sent: Vec<(usize, HeaderMap)>,
}

impl Origin {
    pub(crate) fn new(test: &Value) -> Self {
        Self {
            definitions: Arc::new(test["requests"].as_array().unwrap().clone()),
            start: Instant::now(),
            state: Arc::default(),
        }
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        self.state.lock().unwrap().records.clone()
    }

    pub(crate) fn now(&self) -> SystemTime {
        wall() + self.start.elapsed()
    }

    pub(crate) async fn answer(
        self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, BoxError> {
        let stated = request
            .headers()
            .get("req-num")
            .and_then(|n| n.to_str().ok()?.parse().ok());
        let seen = self.records().len();
        let number: usize = stated.unwrap_or(seen + 1);
        let definition = &self.definitions[number - 1];
        if let Some(pause) = definition["response_pause"].as_u64() {
            tokio::time::sleep(Duration::from_secs(pause)).await;
        }
        let now = self.now();
        let base = request.uri().path_and_query().unwrap().as_str().to_owned();
        let mut sent = HeaderMap::new();
        let mut remembered = Vec::new();
        for line in definition["response_headers"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let name = line[0].as_str().unwrap();
            let located = definition["magic_locations"] == true
                && (name.eq_ignore_ascii_case("location")
                    || name.eq_ignore_ascii_case("content-location"));
            let field: HeaderName = name.parse().unwrap();
            let text = if located {
                let target = line[1].as_str().unwrap();
                let full = if target.is_empty() {
                    base.clone()
                } else {
                    format!("{base}/{target}")
                };
                full.parse().unwrap()
            } else {
                value(definition, name, &line[1], now)
            };
            sent.append(&field, text.clone());
            if line[2] != false {
                remembered.push((field, text));
            }
        }
        let status = self.status(definition, number, request.headers());
        let (count, numbers) = {
            let mut state = self.state.lock().unwrap();
            state.records.push(Record {
                number,
                method: request.method().clone(),
                headers: request.headers().clone(),
                remembered,
            });
            state.sent.push((number, sent.clone()));
            let numbers: Vec<String> = state.records.iter().map(|r| r.number.to_string()).collect();
            (state.records.len(), numbers.join(" "))
        };
        if definition["disconnect"] == true {
            return Err("the origin closed the connection".into());
        }
        let mut response = Response::new(Full::default());
        *response.status_mut() = status.try_into().unwrap();
        let mut own = |name: &'static str, text: String| {
            sent.entry(name).or_insert(text.parse().unwrap());
        };
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        own("server-base-url", base);
        own("server-request-count", count.to_string());
        own("client-request-count", number.to_string());
        own("server-now", since.as_millis().to_string());
        own("request-numbers", numbers);
        own("content-type", "text/plain".to_owned());
        own("date", httpdate::fmt_http_date(now));
        let bare = matches!(status, 204 | 304) || *request.method() == Method::HEAD;
        if !bare {
            let text = definition["response_body"].as_str().unwrap_or(UUID);
            let length = sent
                .get("content-length")
                .and_then(|v| v.to_str().ok()?.parse().ok());
            let cut = length.map_or(text.len(), |length: usize| length.min(text.len()));
            *response.body_mut() = Full::from(text[..cut].to_owned());
        }
        *response.headers_mut() = sent;
        Ok(response)
    }

    fn status(&self, definition: &Value, number: usize, request: &HeaderMap) -> u16 {
        let validated = definition["expected_type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("validated"));
        if validated {
            let state = self.state.lock().unwrap();
            let served = state.sent.iter().rev().find(|(sent, _)| sent + 1 == number);
            // What the definition before was answered with, or would have been had it come here.
            let before = |validator: &str| match served {
                Some((_, fields)) => fields.get(validator).cloned(),
                None => self.definitions[number.checked_sub(2)?]["response_headers"]
                    .as_array()?
                    .iter()
                    .find(|line| line[0].as_str().unwrap().eq_ignore_ascii_case(validator))
                    .and_then(|line| line[1].as_str()?.parse().ok()),
            };
            let same = |condition: &str, validator: &str| {
                let stored: Option<HeaderValue> = before(validator);
                stored.is_some() && stored.as_ref() == request.get(condition)
            };
            let holds = same("if-modified-since", "last-modified") || same("if-none-match", "etag");
            return if holds { 304 } else { 999 };
        }
        match definition["response_status"][0].as_u64() {
            Some(status) => u16::try_from(status).unwrap(),
            None => 200,
        }
    }
}
