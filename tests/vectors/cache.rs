//! The cache's own timelines, played on a fake clock in the modes that each names.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::decide::cache_policy::CacheStatus;
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Entry, Script, Site, SiteService};
use etiquette_tests::vectors::Kind::{Any, Flag, List, Number, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, RowResult, Vectors, any_text, list, only_keys, optional, text, unknown, whole,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Empty};
use serde_json::Value;
use tokio::time::Instant;
use tower::{Service, ServiceExt};
use tower_etiquette::conditional_cache::{ConditionalCacheLayer, MemoryStore};
use tower_etiquette::{BoxError, Facts, PausedClock};
use tower_layer::Layer;

const FILE: &str = "cases.json";

#[test]
fn cache() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("cache");
    for row in vectors.rows("cache/cases.json", "cases") {
        let modes: &[&str] = match row["cache"].as_str() {
            Some("any") => &["private", "shared"],
            Some("private") => &["private"],
            Some("shared") => &["shared"],
            _ => {
                report.play(FILE, &row, |row| {
                    Err(unknown(format_args!("the cache {}", row["cache"])))
                });
                continue;
            }
        };
        for &mode in modes {
            let id = format!("{} ({mode})", row["id"].as_str().unwrap_or("?"));
            report.play_as(FILE, &id, || {
                check_keys(&row)?;
                paused::run(steps(&row, mode == "shared"))
            });
        }
    }
    report
}

const ROW: &[(&str, Kind)] = &[
    ("id", Text),
    ("cache", Text),
    ("check", Object),
    ("config", Object),
    ("refetch_origin", Object),
    ("steps", List),
];

const STEP: &[(&str, Kind)] = &[
    ("action", Text),
    ("at", Number),
    ("expect", Object),
    ("origin", Object),
    ("repeat", Number),
    ("request", Object),
];

const REQUEST: &[(&str, Kind)] = &[
    ("headers", Any),
    ("method", Text),
    ("path", Text),
    ("url", Text),
];

const ORIGIN: &[(&str, Kind)] = &[
    ("body", Any),
    ("chunked", Flag),
    ("delay", Number),
    ("disconnect", Flag),
    ("headers", Any),
    ("status", Number),
    ("truncated", Flag),
];

const EXPECT: &[(&str, Kind)] = &[
    ("background", Number),
    ("body", Any),
    ("body_by_status", Object),
    ("body_error", Flag),
    ("forwarded_headers", Any),
    ("from", Any),
    ("header_max", Any),
    ("headers", Any),
    ("headers_missing", List),
    ("not_body", Any),
    ("read_bytes", Number),
    ("refetch_allowed", Flag),
    ("status", Number),
    ("status_in", List),
    ("within", Number),
];

/// Fails where the row has a key that is not read.
fn check_keys(row: &Value) -> RowResult {
    only_keys(row, "the row", ROW)?;
    only_keys(&row["config"], "config", &[("default_ttl", Number)])?;
    only_keys(&row["check"], "check", &[("store_size_ratio_max", Number)])?;
    only_keys(&row["refetch_origin"], "refetch_origin", ORIGIN)?;
    for step in list(row, "steps")? {
        only_keys(step, "a step", STEP)?;
        match step["action"].as_str() {
            None => {}
            // A memory store has no clean-up and nothing to reopen.
            Some("store_maintenance_and_reopen") => continue,
            Some(other) => return Err(unknown(format_args!("the action {other:?}"))),
        }
        only_keys(&step["request"], "request", REQUEST)?;
        only_keys(&step["origin"], "origin", ORIGIN)?;
        only_keys(&step["expect"], "expect", EXPECT)?;
        for from in accepted(&step["expect"])? {
            if !["cache", "none", "origin", "stale", "validated"].contains(&from) {
                return Err(unknown(format_args!("from {from:?}")));
            }
        }
    }
    Ok(())
}

/// Where the answer may come from.
fn accepted(expect: &Value) -> Result<Vec<&str>, String> {
    match &expect["from"] {
        Value::String(one) => Ok(vec![one]),
        _ => list(expect, "from")?.iter().map(any_text).collect(),
    }
}

/// Sunday, 6 November 1994, as in every example of the RFCs.
fn wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777)
}

/// The origin of a row: what it has to answer now, and what it was asked in this step.
#[derive(Clone)]
struct Origin {
    service: SiteService,
    step: Arc<Mutex<Step>>,
}

