//! The cache's own timelines, played on a fake clock in the modes that each names.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_tests::vectors::{Report, rows};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Empty};
use serde_json::Value;
use tokio::time::Instant;
use tower::{Service, ServiceExt, service_fn};
use tower_etiquette::conditional_cache::{ConditionalCacheLayer, MemoryStore};
use tower_etiquette::{BoxError, Facts, PausedClock};
use tower_layer::Layer;

#[test]
fn cache() {
    let mut report = Report::new("cache");
    for row in rows("cache/cases.json", "cases") {
        let id = row["id"].as_str().unwrap();
        for mode in ["private", "shared"] {
            if row["cache"] == mode || row["cache"] == "any" {
                // A row of an unknown shape fails alone.
                let played = AssertUnwindSafe(|| in_paused_time(play(&row, mode == "shared")));
                let outcome = catch_unwind(played).unwrap_or_else(|_| Err("it panicked".into()));
                report.row("cases.json", &format!("{id} ({mode})"), outcome);
            }
        }
    }
    report.finish();
}

fn in_paused_time<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

/// Sunday, 6 November 1994, as in every example of the RFCs.
fn wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// What the origin has to answer now, and what it was asked.
#[derive(Clone, Default)]
struct Origin(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answer: Value,
    again: Value,
    asked: Vec<(HeaderMap, Option<u16>)>,
}

impl Origin {
    async fn answer(
        self,
        start: Instant,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Scripted>, BoxError> {
        let answer = {
            let mut script = self.0.lock().unwrap();
            let conditional = ["if-none-match", "if-modified-since"]
                .iter()
                .any(|name| request.headers().contains_key(*name));
            let first = script.asked.is_empty();
            let answer = if first || conditional || script.again.is_null() {
                script.answer.clone()
            } else {
                script.again.clone()
            };
            let status = answer["status"].as_u64().map(|s| u16::try_from(s).unwrap());
            script.asked.push((request.headers().clone(), status));
            answer
        };
        if answer.is_null() {
            return Err("the origin must not be asked".into());
        }
        if let Some(delay) = answer["delay"].as_f64() {
            tokio::time::sleep(Duration::from_secs_f64(delay)).await;
        }
        if answer["disconnect"] == true {
            return Err("connection closed before message completed".into());
        }
        let status = u16::try_from(answer["status"].as_u64().unwrap()).unwrap();
        let mut response = Response::builder().status(status);
        *response.headers_mut().unwrap() = fields(&answer["headers"], start);
        let bare = request.method() == Method::HEAD || matches!(status, 204 | 304);
        let bytes = if bare {
            Bytes::new()
        } else {
            bytes(&answer["body"])
        };
        let truncated = answer["truncated"] == true;
        let headers = response.headers_mut().unwrap();
        let stated = headers.contains_key("content-length");
        if answer["chunked"] != true && !truncated && !bare && !stated {
            headers.insert("content-length", bytes.len().into());
        }
        let exact = (answer["chunked"] != true && !truncated).then_some(bytes.len() as u64);
        let body = Scripted {
            bytes: (!bytes.is_empty()).then_some(bytes),
            truncated,
            exact,
        };
        Ok(response.body(body).unwrap())
    }
}

/// A body that may break off.
struct Scripted {
    bytes: Option<Bytes>,
    truncated: bool,
    exact: Option<u64>,
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(mut bytes) = self.bytes.take() {
            let chunk = bytes.split_to(bytes.len().min(16_384));
            self.bytes = (!bytes.is_empty()).then_some(bytes);
            return Poll::Ready(Some(Ok(Frame::data(chunk))));
        }
        if std::mem::take(&mut self.truncated) {
            return Poll::Ready(Some(Err("the body broke off".into())));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.exact.is_some() && self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.exact {
            Some(_) => SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64),
            None => SizeHint::default(),
        }
    }
}

fn bytes(body: &Value) -> Bytes {
    match body {
        Value::Null => Bytes::new(),
        Value::String(text) => text.clone().into(),
        other => {
            let unit = other["repeat"].as_str().unwrap();
            let times = usize::try_from(other["times"].as_u64().unwrap()).unwrap();
            unit.repeat(times).into()
        }
    }
}

const DATES: [&str; 5] = [
    "date",
    "expires",
    "last-modified",
    "if-modified-since",
    "if-unmodified-since",
];

fn field(name: &str, value: &Value, start: Instant) -> HeaderValue {
    match value {
        Value::String(text) => HeaderValue::from_bytes(text.as_bytes()).unwrap(),
        Value::Number(number) if DATES.contains(&&*name.to_ascii_lowercase()) => {
            let now = wall() + start.elapsed();
            let delta = number.as_i64().unwrap();
            let span = Duration::from_secs(delta.unsigned_abs());
            let at = if delta < 0 { now - span } else { now + span };
            httpdate::fmt_http_date(at).parse().unwrap()
        }
        Value::Number(number) => number.to_string().parse().unwrap(),
        other => panic!("{name}: {other} is no field value"),
    }
}

