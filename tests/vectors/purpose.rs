//! `user_agent/purpose.json`: why a request is made, played through the whole stack on paused time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::host::HostPolicy;
use etiquette_core::vocabulary::purpose::{Api, ApiKey, ApiLimit};
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Entry, Script, Site, SiteService};
use etiquette_tests::vectors::Kind::{List, Number, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, RowResult, Vectors, headers, in_our_words, list, number, only_keys, optional,
    same, text, unknown, whole,
};
use http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::time::sleep;
use tower::ServiceExt;
use tower_etiquette::purpose::{PurposeKind, RobotsScope};
use tower_etiquette::{
    BoxError, Etiquette, Facts, Hosts, Identity, Purpose, Refusal, Session, UserGrant,
};

const FILE: &str = "user_agent/purpose.json";

/// The vectors' words and ours, as keys of a row. A row may use either.
const WORDS: &[(&str, &str)] = &[("min_gap_s", "min_delay_s")];

/// The vectors' words and ours in the verbs and results of steps: `permit x30`, `refused:not_the_permitted_url`.
const WORDS_OF_STEPS: &[(&str, &str)] = &[
    ("not_the_permitted_url", "not_the_granted_url"),
    ("too_many_permits", "too_many_grants"),
    ("no_permit", "no_grant"),
    ("permit", "grant"),
];

pub(crate) fn play(vectors: &Vectors, report: &mut Report) {
    for document in vectors.documents(FILE) {
        for row in document["cases"].as_array().expect("cases is a list") {
            if expects_no_grant(row) {
                let id = row["id"].as_str().unwrap_or("?");
                report.left_out(
                    FILE,
                    id,
                    "no `Purpose::UserFetch` can be made without a grant",
                );
                continue;
            }
            report.play(FILE, row, |row| {
                let identity = identity(&document["identity"])?;
                paused::run(case(identity, &in_our_words(row, WORDS)))
            });
        }
    }
}

/// Whether a step is to be refused because there is no grant.
fn expects_no_grant(row: &Value) -> bool {
    let steps = steps(row).unwrap_or_default();
    steps.iter().any(|step| step.result == "refused:no_grant")
}

fn identity(names: &Value) -> Result<Identity, String> {
    let page = "https://www.example.com/bot.html";
    let builder = Identity::builder(text(names, "crawl_token")?, "0.1", page);
    let builder = builder.user_token(text(names, "user_token")?);
    builder.build().map_err(|error| error.to_string())
}

async fn case(identity: Identity, row: &Value) -> RowResult {
    match text(row, "kind")? {
        "robots" => robots(identity, row).await,
        "navigation" => navigation(identity, row).await,
        "retention" => retention(identity, row).await,
        other => Err(unknown(format_args!("the kind {other:?}"))),
    }
}

/// All sites of a row: what they answer, and what they saw.
#[derive(Clone)]
struct Sites {
    service: SiteService,
    answers: Arc<Mutex<HashMap<String, VecDeque<Answer>>>>,
    /// From which request on counts, and from when.
    start: Arc<Mutex<(usize, Duration)>>,
}

impl Sites {
    /// Sites that take `answer_time` to the head of each answer.
    fn new(answer_time: Duration) -> Self {
        let answers: Arc<Mutex<HashMap<String, VecDeque<Answer>>>> = Arc::default();
        let script = {
            let answers = Arc::clone(&answers);
            Script::call(move |arrival| {
                let mut answers = answers.lock().unwrap();
                let next = answers.get_mut(&arrival.uri.to_string());
                let scripted = next.and_then(VecDeque::pop_front);
                let answer = scripted.unwrap_or_else(|| match arrival.is_robots_txt() {
                    true => Answer::status(404),
                    false => Answer::status(200).body("a page"),
                });
                answer.after(answer_time).literally()
            })
        };
        Self {
            service: Site::builder().otherwise(script).in_process(),
            answers,
            start: Arc::default(),
        }
    }

    fn script(&self, url: &str, answer: Answer) {
        let mut answers = self.answers.lock().unwrap();
        answers.entry(url.to_owned()).or_default().push_back(answer);
    }

    /// Forgets what was seen and counts time from now.
    fn restart(&self) {
        let log = self.service.log();
        *self.start.lock().unwrap() = (log.entries().len(), log.now());
    }

