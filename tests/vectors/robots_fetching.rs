//! robots.txt: what an answer to the request for it means, played through the robots layer on paused time.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::decide::robots_txt::RobotsPolicy;
use etiquette_robots::{ProductToken, Robots};
use etiquette_tests::vectors::{Report, rows};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::Empty;
use serde_json::{Value, json};
use tower::{Layer, ServiceExt, service_fn};
use tower_etiquette::{BoxError, Clock, Facts, Identity, PausedClock, Refusal, RobotsLayer};

const FILE: &str = "robots/fetching.json";
const ORIGIN: &str = "https://www.example.com";

pub(crate) fn play(report: &mut Report) {
    for row in rows(FILE, "") {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        report.row(FILE, &id, runtime.block_on(fetching(&row)));
    }
}

/// A site that answers one robots.txt after another, and 200 to anything else.
#[derive(Debug, Default)]
struct Site {
    answers: Mutex<Vec<Value>>,
    asked: Mutex<Vec<String>>,
}

impl Site {
    /// The answer to the next request for a robots.txt: the last one is given for ever.
    fn answer(&self, uri: &str) -> Value {
        self.asked.lock().unwrap().push(uri.to_owned());
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers.first().cloned().unwrap_or(Value::Null)
        }
    }

    fn readings(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn fetching(row: &Value) -> Result<(), String> {
    let given = &row["given"];
    let site = Arc::new(Site::default());
    let clock: Arc<dyn Clock> = Arc::new(PausedClock::new(
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_076_000),
    ));
    let max_life = Duration::from_secs(row["config"]["max_life_s"].as_u64().unwrap_or(3600));
    let layer = RobotsLayer::with_identity(identity())
        .policy(RobotsPolicy::default().max_life(max_life))
        .clock(Arc::clone(&clock));
    let client = Client {
        layer,
        site: Arc::clone(&site),
    };

    if let Some(page) = given["page"].as_str() {
        *site.answers.lock().unwrap() = vec![json!({"status": 404})];
        client.ask(page).await.map_err(|e| e.to_string())?;
        // The page itself, where it is a robots.txt, is no reading of one.
        let first = site.asked.lock().unwrap().first().cloned();
        let first = first.filter(|asked| asked != page);
        return expect(&row["expect"]["fetch"], &json!(first));
    }
    if let Some(days) = given["unreachable_days"].as_u64() {
        *site.answers.lock().unwrap() = vec![json!({"error": "dns"})];
        for _ in 0..days {
            let _ = client.ask(&format!("{ORIGIN}/x")).await;
            tokio::time::advance(Duration::from_secs(86_400)).await;
        }
    } else {
        *site.answers.lock().unwrap() = answers(given);
    }

    let cached = &given["cached"];
    if cached.is_object() {
        let mut first =
            json!({"status": 200, "body": cached["body"], "headers": cached["headers"]});
        if let Some(etag) = cached["etag"].as_str() {
            first["headers"] = json!({"etag": etag});
        }
        site.answers.lock().unwrap().insert(0, first);
        let _ = client.ask(&format!("{ORIGIN}/x")).await;
        tokio::time::advance(Duration::from_secs(cached["age_s"].as_u64().unwrap_or(0))).await;
    }
    let before = site.readings();
    let outcome = client.outcome(given).await?;
    let read_again = site.readings() > before;
    if given.get("status").is_some_and(Value::is_null) && read_again {
        return Err("robots.txt was asked for again".to_owned());
    }

    let accepted = match &row["expect"] {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let fits = accepted.iter().any(|expected| match expected.as_str() {
        Some("refetch") => read_again,
        Some("disallow_all_until_retry") => {
            let least = given["headers"]["retry-after"]
                .as_str()
                .and_then(|v| v.parse().ok())
                .unwrap_or(1);
            let at = clock.now().wall + Duration::from_secs(least);
            matches!(&outcome, Outcome::Closed(Some(retry_at)) if *retry_at >= at)
        }
        Some("disallow_all") => matches!(outcome, Outcome::Closed(_)),
        Some("allow_all") => outcome == Outcome::AllowAll,
        Some("report_unusable") => outcome == Outcome::Unusable,
        Some("rules") => match &outcome {
            Outcome::Rules(allowed) => *allowed == by_the_rules(given),
            // A file without rules forbids nothing.
            Outcome::AllowAll | Outcome::Unusable => {
                by_the_rules(given).iter().all(|&allowed| allowed)
            }
            Outcome::Closed(_) => false,
        },
        other => panic!("unknown expectation {other:?}"),
    });
    // An unusable file is reported and still allows all.
    let fits = fits || (outcome == Outcome::Unusable && accepted.contains(&json!("allow_all")));
    if fits {
        Ok(())
    } else {
        Err(format!("expected {}, came {outcome:?}", row["expect"]))
    }
}

fn expect(expected: &Value, came: &Value) -> Result<(), String> {
    if expected == came {
        Ok(())
    } else {
        Err(format!("expected {expected}, came {came}"))
    }
}

fn identity() -> Identity {
    Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .build()
        .expect("a valid identity")
}

/// The answers to the requests that one reading makes.
fn answers(given: &Value) -> Vec<Value> {
    let location = |hop: u64| match given["location"].as_str() {
        Some(url) => url.to_owned(),
        None => format!("/hop{hop}"),
    };
    let hop = |to: String| json!({"status": given["status"], "headers": {"location": to}});
    match &given["redirects"] {
        Value::String(_) => vec![hop("/robots.txt".to_owned())],
        Value::Number(n) => {
            let mut answers: Vec<Value> = (1..=n.as_u64().unwrap_or(0))
                .map(|n| hop(location(n)))
                .collect();
            answers.push(given["then"].clone());
            answers
        }
        _ => vec![given.clone()],
    }
}

/// The rules that hold: those of the last answer that has any, or of the copy.
fn by_the_rules(given: &Value) -> Vec<bool> {
    let source = [given, &given["then"], &given["cached"]]
        .into_iter()
        .find(|v| v["body"].is_string() || v["body_parts"].is_array())
        .cloned()
        .unwrap_or(Value::Null);
    let robots = Robots::parse(&body(&source));
    let token = ProductToken::try_from("ExampleBot").expect("a valid token");
    PROBES
        .iter()
        .map(|path| robots.group(&token).check(path.as_bytes()).allowed())
        .collect()
}

/// Paths that are asked for to see what holds.
const PROBES: &[&str] = &["/p", "/p/q", "/", "/x", "/a", "/b?c"];

fn body(answer: &Value) -> Vec<u8> {
    match &answer["body_parts"] {
        Value::Array(parts) => {
            let text = |part: &Value| {
                part[0]
                    .as_str()
                    .unwrap_or_default()
                    .repeat(part[1].as_u64().unwrap_or(1) as usize)
            };
            parts.iter().map(text).collect::<String>().into_bytes()
        }
        _ => answer["body"]
            .as_str()
            .unwrap_or_default()
            .as_bytes()
            .to_vec(),
    }
}

#[derive(Debug, PartialEq)]
enum Outcome {
    AllowAll,
    Unusable,
    Rules(Vec<bool>),
    Closed(Option<SystemTime>),
}

struct Client {
    layer: RobotsLayer,
    site: Arc<Site>,
}

impl Client {
    async fn ask(&self, url: &str) -> Result<Response<SiteBody>, BoxError> {
        let site = Arc::clone(&self.site);
        let inner = service_fn(move |request: Request<Empty<Bytes>>| {
            let site = Arc::clone(&site);
            async move { respond(&site, &request) }
        });
        let request = Request::get(url)
            .header("user-agent", identity().user_agent(Default::default()))
            .body(Empty::new())?;
        self.layer.layer(inner).oneshot(request).await
    }

    async fn outcome(&self, given: &Value) -> Result<Outcome, String> {
        let origin = given["request_url"].as_str().unwrap_or(ORIGIN);
        let mut allowed = Vec::new();
        let mut unusable = false;
        for path in PROBES {
            match self.ask(&format!("{origin}{path}")).await {
                Ok(response) => {
                    let facts = Facts::of(&response).and_then(Facts::robots).cloned();
                    unusable |= facts
                        .and_then(|f| f.robots().map(|r| r.unusable().is_some()))
                        .unwrap_or(false);
                    allowed.push(true);
                }
                Err(error) => match Refusal::find(error.as_ref()) {
                    Some(Refusal::Disallowed(_)) => allowed.push(false),
                    Some(Refusal::RobotsUnreachable(leaf)) => {
                        return Ok(Outcome::Closed(leaf.retry_at));
                    }
                    _ => return Err(format!("unexpected error: {error}")),
                },
            }
        }
        Ok(if unusable {
            Outcome::Unusable
        } else if allowed.iter().all(|&a| a) {
            Outcome::AllowAll
        } else {
            Outcome::Rules(allowed)
        })
    }
}

fn respond(site: &Site, request: &Request<Empty<Bytes>>) -> Result<Response<SiteBody>, BoxError> {
    let path = request.uri().path();
    if PROBES.contains(&request.uri().path_and_query().map_or("/", |p| p.as_str()))
        && path != "/robots.txt"
    {
        return Ok(Response::new(SiteBody::new(Vec::new(), false)));
    }
    if path == "/x" {
        return Ok(Response::new(SiteBody::new(Vec::new(), false)));
    }
    let answer = site.answer(&request.uri().to_string());
    let cut = match answer["error"].as_str() {
        None => false,
        Some("incomplete_body") => true,
        Some(other) => return Err(SiteError(other.to_owned()).into()),
    };
    let status = answer["status"].as_u64().unwrap_or(200);
    let mut response = Response::builder().status(u16::try_from(status)?);
    for (name, value) in answer["headers"].as_object().into_iter().flatten() {
        response = response.header(name, value.as_str().unwrap_or_default());
    }
    Ok(response.body(SiteBody::new(body(&answer), cut))?)
}

#[derive(Debug)]
struct SiteError(String);

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for SiteError {}

/// A body that ends, or breaks off.
struct SiteBody {
    data: Option<Bytes>,
    cut: bool,
}

impl SiteBody {
    fn new(data: Vec<u8>, cut: bool) -> Self {
        Self {
            data: Some(data.into()),
            cut,
        }
    }
}

impl http_body::Body for SiteBody {
    type Data = Bytes;
    type Error = SiteError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SiteError>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let cut = std::mem::take(&mut self.cut);
        Poll::Ready(cut.then(|| Err(SiteError("the connection was closed".to_owned()))))
    }
}