/// Pairs of name and value, as a list or as an object.
fn pairs(list: &Value) -> Vec<(String, Value)> {
    match list {
        Value::Null => Vec::new(),
        Value::Object(map) => map.clone().into_iter().collect(),
        list => list
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].clone()))
            .collect(),
    }
}

fn fields(list: &Value, start: Instant) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs(list) {
        let name: HeaderName = name.parse().unwrap();
        let values = match &value {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            map.append(&name, field(name.as_str(), &value, start));
        }
    }
    map
}

async fn play(row: &Value, shared: bool) -> Result<(), String> {
    let start = Instant::now();
    let origin = Origin::default();
    let site = {
        let origin = origin.clone();
        service_fn(move |request| origin.clone().answer(start, request))
    };
    // Limits of memory are not what the rows are about.
    let store = MemoryStore::new(1 << 30);
    let mut layer = ConditionalCacheLayer::new()
        .store(store.clone())
        .max_body(64 << 20)
        .clock(Arc::new(PausedClock::new(wall())));
    if shared {
        layer = layer.shared();
    }
    if let Some(ttl) = row["config"]["default_ttl"].as_u64() {
        layer = layer.default_ttl(Duration::from_secs(ttl));
    }
    let client = layer.layer(site);
    let steps = row["steps"].as_array().unwrap();
    let mut size = None;
    for (index, step) in steps.iter().enumerate() {
        let at = start + Duration::from_secs_f64(step["at"].as_f64().unwrap_or(0.0));
        tokio::time::sleep_until(at).await;
        if step["action"].is_string() {
            // A memory store has no clean-up and nothing to reopen.
            continue;
        }
        for _ in 0..step["repeat"].as_u64().unwrap_or(1) {
            *origin.0.lock().unwrap() = Script {
                answer: step["origin"].clone(),
                again: row["refetch_origin"].clone(),
                asked: Vec::new(),
            };
            let answered = ask(client.clone(), step, start, &origin)
                .await
                .map_err(|why| format!("step {}: {why}", index + 1))?;
            // What goes on in the background has until the next step, or a minute.
            let next = steps.get(index + 1).and_then(|next| next["at"].as_f64());
            let pause = match next {
                Some(next) => start + Duration::from_secs_f64(next),
                None => Instant::now() + Duration::from_secs(60),
            };
            if step["expect"]["background"].is_u64() {
                tokio::time::sleep_until(pause).await;
            } else {
                tokio::task::yield_now().await;
            }
            let background = origin.0.lock().unwrap().asked.len() - answered;
            let expected = step["expect"]["background"].as_u64();
            if expected.is_some_and(|expected| background as u64 != expected) {
                return Err(format!(
                    "step {}: {background} requests in the background",
                    index + 1
                ));
            }
        }
        size.get_or_insert(store.bytes());
    }
    if let (Some(max), Some(first)) = (row["check"]["store_size_ratio_max"].as_f64(), size) {
        let (now, first) = (store.bytes() as f64, first as f64);
        if now > max * first {
            return Err(format!("the store grew from {first} to {now} bytes"));
        }
    }
    Ok(())
}