    /// The requests since the start, with their times since then.
    fn seen(&self) -> Vec<Entry> {
        let (first, start) = *self.start.lock().unwrap();
        let mut seen = self.service.log().entries().split_off(first);
        seen.iter_mut().for_each(|entry| entry.at -= start);
        seen
    }

    /// How often `url` was asked for, and how.
    fn asked(&self, url: &str) -> Vec<Entry> {
        let mut seen = self.seen();
        seen.retain(|entry| entry.uri == *url);
        seen
    }
}

/// The client under test: the whole stack with host state of its own.
#[derive(Clone)]
struct Client {
    service: tower_etiquette::BoxedService<Full<Bytes>>,
}

impl Client {
    fn new(identity: Identity, sites: &Sites, row: &Value) -> Result<Self, String> {
        let delay = seconds(row, "min_delay_s", 1.0)?;
        let hosts = Hosts::new(HostPolicy::new().min_delay(delay).jitter(0.0, 0.0));
        let scope = match row["robots_scope"].as_str() {
            Some("star_and_named") => RobotsScope::StarAndNamed,
            Some("named_only") | None => RobotsScope::default(),
            Some(other) => return Err(unknown(format_args!("the scope {other:?}"))),
        };
        let stack = Etiquette::new(identity)
            .hosts(hosts)
            .robots(|robots| robots.scope(scope));
        Ok(Self {
            service: stack.boxed(sites.service.clone()),
        })
    }

    async fn crawl(&self, url: &str) -> Result<Response<()>, String> {
        let none = HeaderMap::new();
        let answer = self.send(Method::GET, url, Purpose::Crawl, &none).await?;
        answer.map_err(|refusal| refusal.kind().to_owned())
    }

    /// The answer, read to its end, or the refusal.
    async fn send(
        &self,
        method: Method,
        url: &str,
        purpose: Purpose,
        headers: &HeaderMap,
    ) -> Result<Result<Response<()>, Refusal>, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .extension(purpose)
            .body(Full::default())
            .map_err(|_| unknown(format_args!("the URL {url:?}")))?;
        request.headers_mut().extend(headers.clone());
        let failed = |error: BoxError| format!("{url}: {error}");
        let response = match self.service.clone().oneshot(request).await {
            Ok(response) => response,
            Err(error) => {
                return match Refusal::find(&*error) {
                    Some(refusal) => Ok(Err(refusal.clone())),
                    None => Err(failed(error)),
                };
            }
        };
        let (head, body) = response.into_parts();
        body.collect().await.map_err(failed)?;
        Ok(Ok(Response::from_parts(head, ())))
    }
}

/// The number of seconds at `key`, or `default`.
fn seconds(row: &Value, key: &str, default: f64) -> Result<Duration, String> {
    let seconds = match optional(row, key) {
        Some(_) => number(row, key)?,
        None => default,
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| unknown(format_args!("{key} is {seconds}")))
}

fn uri(url: &str) -> Result<Uri, String> {
    url.parse()
        .map_err(|_| unknown(format_args!("the URL {url:?}")))
}

/// What the row declares as an API, if it does.
fn declared(row: &Value) -> Result<Option<Api>, String> {
    let Some(api) = optional(row, "api") else {
        return Ok(None);
    };
    let keys = [
        ("declared", Text),
        ("key_header", Text),
        ("key_query", Text),
    ];
    only_keys(api, "api", &keys)?;
    let key = match (api["key_header"].as_str(), api["key_query"].as_str()) {
        (Some(name), None) => ApiKey::header(header_name(name)?),
        (None, Some(name)) => ApiKey::query(name),
        _ => return Err(unknown(format_args!("the key of {api}"))),
    };
    let limit = ApiLimit::new(NonZeroU32::new(5_000).unwrap(), Duration::from_secs(3_600));
    let api = Api::new(
        text(api, "declared")?,
        key,
        limit,
        "https://site.example/docs",
    );
    api.map(Some).map_err(|error| error.to_string())
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    name.trim()
        .parse()
        .map_err(|_| unknown(format_args!("the header {name:?}")))
}

const ROBOTS: &[(&str, Kind)] = &[
    ("id", Text),
    ("kind", Text),
    ("api", Object),
    ("expect", Text),
    ("path", Text),
    ("purpose", Text),
    ("request_headers", Object),
    ("robots_scope", Text),
    ("robots_status", Number),
    ("robots_txt", Text),
    ("treated_as", Text),
];

