//! The suite's client: what it sends, and what it checks.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::Refusal;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::{Service, ServiceExt, service_fn};
use tower_etiquette::conditional_cache::{ConditionalCacheLayer, Heuristic};
use tower_etiquette::{BoxError, PausedClock};
use tower_layer::Layer;

use crate::origin::{Origin, UUID, is_date, value, wall};
use crate::verdict::Outcome;

/// Plays one test on a fresh cache and in time of its own.
pub(crate) fn play(test: &Value) -> Outcome {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(run(test))
}

async fn run(test: &Value) -> Outcome {
    let origin = Origin::new(test);
    let site = {
        let origin = origin.clone();
        service_fn(move |request| origin.clone().answer(request))
    };
    let mut gateway = ConditionalCacheLayer::new()
        .shared()
        .heuristic(Heuristic::tenth())
        .clock(Arc::new(PausedClock::new(wall())))
        .layer(site);
    let definitions = test["requests"].as_array().unwrap();
    let mut received = Vec::new();
    let mut server_now = origin.now();
    for (index, definition) in definitions.iter().enumerate() {
        let request = request(test, definition, index + 1, server_now);
        let response = match gateway.ready().await.unwrap().call(request).await {
            Ok(response) => response.map(|body| body.boxed_unsync()),
            Err(error) => {
                gateway_error(&error).map(|body| body.map_err(|e| match e {}).boxed_unsync())
            }
        };
        let (parts, body) = response.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Outcome::Setup(format!("body: {error}")),
        };
        if let Some(now) = number(&parts.headers, "server-now") {
            server_now = SystemTime::UNIX_EPOCH + Duration::from_millis(now);
        }
        let check = Check {
            definition,
            index: index + 1,
            response: &Response::from_parts(parts.clone(), body),
            server_now,
        };
        if let Err(outcome) = check.all() {
            return outcome;
        }
        received.push(parts.headers);
        if definition["pause_after"] == true {
            tokio::time::sleep(Duration::from_secs(3)).await;
        } else {
            // Real time passes between two requests; paused time does not.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    match check_state(definitions, &origin, &received) {
        Ok(()) => Outcome::Holds,
        Err(outcome) => outcome,
    }
}

/// What a gateway makes of an error.
fn gateway_error(error: &BoxError) -> Response<Full<Bytes>> {
    let status = match Refusal::find(&**error) {
        Some(Refusal::NotStored(_)) => 504,
        _ => 502,
    };
    Response::builder()
        .status(status)
        .body(Full::default())
        .unwrap()
}

