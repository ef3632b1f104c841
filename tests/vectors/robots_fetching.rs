//! robots.txt: what an answer to the request for it means, played through the robots layer on paused time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use etiquette_core::decide::robots_txt::RobotsPolicy;
use etiquette_robots::{ProductToken, Robots};
use etiquette_tests::client::{Page, fetch, get, identity};
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Arrival, Script, Site, SiteService};
use etiquette_tests::vectors::Kind::{Any, List, Number, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, RowResult, Vectors, any_text, headers, list, only_keys, optional, same, unknown,
    whole,
};
use serde_json::{Value, json};
use tower::Layer;
use tower_etiquette::{BoxError, Clock, Refusal, RobotsLayer};

const FILE: &str = "robots/fetching.json";
const ORIGIN: &str = "https://www.example.com";

pub(crate) fn play(vectors: &Vectors, report: &mut Report) {
    for row in vectors.rows(FILE, "") {
        report.play(FILE, &row, |row| paused::run(fetching(row)));
    }
}

/// What a row may say about answers.
const GIVEN: &[(&str, Kind)] = &[
    ("status", Number),
    ("error", Text),
    ("headers", Object),
    ("body", Text),
    ("body_parts", List),
    ("redirects", Any),
    ("then", Object),
    ("location", Text),
    ("cached", Object),
    ("page", Text),
    ("unreachable_days", Number),
    ("request_url", Text),
    // For the reader: how the request was named.
    ("request_user_agent", Text),
];

const CACHED: &[(&str, Kind)] = &[
    ("age_s", Number),
    ("body", Text),
    ("headers", Object),
    ("etag", Text),
];

const ROW: &[(&str, Kind)] = &[
    ("id", Text),
    ("given", Object),
    ("config", Object),
    ("expect", Any),
];

/// Ends of a request without an answer, beside `incomplete_body`. To a crawler they are all the same.
const ERRORS: &[&str] = &[
    "closed",
    "connect",
    "connect_timeout",
    "connection_refused",
    "connection_reset",
    "dns",
    "read_timeout",
    "timeout",
    "tls",
];

/// A site that answers one request for a robots.txt after another, the last answer for ever, and 200 to anything else.
#[derive(Clone)]
struct Client {
    service: SiteService,
    layer: RobotsLayer,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Client {
    fn new(layer: RobotsLayer) -> Self {
        let answers: Arc<Mutex<VecDeque<Answer>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let script = {
            let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
            Script::call(move |arrival: &Arrival| {
                if is_probe(arrival) {
                    return Answer::status(200);
                }
                asked.lock().unwrap().push(arrival.uri.to_string());
                let mut answers = answers.lock().unwrap();
                let last = answers.len() <= 1;
                let answer = if last {
                    answers.front().cloned()
                } else {
                    answers.pop_front()
                };
                answer.unwrap_or_else(|| Answer::status(200))
            })
        };
        Self {
            service: Site::builder().otherwise(script).in_process(),
            layer,
            answers,
            asked,
        }
    }

    fn will_answer(&self, answers: impl IntoIterator<Item = Answer>) {
        *self.answers.lock().unwrap() = answers.into_iter().collect();
    }

    /// The URLs that were asked for a robots.txt.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn ask(&self, url: &str) -> Result<Page, BoxError> {
        let mut request = get(url);
        let name = identity().user_agent(Default::default()).clone();
        request.headers_mut().insert("user-agent", name);
        fetch(self.layer.layer(self.service.clone()), request).await
    }