async fn robots(identity: Identity, row: &Value) -> RowResult {
    only_keys(row, "the row", ROBOTS)?;
    let sites = Sites::new(Duration::ZERO);
    let file = Answer::status(whole(row, "robots_status")?);
    let file = file.body(text(row, "robots_txt")?.to_owned());
    sites.script("https://site.example/robots.txt", file);
    let client = Client::new(identity, &sites, row)?;
    let url = format!("https://site.example{}", text(row, "path")?);
    let session = Session::new();
    let grant = || session.grant(&uri(&url)?).map_err(|e| e.to_string());
    let kind = |name: &str| match name {
        "crawl" => Ok(PurposeKind::Crawl),
        "user_fetch" => Ok(PurposeKind::UserFetch),
        "api" => Ok(PurposeKind::Api),
        other => Err(unknown(format_args!("the purpose {other:?}"))),
    };
    let asked = text(row, "purpose")?;
    let api = declared(row)?;
    let purpose = match kind(asked)? {
        PurposeKind::UserFetch => Purpose::UserFetch(grant()?),
        PurposeKind::Api => Purpose::Api(api.ok_or_else(|| unknown("no api"))?),
        _ => Purpose::Crawl,
    };
    let headers = headers(&row["request_headers"])?;
    let mut probe = Request::get(&url)
        .extension(purpose.clone())
        .body(())
        .map_err(|_| unknown(format_args!("the path of {url}")))?;
    probe.headers_mut().extend(headers.clone());
    let came = Purpose::kind_of(probe.extensions(), probe.uri(), probe.headers());
    same(&kind(row["treated_as"].as_str().unwrap_or(asked))?, &came)?;
    let answer = client.send(Method::GET, &url, purpose, &headers).await?;
    let verdict = match &answer {
        Ok(_) => "allow",
        Err(refusal) if ["disallowed", "robots_unreachable"].contains(&refusal.kind()) => "deny",
        Err(refusal) => return Err(format!("refused: {}", refusal.kind())),
    };
    match text(row, "expect")? {
        expected @ ("allow" | "deny") => same(expected, verdict)?,
        other => return Err(unknown(other)),
    }
    same(&(verdict == "allow"), &!sites.asked(&url).is_empty())
}

/// A step of a row: `[verb, argument, result]`, each a text or left out.
#[derive(Clone, Debug)]
struct Step {
    verb: String,
    argument: String,
    result: String,
}

impl Step {
    fn is(&self, verb: &str) -> bool {
        self.verb == verb
    }
}

fn steps(row: &Value) -> Result<Vec<Step>, String> {
    let text = |step: &Value, at: usize| {
        let mut text = match &step[at] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        // A URL keeps its words.
        if at != 1 {
            for (theirs, ours) in WORDS_OF_STEPS {
                text = text.replace(theirs, ours);
            }
        }
        text
    };
    list(row, "steps")?
        .iter()
        .map(|step| match step.as_array().map(Vec::len) {
            Some(1..=3) => Ok(Step {
                verb: text(step, 0),
                argument: text(step, 1),
                result: text(step, 2),
            }),
            _ => Err(unknown(format_args!("the step {step}"))),
        })
        .collect()
}

/// The result of a step, taken apart: `sent at 0.05->301:https://…`.
#[derive(Clone, Copy, Debug)]
struct Expected<'a> {
    verdict: Verdict<'a>,
    /// When the request starts: not before, or exactly then.
    at: Option<(bool, f64)>,
    /// What the site answers.
    answer: Option<&'a str>,
    /// The request is a crawl in the end.
    as_crawl: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Verdict<'a> {
    Sent,
    /// Known without a request.
    Cached,
    /// Nothing is sent.
    Refused(&'a str),
}