fn request(
    test: &Value,
    definition: &Value,
    index: usize,
    server_now: SystemTime,
) -> Request<Full<Bytes>> {
    let mut uri = format!("http://site.example/test/{UUID}");
    if let Some(file) = definition["filename"].as_str() {
        uri += &format!("/{file}");
    }
    if let Some(query) = definition["query_arg"].as_str() {
        uri += &format!("?{query}");
    }
    let body = definition["request_body"].as_str();
    let mut request = Request::builder()
        .method(definition["request_method"].as_str().unwrap_or("GET"))
        .uri(uri)
        .body(body.map_or_else(Full::default, |text| Full::from(text.to_owned())))
        .unwrap();
    let headers = request.headers_mut();
    let mut add = |name: &str, value: HeaderValue| {
        let name: HeaderName = name.parse().unwrap();
        let joined = match headers.get(&name) {
            Some(old) => [old.as_bytes(), b", ", value.as_bytes()].concat(),
            None => value.as_bytes().to_vec(),
        };
        headers.insert(name, HeaderValue::from_bytes(&joined).unwrap());
    };
    add("Pragma", HeaderValue::from_static("foo"));
    add(
        "Cache-Control",
        HeaderValue::from_static("nothing-to-see-here"),
    );
    for line in definition["request_headers"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let name = line[0].as_str().unwrap();
        add(name, value(definition, name, &line[1], server_now));
    }
    add("Test-Name", HeaderValue::from_static("test"));
    add("Test-ID", test["id"].as_str().unwrap().parse().unwrap());
    add("Req-Num", index.into());
    for (name, value) in [
        ("accept", "*/*"),
        ("accept-language", "*"),
        ("sec-fetch-mode", "cors"),
        ("user-agent", "node"),
        ("accept-encoding", "gzip, deflate"),
    ] {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    request
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// All lines of a field, joined as a client shows them.
fn shown(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines: Vec<String> = headers
        .get_all(name)
        .iter()
        .map(|value| value.as_bytes().iter().map(|&b| char::from(b)).collect())
        .collect();
    (!lines.is_empty()).then(|| lines.join(", "))
}

struct Check<'a> {
    definition: &'a Value,
    index: usize,
    response: &'a Response<Bytes>,
    server_now: SystemTime,
}

/// What is expected of a field.
enum Wish {
    Present,
    Equal(String),
    SameAs(String),
    Above(i64),
}

impl Check<'_> {
    fn all(&self) -> Result<(), Outcome> {
        self.kind()?;
        self.status()?;
        self.fields()?;
        self.interim()?;
        self.body()
    }

    /// An assertion, or a matter of setup if the definition says so.
    fn ensure(
        &self,
        field: &str,
        holds: bool,
        why: impl FnOnce() -> String,
    ) -> Result<(), Outcome> {
        let definition = self.definition;
        if holds {
            return Ok(());
        }
        let setup = definition["setup"] == true
            || definition["setup_tests"]
                .as_array()
                .is_some_and(|names| names.iter().any(|name| name == field));
        let why = format!("request {}: {}", self.index, why());
        Err(if setup {
            Outcome::Setup(why)
        } else {
            Outcome::Fails(why)
        })
    }

    fn always_setup(&self, holds: bool, why: impl FnOnce() -> String) -> Result<(), Outcome> {
        if holds {
            Ok(())
        } else {
            Err(Outcome::Setup(format!("request {}: {}", self.index, why())))
        }
    }

    fn kind(&self) -> Result<(), Outcome> {
        let headers = self.response.headers();
        let numbers = shown(headers, "request-numbers").unwrap_or_default();
        let mut all: Vec<&str> = numbers.split(' ').collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        self.always_setup(all.len() == count, || format!("sent twice: {numbers}"))?;
        let served = number(headers, "server-request-count");
        let index = self.index as u64;
        match self.definition["expected_type"].as_str() {
            Some("cached") => {
                let from_store = match served {
                    Some(count) => count < index,
                    None => self.response.status() == 304,
                };
                self.ensure("expected_type", from_store, || "not cached".to_owned())
            }
            Some("not_cached") => self.ensure("expected_type", served == Some(index), || {
                "cached".to_owned()
            }),
            _ => Ok(()),
        }
    }

    fn status(&self) -> Result<(), Outcome> {
        let status = u64::from(self.response.status().as_u16());
        let definition = self.definition;
        let why = || format!("status {status}");
        match definition.get("expected_status") {
            Some(Value::Null) => Ok(()),
            Some(wanted) => self.ensure("expected_status", wanted.as_u64() == Some(status), why),
            None => match definition["response_status"][0].as_u64() {
                Some(wanted) => self.always_setup(wanted == status, why),
                None if status == 999 => {
                    self.ensure("expected_type", false, || "not conditional".to_owned())
                }
                None => self.always_setup(status == 200, why),
            },
        }
    }

    fn wish(&self, line: &Value) -> (String, Wish) {
        if let Some(name) = line.as_str() {
            return (name.to_owned(), Wish::Present);
        }
        let name = line[0].as_str().unwrap().to_owned();
        let wish = match (&line[1], &line[2]) {
            (Value::String(sign), other) if sign == "=" => {
                Wish::SameAs(other.as_str().unwrap().to_owned())
            }
            (Value::String(sign), limit) if sign == ">" => Wish::Above(limit.as_i64().unwrap()),
            (Value::Number(delta), _) if is_date(&name) => {
                let text = value(
                    self.definition,
                    &name,
                    &Value::Number(delta.clone()),
                    self.server_now,
                );
                Wish::Equal(text.to_str().unwrap().to_owned())
            }
            (Value::String(text), _) => Wish::Equal(text.clone()),
            (other, _) => Wish::Equal(other.to_string()),
        };
        (name, wish)
    }

    fn fields(&self) -> Result<(), Outcome> {
        let headers = self.response.headers();
        for line in self.definition["expected_response_headers"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (name, wish) = self.wish(line);
            let found = shown(headers, &name);
            let holds = match &wish {
                Wish::Present => found.is_some(),
                Wish::Equal(text) => found.as_ref() == Some(text),
                Wish::SameAs(other) => found == shown(headers, other),
                Wish::Above(limit) => found
                    .as_ref()
                    .and_then(|text| text.parse::<i64>().ok())
                    .is_some_and(|value| value > *limit),
            };
            self.ensure("expected_response_headers", holds, || {
                format!("{name}: {found:?}")
            })?;
        }
        for line in self.definition["expected_response_headers_missing"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (name, part) = match line.as_str() {
                Some(name) => (name, None),
                None => (line[0].as_str().unwrap(), line[1].as_str()),
            };
            // The suite never evaluates the form with a value; this runner does.
            let holds = match (shown(headers, name), part) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(found), Some(part)) => !found.contains(part),
            };
            self.ensure("expected_response_headers_missing", holds, || {
                format!("{name} is there")
            })?;
        }
        Ok(())
    }

    fn interim(&self) -> Result<(), Outcome> {
        let none = self.definition["expected_interim_responses"]
            .as_array()
            .is_none_or(Vec::is_empty);
        self.ensure("expected_interim_responses", none, || {
            "no interim response".to_owned()
        })
    }

    fn body(&self) -> Result<(), Outcome> {
        let definition = self.definition;
        if definition["check_body"] == false {
            return Ok(());
        }
        let body = self.response.body();
        let why = || format!("body {body:?}");
        if let Some(wanted) = definition.get("expected_response_text") {
            let holds = wanted.as_str().is_none_or(|text| text.as_bytes() == body);
            return self.ensure("expected_response_text", holds, why);
        }
        if let Some(wanted) = definition["response_body"].as_str() {
            return self.always_setup(wanted.as_bytes() == body, why);
        }
        let bare = matches!(self.response.status().as_u16(), 204 | 304)
            || definition["request_method"] == "HEAD";
        self.always_setup(bare || body == UUID.as_bytes(), why)
    }
}