    async fn outcome(&self, given: &Value) -> Result<Outcome, String> {
        let origin = given["request_url"].as_str().unwrap_or(ORIGIN);
        let mut allowed = Vec::new();
        let mut unusable = false;
        for path in PROBES {
            match self.ask(&format!("{origin}{path}")).await {
                Ok(page) => {
                    let robots = page.facts.robots().and_then(|facts| facts.robots());
                    unusable |= robots.is_some_and(|robots| robots.unusable().is_some());
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

/// Whether a page is asked for to see what holds.
fn is_probe(arrival: &Arrival) -> bool {
    PROBES.contains(&arrival.target.as_str())
}

async fn fetching(row: &Value) -> RowResult {
    only_keys(row, "the row", ROW)?;
    only_keys(&row["config"], "config", &[("max_life_s", Number)])?;
    let given = &row["given"];
    only_keys(given, "given", GIVEN)?;
    let max_life = match optional(&row["config"], "max_life_s") {
        Some(_) => whole(&row["config"], "max_life_s")?,
        None => 3_600,
    };
    let clock: Arc<dyn Clock> = paused::clock_at(1_796_076_000);
    let layer = RobotsLayer::with_identity(identity())
        .policy(RobotsPolicy::default().max_life(Duration::from_secs(max_life)))
        .clock(Arc::clone(&clock));
    let client = Client::new(layer);

    if let Some(page) = given["page"].as_str() {
        only_keys(&row["expect"], "expect", &[("fetch", Any)])?;
        client.will_answer([Answer::status(404)]);
        client.ask(page).await.map_err(|e| e.to_string())?;
        // The page itself, where it is a robots.txt, is no request of the layer's own.
        let first = client.asked().first().cloned();
        let first = first.filter(|asked| asked != page);
        return same(&row["expect"]["fetch"], &json!(first));
    }
    if optional(given, "unreachable_days").is_some() {
        client.will_answer([Answer::hang_up()]);
        for _ in 0..whole::<u64>(given, "unreachable_days")? {
            let _ = client.ask(&format!("{ORIGIN}/x")).await;
            tokio::time::advance(Duration::from_secs(86_400)).await;
        }
    } else {
        client.will_answer(answers(given)?);
    }

    if let Some(cached) = optional(given, "cached") {
        only_keys(cached, "cached", CACHED)?;
        let mut first = json!({"body": cached["body"], "headers": cached["headers"]});
        if let Some(etag) = cached["etag"].as_str() {
            first["headers"]["etag"] = etag.into();
        }
        client.answers.lock().unwrap().push_front(answer(&first)?);
        let _ = client.ask(&format!("{ORIGIN}/x")).await;
        let age = match optional(cached, "age_s") {
            Some(_) => whole(cached, "age_s")?,
            None => 0,
        };
        tokio::time::advance(Duration::from_secs(age)).await;
    }
    let before = client.asked().len();
    let outcome = client.outcome(given).await?;
    let asked_again = client.asked().len() > before;
    if given.get("status").is_some_and(Value::is_null) && asked_again {
        return Err("robots.txt was asked for again".to_owned());
    }

    let accepted = match &row["expect"] {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let mut fits = false;
    for expected in &accepted {
        fits |= match any_text(expected)? {
            "refetch" => asked_again,
            "disallow_all_until_retry" => {
                let least = given["headers"]["retry-after"]
                    .as_str()
                    .and_then(|v| v.parse().ok())
                    .unwrap_or(1);
                let at = clock.now().wall + Duration::from_secs(least);
                matches!(&outcome, Outcome::Closed(Some(retry_at)) if *retry_at >= at)
            }
            "disallow_all" => matches!(outcome, Outcome::Closed(_)),
            // An unusable file is reported and still allows all.
            "allow_all" => matches!(outcome, Outcome::AllowAll | Outcome::Unusable),
            "report_unusable" => outcome == Outcome::Unusable,
            "rules" => match &outcome {
                Outcome::Rules(allowed) => *allowed == by_the_rules(given)?,
                // A file without rules forbids nothing.
                Outcome::AllowAll | Outcome::Unusable => {
                    by_the_rules(given)?.iter().all(|&allowed| allowed)
                }
                Outcome::Closed(_) => false,
            },
            other => return Err(unknown(other)),
        };
    }
    if fits {
        Ok(())
    } else {
        Err(format!("expected {}, came {outcome:?}", row["expect"]))
    }
}

/// The answers to the requests that one look at a robots.txt takes.
fn answers(given: &Value) -> Result<Vec<Answer>, String> {
    let hop = |to: &str| Ok::<_, String>(status(given)?.header("location", to));
    match &given["redirects"] {
        Value::Null => Ok(vec![answer(given)?]),
        Value::String(endless) if endless == "loop" => Ok(vec![hop("/robots.txt")?]),
        Value::Number(_) => {
            let mut answers = Vec::new();
            for number in 1..=whole::<u64>(given, "redirects")? {
                let next = format!("/hop{number}");
                answers.push(hop(given["location"].as_str().unwrap_or(&next))?);
            }
            only_keys(&given["then"], "then", GIVEN)?;
            answers.push(answer(&given["then"])?);
            Ok(answers)
        }
        other => Err(unknown(format_args!("redirects are {other}"))),
    }
}

/// The status of an answer; 200 where the row says none.
fn status(answer: &Value) -> Result<Answer, String> {
    let status = match optional(answer, "status") {
        Some(_) => whole(answer, "status")?,
        None => 200,
    };
    Ok(Answer::status(status).literally())
}

fn answer(given: &Value) -> Result<Answer, String> {
    let answer = status(given)?
        .headers(&headers(&given["headers"])?)
        .body(body(given)?);
    match given["error"].as_str() {
        None => Ok(answer),
        Some("incomplete_body") => Ok(answer.breaks_off()),
        Some(error) if ERRORS.contains(&error) => Ok(Answer::hang_up()),
        Some(other) => Err(unknown(format_args!("the error {other:?}"))),
    }
}

/// The rules that hold: those of the last answer that has any, or of the copy.
fn by_the_rules(given: &Value) -> Result<Vec<bool>, String> {
    let source = [given, &given["then"], &given["cached"]]
        .into_iter()
        .find(|v| v["body"].is_string() || v["body_parts"].is_array());
    let robots = Robots::parse(&body(source.unwrap_or(&Value::Null))?);
    let token = ProductToken::try_from("ExampleBot").expect("a valid token");
    let group = robots.group(&token);
    let allowed = PROBES
        .iter()
        .map(|path| group.check(path.as_bytes()).allowed());
    Ok(allowed.collect())
}

/// Paths that are asked for to see what holds.
const PROBES: &[&str] = &["/p", "/p/q", "/", "/x", "/a", "/b?c"];

fn body(answer: &Value) -> Result<Vec<u8>, String> {
    if optional(answer, "body_parts").is_none() {
        let body = optional(answer, "body").map_or(Ok(""), any_text)?;
        return Ok(body.as_bytes().to_vec());
    }
    let mut body = String::new();
    for part in list(answer, "body_parts")? {
        let times = part[1].as_u64().unwrap_or(1) as usize;
        body.push_str(&any_text(&part[0])?.repeat(times));
    }
    Ok(body.into_bytes())
}

#[derive(Debug, PartialEq)]
enum Outcome {
    AllowAll,
    Unusable,
    Rules(Vec<bool>),
    Closed(Option<SystemTime>),
}