impl<'a> Expected<'a> {
    fn read(result: &'a str) -> Result<Self, String> {
        let wrong = || unknown(format_args!("the result {result:?}"));
        let (first, answer) = match result.split_once("->") {
            Some((first, answer)) => (first, Some(answer)),
            None => (result, None),
        };
        let (first, as_crawl) = match first.strip_suffix(" as crawl") {
            Some(first) => (first, true),
            None => (first, false),
        };
        let (verdict, at) = match first.split_once(" at ") {
            Some((verdict, at)) => (verdict, Some(at)),
            None => (first, None),
        };
        let at = match at {
            None => None,
            Some(at) => {
                let (least, number) = match at.strip_prefix(">=") {
                    Some(number) => (true, number),
                    None => (false, at),
                };
                Some((least, number.parse().map_err(|_| wrong())?))
            }
        };
        let verdict = match verdict {
            "sent" => Verdict::Sent,
            "cached" => Verdict::Cached,
            other => Verdict::Refused(other.strip_prefix("refused:").ok_or_else(wrong)?),
        };
        Ok(Self {
            verdict,
            at,
            answer,
            as_crawl,
        })
    }

    fn holds_at(&self, url: &str, came: Duration) -> RowResult {
        let came = came.as_secs_f64();
        match self.at {
            Some((true, at)) if came + 0.001 < at => Err(format!("{url} at {came}, before {at}")),
            Some((false, at)) if (came - at).abs() > 0.001 => {
                Err(format!("{url} at {came}, not at {at}"))
            }
            _ => Ok(()),
        }
    }
}

/// Puts what the steps say about answers into the sites.
fn script(sites: &Sites, steps: &[Step]) -> RowResult {
    for step in steps.iter().filter(|step| step.result.contains("->")) {
        let Some(answer) = Expected::read(&step.result)?.answer else {
            continue;
        };
        // A series of redirects, each to a new URL of the site.
        if let Some((status, hops, _)) = series(answer) {
            let base = uri(&step.argument)?;
            let site = base.scheme_str().zip(base.host());
            let (scheme, host) = site.ok_or_else(|| unknown(&base))?;
            let mut from = step.argument.clone();
            for hop in 1..=hops {
                let target = format!("{scheme}://{host}/hop{hop}");
                let redirect = Answer::status(status);
                sites.script(&from, redirect.header(LOCATION.as_str(), &target));
                from = target;
            }
            continue;
        }
        sites.script(&step.argument, answer_of(answer)?);
    }
    Ok(())
}

/// Status and number of redirects in a row, and what comes then: `301 x6; error:too_many_redirects`.
fn series(answer: &str) -> Option<(u16, u32, &str)> {
    let (series, then) = answer.split_once("; ")?;
    let (status, hops) = series.split_once(" x")?;
    Some((status.parse().ok()?, hops.parse().ok()?, then))
}

/// An answer: `STATUS:body` or `STATUS:target`, or `STATUS` and header fields.
fn answer_of(text: &str) -> Result<Answer, String> {
    let (status, rest) = status(text)?;
    let Some(rest) = rest.strip_prefix(':') else {
        return Ok(Answer::status(status).headers(&fields(rest)?));
    };
    Ok(match status {
        300..400 => Answer::status(status).header(LOCATION.as_str(), rest),
        _ => Answer::status(status).body(rest.to_owned()),
    })
}

/// The status that a text begins with, and what comes after it.
fn status(text: &str) -> Result<(u16, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (status, rest) = text.split_at(end.unwrap_or(text.len()));
    match status.parse() {
        Ok(status @ 100..=599) => Ok((status, rest)),
        _ => Err(unknown(format_args!("the answer {text:?}"))),
    }
}

/// Header fields after a status: `name: value, name: value`, or `name=value name=value`, or `etag` for some entity tag.
fn fields(text: &str) -> Result<HeaderMap, String> {
    let text = text.trim();
    let mut fields = HeaderMap::new();
    if text == "etag" {
        fields.insert(ETAG, HeaderValue::from_static("\"1\""));
        return Ok(fields);
    }
    let parts: Vec<(&str, String)> = if text.contains(": ") {
        let mut parts: Vec<(&str, String)> = Vec::new();
        for part in text.split(", ") {
            match (part.split_once(": "), parts.last_mut()) {
                (Some((name, value)), _) => parts.push((name, value.to_owned())),
                // A value with a comma in it goes on.
                (None, Some((_, value))) => *value += &format!(", {part}"),
                (None, None) => return Err(unknown(format_args!("the header fields {text:?}"))),
            }
        }
        parts
    } else {
        let parts = text.split_whitespace().map(|part| {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| unknown(format_args!("the header fields {text:?}")))?;
            Ok((name, value.to_owned()))
        });
        parts.collect::<Result<_, String>>()?
    };
    for (name, value) in parts {
        let wrong = |_| unknown(format_args!("the header {name}: {value}"));
        let value = HeaderValue::from_str(&value).map_err(wrong)?;
        fields.append(header_name(name)?, value);
    }
    Ok(fields)
}