#[derive(Default)]
struct Step {
    answer: Value,
    /// The answer to a second request that is not conditional, if it has one of its own.
    again: Value,
    /// How many requests were before it.
    before: usize,
    asked: usize,
}

impl Origin {
    fn new() -> Self {
        let step: Arc<Mutex<Step>> = Arc::default();
        let script = {
            let step = Arc::clone(&step);
            Script::call(move |arrival| {
                let mut step = step.lock().unwrap();
                let conditional = ["if-none-match", "if-modified-since"]
                    .iter()
                    .any(|name| arrival.headers.contains_key(*name));
                let first = step.asked == 0;
                step.asked += 1;
                let answer = if first || conditional || step.again.is_null() {
                    step.answer.clone()
                } else {
                    step.again.clone()
                };
                drop(step);
                let bodiless = arrival.method == Method::HEAD;
                answer_of(&answer, arrival.at, bodiless)
            })
        };
        Self {
            service: Site::builder().otherwise(script).in_process(),
            step,
        }
    }

    fn begin(&self, answer: &Value, again: &Value) {
        *self.step.lock().unwrap() = Step {
            answer: answer.clone(),
            again: again.clone(),
            before: self.service.log().entries().len(),
            asked: 0,
        };
    }

    /// What it was asked in this step.
    fn asked(&self) -> Vec<Entry> {
        let before = self.step.lock().unwrap().before;
        self.service.log().entries().split_off(before)
    }
}

/// The answer that the row gives to a request that comes at `at`. An origin that must not be asked closes the connection.
fn answer_of(answer: &Value, at: Duration, bodiless: bool) -> Answer {
    let delay = Duration::from_secs_f64(answer["delay"].as_f64().unwrap_or(0.0));
    if answer.is_null() || answer["disconnect"] == true {
        return Answer::hang_up().after(delay);
    }
    let status = u16::try_from(answer["status"].as_u64().unwrap()).unwrap();
    let mut headers = fields(&answer["headers"], at + delay).unwrap();
    let bodiless = bodiless || matches!(status, 204 | 304);
    let bytes = bytes(&answer["body"]).unwrap();
    let (chunked, truncated) = (answer["chunked"] == true, answer["truncated"] == true);
    if !chunked && !truncated && !bodiless && !headers.contains_key("content-length") {
        headers.insert("content-length", bytes.len().into());
    }
    let chunks = bytes.chunks(16_384).map(Bytes::copy_from_slice);
    let mut made = Answer::status(status)
        .literally()
        .after(delay)
        .headers(&headers)
        .pieces(chunks, Duration::ZERO);
    if chunked {
        made = made.chunked();
    }
    if truncated {
        made = made.breaks_off();
    }
    made
}