fn check_state(
    definitions: &[Value],
    origin: &Origin,
    received: &[HeaderMap],
) -> Result<(), Outcome> {
    let records = origin.records();
    let mut cursor = records.iter();
    for (index, definition) in definitions.iter().enumerate() {
        let number = index + 1;
        let kind = definition["expected_type"].as_str();
        if kind == Some("cached") {
            continue;
        }
        let check = Check {
            definition,
            index: number,
            response: &Response::new(Bytes::new()),
            server_now: origin.now(),
        };
        let record = cursor.next();
        let saw = |name: &str| record.and_then(|record| shown(&record.headers, name));
        let holds = match kind {
            Some("not_cached") => record.is_some_and(|record| record.number == number),
            Some("etag_validated") => saw("if-none-match").is_some(),
            Some("lm_validated") => saw("if-modified-since").is_some(),
            _ => true,
        };
        check.ensure("expected_type", holds, || {
            format!("{} is not what the origin saw", kind.unwrap_or(""))
        })?;
        for line in definition["expected_request_headers"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (name, wish) = check.wish(line);
            let found = saw(&name);
            let holds = match wish {
                Wish::Equal(text) => found.as_ref() == Some(&text),
                _ => found.is_some(),
            };
            check.ensure("expected_request_headers", holds, || {
                format!("the origin saw {name}: {found:?}")
            })?;
        }
        for line in definition["expected_request_headers_missing"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let (name, wish) = check.wish(line);
            let holds = match (saw(&name), wish) {
                (None, _) => true,
                (found, Wish::Equal(text)) => found != Some(text),
                _ => false,
            };
            check.ensure("expected_request_headers_missing", holds, || {
                format!("the origin saw {name}")
            })?;
        }
        if let Some(method) = definition["expected_method"].as_str() {
            let holds = record.is_some_and(|record| record.method == method);
            check.ensure("expected_method", holds, || "another method".to_owned())?;
        }
        for (name, _) in record.iter().flat_map(|record| &record.remembered) {
            if name == "date" {
                continue;
            }
            let sent: Vec<String> = record
                .unwrap()
                .remembered
                .iter()
                .filter(|(other, _)| other == name)
                .map(|(_, value)| value.as_bytes().iter().map(|&b| char::from(b)).collect())
                .collect();
            let found = shown(&received[index], name.as_str());
            check.always_setup(found.as_deref() == Some(&sent.join(", ")), || {
                format!("{name}: {found:?}")
            })?;
        }
    }
    Ok(())
}