/// Fetches the robots.txt of every host for which no step of the row does, long before the row begins.
async fn know_robots(client: &Client, sites: &Sites, steps: &[Step]) -> RowResult {
    let host = |url: &str| -> Option<String> { Some(url.parse::<Uri>().ok()?.host()?.to_owned()) };
    let asked: HashSet<_> = steps
        .iter()
        .filter(|step| step.is("robots") && !step.result.starts_with("cached"))
        .filter_map(|step| host(&step.argument))
        .collect();
    let hosts: HashSet<_> = steps
        .iter()
        .filter_map(|step| host(&step.argument))
        .collect();
    for host in hosts.difference(&asked) {
        client.crawl(&format!("https://{host}/before")).await?;
    }
    sleep(Duration::from_secs(300)).await;
    sites.restart();
    Ok(())
}

const NAVIGATION: &[(&str, Kind)] = &[
    ("id", Text),
    ("kind", Text),
    ("answer_s", Number),
    ("api", Object),
    ("min_delay_s", Number),
    ("purpose", Text),
    ("robots_scope", Text),
    ("steps", List),
];

async fn navigation(identity: Identity, row: &Value) -> RowResult {
    only_keys(row, "the row", NAVIGATION)?;
    match row["purpose"].as_str() {
        None | Some("api" | "user_fetch") => {}
        Some(other) => return Err(unknown(format_args!("the purpose {other:?}"))),
    }
    let sites = Sites::new(seconds(row, "answer_s", 0.0)?);
    let client = Client::new(identity, &sites, row)?;
    let steps = steps(row)?;
    know_robots(&client, &sites, &steps).await?;
    script(&sites, &steps)?;
    let api = declared(row)?;
    let mut headers = HeaderMap::new();
    if let Some(ApiKey::Header(name)) = api.as_ref().map(Api::key) {
        headers.insert(name.clone(), HeaderValue::from_static("k"));
    }
    let session = Session::new();
    let mut grant: Option<UserGrant> = None;
    let mut at = 0;
    while at < steps.len() {
        let step = &steps[at];
        let url = &step.argument;
        at += 1;
        match step.verb.as_str() {
            verb if verb == "grant" || verb.starts_with("grant x") => {
                grant = grants(&session, step)?;
            }
            // What the site saw is checked with the request that needed the file.
            "robots" => {
                Expected::read(&step.result)?;
            }
            "crawl" => {
                let expected = Expected::read(&step.result)?;
                let (client, url) = (client.clone(), url.clone());
                let crawl = tokio::spawn(async move { client.crawl(&url).await });
                tokio::task::yield_now().await;
                let seen = sites.seen();
                let last = seen.last().ok_or("the crawl was not sent")?;
                expected.holds_at(&step.argument, last.at)?;
                drop(crawl);
            }
            "get" | "post" | "follow" => {
                let expected = Expected::read(&step.result)?;
                let before = sites.seen().len();
                let method = match step.verb.as_str() {
                    "post" => Method::POST,
                    _ => Method::GET,
                };
                let purpose = match (&api, &grant) {
                    (Some(api), _) => Purpose::Api(api.clone()),
                    (None, Some(grant)) => Purpose::UserFetch(grant.clone()),
                    (None, None) => Purpose::Crawl,
                };
                let came = client.send(method, url, purpose.clone(), &headers).await?;
                let seen = sites.seen().split_off(before);
                check_robots(&steps[..at - 1], &seen)?;
                let pages: Vec<_> = seen.iter().filter(|s| !s.is_robots_txt()).collect();
                if let Verdict::Refused(kind) = expected.verdict {
                    let refused = came.as_ref().map_err(Refusal::kind);
                    same(&Some(kind), &refused.err())?;
                    same(&0, &pages.len())?;
                    continue;
                }
                same(&Verdict::Sent, &expected.verdict)?;
                let answer = came.map_err(|refusal| format!("{url}: {}", refusal.kind()))?;
                let first = pages.first().ok_or("nothing was sent")?;
                expected.holds_at(url, first.at)?;
                if expected.as_crawl {
                    let name = first.headers[USER_AGENT].to_str().unwrap();
                    same(&true, &name.contains("ExampleBot"))?;
                    let key = headers.keys().next().ok_or("no key")?;
                    same(&false, &first.headers.contains_key(key))?;
                }
                // The stack repeats by itself what a Retry-After answered.
                if let Some(retry) = steps.get(at).filter(|step| step.is("retry")) {
                    at += 1;
                    let waited = pages.get(1).ok_or("no retry")?.at - first.at;
                    same(&true, &(waited >= wait_of(&retry.result)?))?;
                    same(&200, &answer.status().as_u16())?;
                }
                if let Some((.., then)) = expected.answer.and_then(series) {
                    follow(&client, &sites, url, answer, &purpose, then).await?;
                }
            }
            other => return Err(unknown(format_args!("the verb {other:?}"))),
        }
    }
    Ok(())
}