fn bytes(body: &Value) -> Result<Bytes, String> {
    match body {
        Value::Null => Ok(Bytes::new()),
        Value::String(text) => Ok(text.clone().into()),
        other => {
            only_keys(other, "body", &[("repeat", Text), ("times", Number)])?;
            Ok(text(other, "repeat")?.repeat(whole(other, "times")?).into())
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

/// The value of a field. A number for a date is so many seconds from now, which is `since` after the start.
fn field(name: &str, value: &Value, since: Duration) -> Result<HeaderValue, String> {
    let wrong = || unknown(format_args!("the header {name}: {value}"));
    match value {
        Value::String(text) => HeaderValue::from_bytes(text.as_bytes()).map_err(|_| wrong()),
        Value::Number(number) if DATES.contains(&&*name.to_ascii_lowercase()) => {
            let now = wall() + since;
            let delta = number.as_i64().ok_or_else(wrong)?;
            let span = Duration::from_secs(delta.unsigned_abs());
            let at = if delta < 0 { now - span } else { now + span };
            httpdate::fmt_http_date(at).parse().map_err(|_| wrong())
        }
        Value::Number(number) => number.to_string().parse().map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

/// Pairs of name and value, as a list or as an object.
fn pairs(list: &Value) -> Result<Vec<(String, Value)>, String> {
    match list {
        Value::Null => Ok(Vec::new()),
        Value::Object(map) => Ok(map.clone().into_iter().collect()),
        Value::Array(list) => list
            .iter()
            .map(|pair| Ok((any_text(&pair[0])?.to_owned(), pair[1].clone())))
            .collect(),
        other => Err(unknown(format_args!("{other} are no header fields"))),
    }
}

fn fields(list: &Value, since: Duration) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in pairs(list)? {
        let wrong = |_| unknown(format_args!("the header {name:?}"));
        let key: HeaderName = name.parse().map_err(wrong)?;
        let values = match &value {
            Value::Array(values) => values.clone(),
            one => vec![one.clone()],
        };
        for value in values {
            map.append(&key, field(key.as_str(), &value, since)?);
        }
    }
    Ok(map)
}

async fn steps(row: &Value, shared: bool) -> RowResult {
    let start = Instant::now();
    let origin = Origin::new();
    // Limits of memory are not what the rows are about.
    let store = MemoryStore::new(1 << 30);
    let mut layer = ConditionalCacheLayer::new()
        .store(store.clone())
        .max_body(64 << 20)
        .clock(Arc::new(PausedClock::new(wall())));
    if shared {
        layer = layer.shared();
    }
    if optional(&row["config"], "default_ttl").is_some() {
        let ttl = whole(&row["config"], "default_ttl")?;
        layer = layer.default_ttl(Duration::from_secs(ttl));
    }
    let client = layer.layer(origin.service.clone());
    let steps = list(row, "steps")?;
    let mut size = None;
    for (index, step) in steps.iter().enumerate() {
        let at = start + Duration::from_secs_f64(step["at"].as_f64().unwrap_or(0.0));
        tokio::time::sleep_until(at).await;
        if step["action"].is_string() {
            continue;
        }
        for _ in 0..step["repeat"].as_u64().unwrap_or(1) {
            origin.begin(&step["origin"], &row["refetch_origin"]);
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
            let background = origin.asked().len() - answered;
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
    let uri = match optional(asked, "url") {
        Some(url) => any_text(url)?.to_owned(),
        None => format!("http://site.example{}", text(asked, "path")?),
    };
    let mut request = Request::builder()
        .method(asked["method"].as_str().unwrap_or("GET"))
        .uri(uri)
        .body(Empty::new())
        .map_err(|why| unknown(format_args!("the request: {why}")))?;
    *request.headers_mut() = fields(&asked["headers"], start.elapsed())?;
    let sent = Instant::now();
    let answer = client.oneshot(request).await;
    let elapsed = sent.elapsed().as_secs_f64();
    let before = origin.asked();
    let accepted = accepted(expect)?;
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
    if let Some(first) = before.first() {
        for (name, value) in pairs(&expect["forwarded_headers"])? {
            let sent: Vec<&str> = first
                .headers
                .get_all(&name)
                .iter()
                .filter_map(|v| v.to_str().ok())
                .collect();
            let fits = match &value {
                Value::Null => sent.is_empty(),
                Value::String(text) => sent.contains(&&**text) || sent.join(", ") == *text,
                other => sent.join(", ") == field(&name, other, start.elapsed())?,
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
    let last = before.last().and_then(|entry| entry.status);
    let last = last.map(|status| status.as_u16());
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
    if !wanted.is_null() && !broke && enough == u64::MAX && bytes(wanted)? != read {
        return Err(format!(
            "body {:?}",
            String::from_utf8_lossy(&read[..read.len().min(80)])
        ));
    }
    if !expect["not_body"].is_null() && bytes(&expect["not_body"])? == read {
        return Err("the body that it must not have".into());
    }
    let now = origin.asked().len();
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
    for (name, wanted) in pairs(&expect["headers"])? {
        let found = values(&name);
        let fits = match &wanted {
            Value::Null => !found.is_empty(),
            Value::String(text) => found.join(", ") == *text,
            Value::Array(lines) => {
                let lines: Vec<&str> = lines.iter().map(any_text).collect::<Result<_, _>>()?;
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
            other => found.join(", ") == field(&name, other, start.elapsed())?,
        };
        if !fits {
            return Err(format!("{name}: {found:?}, not {wanted}"));
        }
    }
    for name in expect["headers_missing"].as_array().into_iter().flatten() {
        let (name, value) = match name {
            Value::String(name) => (&**name, None),
            pair => (any_text(&pair[0])?, pair[1].as_str()),
        };
        let found = values(name);
        if value.map_or(!found.is_empty(), |value| {
            found.iter().any(|f| f.contains(value))
        }) {
            return Err(format!("{name}: {found:?}"));
        }
    }
    for (name, max) in pairs(&expect["header_max"])? {
        let max = max
            .as_f64()
            .ok_or_else(|| unknown(format_args!("the header {name} of at most {max}")))?;
        let found = values(&name);
        let over = found
            .first()
            .is_some_and(|text| text.parse::<f64>().ok().is_none_or(|value| value > max));
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