/// Plays one request and compares its answer. Gives the number of requests to the origin before the answer's end.
async fn ask<S>(client: S, step: &Value, start: Instant, origin: &Origin) -> Result<usize, String>
where
    S: Service<Request<Empty<Bytes>>, Response: IntoParts, Error = BoxError>,
{
    let expect = &step["expect"];
    let asked = &step["request"];
    let uri = match asked["url"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("http://site.example{}", asked["path"].as_str().unwrap()),
    };
    let mut request = Request::builder()
        .method(asked["method"].as_str().unwrap_or("GET"))
        .uri(uri)
        .body(Empty::new())
        .unwrap();
    *request.headers_mut() = fields(&asked["headers"], start);
    let sent = Instant::now();
    let answer = client.oneshot(request).await;
    let elapsed = sent.elapsed().as_secs_f64();
    let before = origin.0.lock().unwrap().asked.clone();
    let accepted: Vec<&str> = match &expect["from"] {
        Value::String(one) => vec![one],
        list => list
            .as_array()
            .unwrap()
            .iter()
            .map(|v| v.as_str().unwrap())
            .collect(),
    };
    if let Some(within) = expect["within"].as_f64()
        && elapsed > within
    {
        return Err(format!("answered after {elapsed} s"));
    }
    if step["origin"].is_null() && !before.is_empty() {
        return Err("the origin was asked".into());
    }
    let most = if expect["refetch_allowed"] == true {
        2
    } else {
        1
    };
    if before.len() > most {
        return Err(format!("{} requests to the origin", before.len()));
    }
    if let Some((headers, _)) = before.first() {
        for (name, value) in pairs(&expect["forwarded_headers"]) {
            let sent: Vec<&str> = headers
                .get_all(&name)
                .iter()
                .filter_map(|v| v.to_str().ok())
                .collect();
            let fits = match &value {
                Value::Null => sent.is_empty(),
                Value::String(text) => sent.contains(&&**text) || sent.join(", ") == *text,
                other => sent.join(", ") == field(&name, other, start),
            };
            if !fits {
                return Err(format!("sent {name}: {sent:?}, not {value}"));
            }
        }
    }
    let response = match answer {
        Err(error) if accepted.contains(&"none") => {
            drop(error);
            return Ok(before.len());
        }
        Err(error) => return Err(format!("error: {error}")),
        Ok(response) => response,
    };
    let (parts, mut body) = response.into_parts();
    let status = Facts::of(&Response::from_parts(parts.clone(), ())).and_then(Facts::cache_status);
    let last = before.last().and_then(|(_, status)| *status);
    let from = match status {
        Some(CacheStatus::Hit { .. }) if before.is_empty() => "cache",
        Some(CacheStatus::Validated { .. }) if last == Some(304) => "validated",
        Some(CacheStatus::StaleOnError { .. }) if last.is_none_or(|last| last >= 500) => "stale",
        Some(CacheStatus::Forwarded { .. }) | None if !before.is_empty() => "origin",
        other => return Err(format!("{other:?} after {} requests", before.len())),
    };
    if !accepted.contains(&from) {
        return Err(format!("from {from}, not {accepted:?}"));
    }
    compare_head(expect, &parts, start)?;
    // The body.
    let mut read = Vec::new();
    let mut broke = false;
    let enough = expect["read_bytes"].as_u64().unwrap_or(u64::MAX);
    while (read.len() as u64) < enough {
        match body.frame().await {
            None => break,
            Some(Ok(frame)) => read.extend(frame.into_data().unwrap_or_default()),
            Some(Err(_)) => {
                broke = true;
                break;
            }
        }
    }
    drop(body);
    if broke != (expect["body_error"] == true) {
        return Err(format!("body error: {broke}"));
    }
    let code = parts.status.as_u16().to_string();
    let wanted = match &expect["body_by_status"][&code] {
        Value::Null => &expect["body"],
        by_status => by_status,
    };
    if !wanted.is_null() && !broke && enough == u64::MAX && bytes(wanted) != read {
        return Err(format!(
            "body {:?}",
            String::from_utf8_lossy(&read[..read.len().min(80)])
        ));
    }
    if !expect["not_body"].is_null() && bytes(&expect["not_body"]) == read {
        return Err("the body that it must not have".into());
    }
    let now = origin.0.lock().unwrap().asked.len();
    Ok(now.min(before.len()))
}

fn compare_head(
    expect: &Value,
    parts: &http::response::Parts,
    start: Instant,
) -> Result<(), String> {
    let status = u64::from(parts.status.as_u16());
    if expect["status"]
        .as_u64()
        .is_some_and(|wanted| wanted != status)
    {
        return Err(format!("status {status}"));
    }
    if let Some(list) = expect["status_in"].as_array()
        && !list.iter().any(|wanted| wanted.as_u64() == Some(status))
    {
        return Err(format!("status {status}"));
    }
    let values = |name: &str| -> Vec<String> {
        parts
            .headers
            .get_all(name)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect()
    };
    for (name, wanted) in pairs(&expect["headers"]) {
        let found = values(&name);
        let fits = match &wanted {
            Value::Null => !found.is_empty(),
            Value::String(text) => found.join(", ") == *text,
            Value::Array(lines) => {
                let lines: Vec<&str> = lines.iter().map(|line| line.as_str().unwrap()).collect();
                found == lines
                    || found.join(", ") == lines.join(", ")
                    || found.join(",") == lines.join(",")
            }
            Value::Number(number) if !DATES.contains(&&*name.to_ascii_lowercase()) => {
                let slack = u64::from(name.eq_ignore_ascii_case("age"));
                found
                    .first()
                    .and_then(|text| text.parse::<u64>().ok())
                    .is_some_and(|value| {
                        number
                            .as_u64()
                            .is_some_and(|wanted| value.abs_diff(wanted) <= slack)
                    })
            }
            other => found.join(", ") == field(&name, other, start),
        };
        if !fits {
            return Err(format!("{name}: {found:?}, not {wanted}"));
        }
    }
    for name in expect["headers_missing"].as_array().into_iter().flatten() {
        let (name, value) = match name {
            Value::String(name) => (&**name, None),
            pair => (pair[0].as_str().unwrap(), pair[1].as_str()),
        };
        let found = values(name);
        if value.map_or(!found.is_empty(), |value| {
            found.iter().any(|f| f.contains(value))
        }) {
            return Err(format!("{name}: {found:?}"));
        }
    }
    for (name, max) in pairs(&expect["header_max"]) {
        let found = values(&name);
        let over = found.first().is_some_and(|text| {
            text.parse::<f64>()
                .ok()
                .is_none_or(|value| value > max.as_f64().unwrap())
        });
        if over {
            return Err(format!("{name}: {found:?}, more than {max}"));
        }
    }
    Ok(())
}

/// The response of the cache, whatever the type of its body is called.
trait IntoParts {
    type Body: Body<Data = Bytes, Error = BoxError> + Unpin;
    fn into_parts(self) -> (http::response::Parts, Self::Body);
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> IntoParts for Response<B> {
    type Body = B;
    fn into_parts(self) -> (http::response::Parts, B) {
        Self::into_parts(self)
    }
}