/// The acts of a person that a step stands for: `grant` or `grant x30`, with `{1..30}` for each number. Gives the last.
fn grants(session: &Session, step: &Step) -> Result<Option<UserGrant>, String> {
    let times = match step.verb.strip_prefix("grant x") {
        Some(times) => times
            .parse()
            .map_err(|_| unknown(format_args!("the verb {:?}", step.verb)))?,
        None => 1,
    };
    let mut last = None;
    for number in 1..=times {
        let url = match step.argument.split_once('{') {
            Some((head, _)) => format!("{head}{number}"),
            None => step.argument.clone(),
        };
        let given = session.grant(&uri(&url)?);
        let came = match &given {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("error:{}", error.kind()),
        };
        if step.result != "ok" && !step.result.starts_with("error:") {
            return Err(unknown(format_args!("the result {:?}", step.result)));
        }
        same(&step.result, &came)?;
        last = given.ok();
    }
    Ok(last)
}

/// The wait of `wait 2s, sent`.
fn wait_of(result: &str) -> Result<Duration, String> {
    let seconds = result
        .strip_prefix("wait ")
        .and_then(|rest| rest.strip_suffix("s, sent"))
        .and_then(|seconds| seconds.parse().ok());
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| unknown(format_args!("the result {result:?}")))
}

/// Follows redirects as the client outside of the stack does, until one is refused or a page comes.
async fn follow(
    client: &Client,
    sites: &Sites,
    first: &str,
    answer: Response<()>,
    purpose: &Purpose,
    then: &str,
) -> RowResult {
    if then != "sent" && !then.starts_with("error:") {
        return Err(unknown(format_args!("the result {then:?}")));
    }
    let mut answer = Ok(answer);
    while let Ok(redirect) = &answer {
        let Some(target) = redirect.headers().get(LOCATION) else {
            break;
        };
        let target = target.to_str().unwrap().to_owned();
        answer = client
            .send(Method::GET, &target, purpose.clone(), &HeaderMap::new())
            .await?;
    }
    let came = match answer {
        Ok(_) => "sent".to_owned(),
        Err(refusal) => format!("error:{}", refusal.kind()),
    };
    same(&1, &sites.asked(first).len())?;
    same(then, came.as_str())
}

/// Whether the requests for robots.txt among `seen` are those that the steps right before tell of.
fn check_robots(before: &[Step], seen: &[Entry]) -> RowResult {
    let steps = before.iter().rev().take_while(|step| step.is("robots"));
    for step in steps {
        let url = &step.argument;
        let asked = seen.iter().find(|seen| seen.uri == *url.as_str());
        let expected = Expected::read(&step.result)?;
        match (expected.verdict, asked) {
            (Verdict::Cached, None) => {}
            (Verdict::Sent, Some(seen)) => expected.holds_at(url, seen.at)?,
            (expected, asked) => {
                let asked = asked.is_some();
                return Err(format!("{url}: expected {expected:?}, asked: {asked}"));
            }
        }
    }
    Ok(())
}

const RETENTION: &[(&str, Kind)] = &[
    ("id", Text),
    ("kind", Text),
    ("robots_scope", Text),
    ("steps", List),
];

/// What the outcome of a visit in a row on retention says.
enum Visit {
    /// The site is asked and gives this.
    Asked(Answer),
    /// The store has it.
    FromStore,
}

impl Visit {
    fn read(result: &str) -> Result<Self, String> {
        if result == "may be answered from the shared store" {
            return Ok(Self::FromStore);
        }
        let (status, rest) = status(result)?;
        let answer = Answer::status(status).body("a page");
        Ok(Self::Asked(match rest.trim() {
            "stored in shared store" => answer.header(CACHE_CONTROL.as_str(), "max-age=3600"),
            rest => answer.headers(&fields(rest)?),
        }))
    }
}

/// What a row on retention is played with, and what came of it so far.
struct Retention {
    client: Client,
    sites: Sites,
    session: Session,
    /// The page of the last visit.
    page: String,
    last: Option<Response<()>>,
}

async fn retention(identity: Identity, row: &Value) -> RowResult {
    only_keys(row, "the row", RETENTION)?;
    let sites = Sites::new(Duration::ZERO);
    let mut played = Retention {
        client: Client::new(identity, &sites, row)?,
        sites,
        session: Session::new(),
        page: String::new(),
        last: None,
    };
    for step in steps(row)? {
        played.step(&step).await?;
    }
    Ok(())
}

impl Retention {
    async fn step(&mut self, step: &Step) -> RowResult {
        let Step {
            verb,
            argument,
            result,
        } = step;
        let says = |expected: &str| match result.is_empty() || result == expected {
            true => Ok(()),
            false => Err(unknown(format_args!("the result {result:?}"))),
        };
        match verb.as_str() {
            "user_fetch" | "crawl" => {
                self.page.clone_from(argument);
                let visit = Visit::read(result)?;
                let before = self.sites.asked(argument).len();
                let from_store = matches!(visit, Visit::FromStore);
                if let Visit::Asked(answer) = visit {
                    self.sites.script(argument, answer);
                }
                self.last = Some(match verb.as_str() {
                    "crawl" => self.client.crawl(argument).await?,
                    _ => self.visit(argument).await?,
                });
                let sent = self.sites.asked(argument).len() - before;
                same(&usize::from(!from_store), &sent)
            }
            // A crawl finds nothing of it: it asks the site, and without a validator.
            "shared_store_writes" if argument == "0" => {
                says("")?;
                let before = self.sites.asked(&self.page).len();
                self.client.crawl(&self.page).await?;
                self.asked_anew(&self.page, before)
            }
            // One entry answers for the page without a request; none does not.
            "session_store_entries" if ["0", "1"].contains(&argument.as_str()) => {
                says("")?;
                let before = self.sites.asked(&self.page).len();
                if argument == "1" {
                    self.visit(&self.page).await?;
                    same(&before, &self.sites.asked(&self.page).len())?;
                }
                Ok(())
            }
            "drop session" if argument.is_empty() => {
                self.session = Session::new();
                says("")
            }
            "new session user_fetch" => {
                says("no If-None-Match sent")?;
                self.session = Session::new();
                let before = self.sites.asked(argument).len();
                self.visit(argument).await?;
                self.asked_anew(argument, before)
            }
            "shared robots cache has" => {
                says("")?;
                self.client.crawl(&self.page).await?;
                let file = format!("{argument}/robots.txt");
                same(&1, &self.sites.asked(&file).len())
            }
            // It is keyed by origins: no path can be in it.
            "shared robots cache has no path of the page" if argument == "true" => says(""),
            "extension.may_train" => {
                let facts = self.last.as_ref().and_then(Facts::of).ok_or("no facts")?;
                let may_train = facts.may_train().ok_or("nothing is known of training")?;
                same(argument, &may_train.to_string())
            }
            "extension.may_retain" => {
                let facts = self.last.as_ref().and_then(Facts::of).ok_or("no facts")?;
                same(argument, &facts.may_retain().to_string())
            }
            other => Err(unknown(format_args!("the step {other:?} {argument:?}"))),
        }
    }

    /// A visit of the person in this session.
    async fn visit(&self, url: &str) -> Result<Response<()>, String> {
        let grant = self.session.grant(&uri(url)?).map_err(|e| e.to_string())?;
        let purpose = Purpose::UserFetch(grant);
        let none = HeaderMap::new();
        let answer = self.client.send(Method::GET, url, purpose, &none).await?;
        answer.map_err(|refusal| refusal.kind().to_owned())
    }

    /// Whether one request for `url` came after the first `before`, without a validator.
    fn asked_anew(&self, url: &str, before: usize) -> RowResult {
        let seen = self.sites.asked(url).split_off(before);
        same(&1, &seen.len())?;
        same(&false, &seen[0].headers.contains_key(IF_NONE_MATCH))
    }
}
