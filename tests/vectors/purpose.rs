//! `user_agent/purpose.json`: why a request is made, played through the whole stack on paused time.

use std::collections::{HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::host::HostPolicy;
use etiquette_core::vocabulary::purpose::{Api, ApiKey, ApiLimit};
use etiquette_tests::vectors::{Report, documents};
use http::header::{ETAG, IF_NONE_MATCH, LOCATION, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tower::{Service, ServiceExt, service_fn};
use tower_etiquette::purpose::{PurposeKind, RobotsScope};
use tower_etiquette::{
    BoxError, Etiquette, Facts, Hosts, Identity, Purpose, Refusal, Session, UserGrant,
};

const FILE: &str = "user_agent/purpose.json";

pub(crate) fn play(report: &mut Report) {
    for document in documents(FILE) {
        let token = |key: &str| document["identity"][key].as_str().unwrap();
        let identity = Identity::builder(
            token("crawl_token"),
            "0.1",
            "https://www.example.com/bot.html",
        );
        let identity = identity.user_token(token("user_token")).build().unwrap();
        for row in document["cases"].as_array().unwrap() {
            let id = row["id"].as_str().unwrap();
            if id == "no-permit" {
                report.left_out(
                    FILE,
                    id,
                    "no `Purpose::UserFetch` can be made without a grant",
                );
                continue;
            }
            let identity = identity.clone();
            let outcome = paused(async {
                match row["kind"].as_str().unwrap() {
                    "robots" => robots(identity, row).await,
                    "navigation" => navigation(identity, row).await,
                    "retention" => retention(identity, row).await,
                    other => Err(format!("unknown kind {other}")),
                }
            });
            report.row(FILE, id, outcome);
        }
    }
}

fn paused<T>(play: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(play)
}

/// One request as the site saw it.
#[derive(Clone, Debug)]
struct Seen {
    url: String,
    headers: HeaderMap,
    at: Duration,
}

#[derive(Clone, Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn new(status: u16, body: &str) -> Self {
        Self {
            status,
            headers: HeaderMap::new(),
            body: body.to_owned(),
        }
    }

    fn with(mut self, name: http::HeaderName, value: &str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self
    }
}

/// All sites of a row: what they answer, and what they saw.
#[derive(Clone)]
struct Sites {
    start: Arc<Mutex<Instant>>,
    answer_time: Duration,
    answers: Arc<Mutex<HashMap<String, VecDeque<Answer>>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Sites {
    fn new(answer_time: Duration) -> Self {
        Self {
            start: Arc::new(Mutex::new(Instant::now())),
            answer_time,
            answers: Arc::default(),
            seen: Arc::default(),
        }
    }

    fn script(&self, url: &str, answer: Answer) {
        let mut answers = self.answers.lock().unwrap();
        answers.entry(url.to_owned()).or_default().push_back(answer);
    }

    /// Forgets what was seen and counts time from now.
    fn restart(&self) {
        *self.start.lock().unwrap() = Instant::now();
        self.seen.lock().unwrap().clear();
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn service(
        &self,
    ) -> impl Service<
        Request<Full<Bytes>>,
        Response = Response<Full<Bytes>>,
        Error = Infallible,
        Future: Send,
    >
    + Clone
    + Send
    + Sync
    + 'static
    + use<> {
        let sites = self.clone();
        service_fn(move |request: Request<Full<Bytes>>| {
            let sites = sites.clone();
            async move { Ok(sites.answer(&request).await) }
        })
    }

    async fn answer(&self, request: &Request<Full<Bytes>>) -> Response<Full<Bytes>> {
        let url = request.uri().to_string();
        self.seen.lock().unwrap().push(Seen {
            url: url.clone(),
            headers: request.headers().clone(),
            at: self.start.lock().unwrap().elapsed(),
        });
        sleep(self.answer_time).await;
        let scripted = {
            let mut answers = self.answers.lock().unwrap();
            answers.get_mut(&url).and_then(VecDeque::pop_front)
        };
        let answer = scripted.unwrap_or_else(|| match request.uri().path() {
            "/robots.txt" => Answer::new(404, ""),
            _ => Answer::new(200, "a page"),
        });
        let mut response = Response::new(Full::from(answer.body));
        *response.status_mut() = answer.status.try_into().unwrap();
        response.headers_mut().extend(answer.headers);
        response
    }
}

/// The client under test: the whole stack with host state of its own.
#[derive(Clone)]
struct Client {
    service: tower_etiquette::BoxedService<Full<Bytes>>,
}

impl Client {
    fn new(identity: Identity, sites: &Sites, row: &Value) -> Self {
        let delay = Duration::from_secs_f64(row["min_gap_s"].as_f64().unwrap_or(1.0));
        let hosts = Hosts::new(HostPolicy::new().min_delay(delay).jitter(0.0, 0.0));
        let scope = match row["robots_scope"].as_str() {
            Some("star_and_named") => RobotsScope::StarAndNamed,
            _ => RobotsScope::default(),
        };
        let stack = Etiquette::new(identity)
            .hosts(hosts)
            .robots(|robots| robots.scope(scope));
        Self {
            service: stack.boxed(sites.service()),
        }
    }

    async fn crawl(&self, url: &str) -> Result<Response<()>, Refusal> {
        let none = HeaderMap::new();
        self.send(Method::GET, url, Purpose::Crawl, &none).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        purpose: Purpose,
        headers: &HeaderMap,
    ) -> Result<Response<()>, Refusal> {
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .extension(purpose)
            .body(Full::default())
            .unwrap();
        request.headers_mut().extend(headers.clone());
        let sent = self.service.clone().oneshot(request).await;
        let response = sent.map_err(|error: BoxError| {
            Refusal::find(&*error)
                .unwrap_or_else(|| panic!("{url}: {error}"))
                .clone()
        })?;
        let (head, body) = response.into_parts();
        let _ = body
            .collect()
            .await
            .map_err(|error| panic!("{url}: {error}"));
        Ok(Response::from_parts(head, ()))
    }
}

fn declared(row: &Value) -> Option<Api> {
    let api = &row["api"];
    let prefix = api["declared"].as_str()?;
    let key = match (api["key_header"].as_str(), api["key_query"].as_str()) {
        (Some(name), _) => ApiKey::header(name.parse().unwrap()),
        (None, Some(name)) => ApiKey::query(name),
        (None, None) => panic!("no key"),
    };
    let limit = ApiLimit::new(NonZeroU32::new(5_000).unwrap(), Duration::from_secs(3_600));
    Some(Api::new(prefix, key, limit, "https://site.example/docs").unwrap())
}

async fn robots(identity: Identity, row: &Value) -> Result<(), String> {
    let sites = Sites::new(Duration::ZERO);
    let status = u16::try_from(row["robots_status"].as_u64().unwrap()).unwrap();
    let file = row["robots_txt"].as_str().unwrap();
    sites.script("https://site.example/robots.txt", Answer::new(status, file));
    let client = Client::new(identity, &sites, row);
    let url = format!("https://site.example{}", row["path"].as_str().unwrap());
    let session = Session::new();
    let purpose = match row["purpose"].as_str().unwrap() {
        "crawl" => Purpose::Crawl,
        "user_fetch" => Purpose::UserFetch(session.grant(&url.parse().unwrap()).unwrap()),
        "api" => Purpose::Api(declared(row).unwrap()),
        other => panic!("purpose {other}"),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in row["request_headers"].as_object().into_iter().flatten() {
        let name: http::HeaderName = name.parse().unwrap();
        headers.insert(name, value.as_str().unwrap().parse().unwrap());
    }
    let mut probe = Request::get(&url)
        .extension(purpose.clone())
        .body(())
        .unwrap();
    probe.headers_mut().extend(headers.clone());
    let kind = Purpose::kind_of(probe.extensions(), probe.uri(), probe.headers());
    let treated = row["treated_as"].as_str().or(row["purpose"].as_str());
    let expected_kind = match treated.unwrap() {
        "crawl" => PurposeKind::Crawl,
        "user_fetch" => PurposeKind::UserFetch,
        _ => PurposeKind::Api,
    };
    crate::user_agent::same(&expected_kind, &kind)?;
    let answer = client.send(Method::GET, &url, purpose, &headers).await;
    let verdict = match &answer {
        Ok(_) => "allow",
        Err(refusal) if ["disallowed", "robots_unreachable"].contains(&refusal.kind()) => "deny",
        Err(refusal) => return Err(format!("refused: {}", refusal.kind())),
    };
    crate::user_agent::same(&row["expect"].as_str().unwrap(), &verdict)?;
    let asked = sites.seen().iter().any(|seen| seen.url == url);
    crate::user_agent::same(&(verdict == "allow"), &asked)
}

type Step = (String, String, String);

fn steps(row: &Value) -> Vec<Step> {
    let text = |step: &Value, at: usize| match &step[at] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let steps = row["steps"].as_array().unwrap().iter();
    steps
        .map(|step| (text(step, 0), text(step, 1), text(step, 2)))
        .collect()
}

/// The result of a step, taken apart: `sent at 0.05->301:https://…`.
struct Expected<'a> {
    /// `ok`, `sent`, `cached`, `refused:…`, `error:…`.
    verdict: &'a str,
    at: Option<(bool, f64)>,
    answer: Option<&'a str>,
}

impl<'a> Expected<'a> {
    fn read(result: &'a str) -> Self {
        let (first, answer) = match result.split_once("->") {
            Some((first, answer)) => (first, Some(answer)),
            None => (result, None),
        };
        let first = first.rsplit_once(", ").map_or(first, |(_, sent)| sent);
        let (verdict, at) = match first.split_once(" at ") {
            Some((verdict, at)) => (verdict, Some(at)),
            None => (first, None),
        };
        let at = at.map(|at| match at.strip_prefix(">=") {
            Some(at) => (true, at.parse().unwrap()),
            None => (false, at.parse().unwrap()),
        });
        Self {
            verdict: verdict.split(" as ").next().unwrap(),
            at,
            answer,
        }
    }

    fn holds_at(&self, url: &str, came: Duration) -> Result<(), String> {
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
fn script(sites: &Sites, steps: &[Step]) {
    for (verb, url, result) in steps {
        let Some(answer) = Expected::read(result).answer else {
            continue;
        };
        // A series of redirects, each to a new URL of the site.
        if let Some((series, _)) = answer.split_once(';') {
            let (status, hops) = series.split_once(" x").unwrap();
            let base: Uri = url.parse().unwrap();
            let origin = format!("{}://{}", base.scheme_str().unwrap(), base.host().unwrap());
            let mut from = url.clone();
            for hop in 1..=hops.parse().unwrap() {
                let target = format!("{origin}/hop{hop}");
                let redirect = Answer::new(status.parse().unwrap(), "");
                sites.script(&from, redirect.with(LOCATION, &target));
                from = target;
            }
            continue;
        }
        let (status, rest) = answer.split_at(3);
        let status: u16 = status.parse().unwrap();
        sites.script(
            url,
            match (verb.as_str(), rest.trim_start().split_once('=')) {
                ("robots", _) => Answer::new(status, rest.trim_start_matches(':')),
                (_, Some(("retry-after", seconds))) => {
                    Answer::new(status, "").with(RETRY_AFTER, seconds)
                }
                _ if rest.starts_with(':') && (300..400).contains(&status) => {
                    Answer::new(status, "").with(LOCATION, &rest[1..])
                }
                _ => Answer::new(status, rest.trim_start_matches(':')),
            },
        );
    }
}

/// Reads the robots.txt of every host whose reading is no step of the row, long before it.
async fn know_robots(client: &Client, sites: &Sites, steps: &[Step]) {
    let host = |url: &str| -> Option<String> { Some(url.parse::<Uri>().ok()?.host()?.to_owned()) };
    let asked: HashSet<_> = steps
        .iter()
        .filter(|(verb, _, result)| verb == "robots" && !result.starts_with("cached"))
        .filter_map(|(_, url, _)| host(url))
        .collect();
    let hosts: HashSet<_> = steps.iter().filter_map(|(_, url, _)| host(url)).collect();
    for host in hosts.difference(&asked) {
        let url = format!("https://{host}/before");
        let known = client.crawl(&url);
        known.await.unwrap();
    }
    sleep(Duration::from_secs(300)).await;
    sites.restart();
}

async fn navigation(identity: Identity, row: &Value) -> Result<(), String> {
    let sites = Sites::new(Duration::from_secs_f64(
        row["answer_s"].as_f64().unwrap_or(0.0),
    ));
    let client = Client::new(identity, &sites, row);
    let steps = steps(row);
    know_robots(&client, &sites, &steps).await;
    script(&sites, &steps);
    let api = declared(row);
    let mut headers = HeaderMap::new();
    if let Some(ApiKey::Header(name)) = api.as_ref().map(Api::key) {
        headers.insert(name.clone(), "k".parse().unwrap());
    }
    let session = Session::new();
    let mut grant: Option<UserGrant> = None;
    let mut at = 0;
    while at < steps.len() {
        let (verb, argument, result) = &steps[at];
        at += 1;
        let expected = Expected::read(result);
        let before = sites.seen().len();
        match verb.as_str() {
            verb if verb.starts_with("permit") => {
                let times = verb
                    .strip_prefix("permit x")
                    .map_or(1, |n| n.parse().unwrap());
                for number in 1..=times {
                    let url = match argument.split_once('{') {
                        Some((head, _)) => format!("{head}{number}"),
                        None => argument.clone(),
                    };
                    let given = session.grant(&url.parse().unwrap());
                    let came = match &given {
                        Ok(_) => "ok".to_owned(),
                        Err(error) => format!("error:{}", error.kind()),
                    };
                    crate::user_agent::same(result, &came)?;
                    grant = given.ok();
                }
            }
            // What the site saw is checked with the request that needed the file.
            "robots" => {}
            "crawl" => {
                let (client, url) = (client.clone(), argument.clone());
                tokio::spawn(async move {
                    let crawl = client.crawl(&url);
                    crawl.await.unwrap();
                });
                tokio::task::yield_now().await;
                let seen = sites.seen();
                let last = seen.last().ok_or("the crawl was not sent")?;
                expected.holds_at(argument, last.at)?;
            }
            "get" | "post" | "follow" => {
                let method = if verb == "post" {
                    Method::POST
                } else {
                    Method::GET
                };
                let purpose = match (&api, &grant) {
                    (Some(api), _) => Purpose::Api(api.clone()),
                    (None, Some(grant)) => Purpose::UserFetch(grant.clone()),
                    (None, None) => Purpose::Crawl,
                };
                let came = client
                    .send(method, argument, purpose.clone(), &headers)
                    .await;
                let seen = sites.seen().split_off(before);
                check_robots(&steps[..at - 1], &seen)?;
                let pages: Vec<_> = seen
                    .iter()
                    .filter(|s| !s.url.ends_with("/robots.txt"))
                    .collect();
                if let Some(kind) = expected.verdict.strip_prefix("refused:") {
                    let refused = came.as_ref().map_err(|refusal| refusal.kind());
                    crate::user_agent::same(&Some(kind), &refused.err())?;
                    crate::user_agent::same(&0, &pages.len())?;
                    continue;
                }
                let answer = came.map_err(|refusal| format!("{argument}: {}", refusal.kind()))?;
                let first = pages.first().ok_or("nothing was sent")?;
                expected.holds_at(argument, first.at)?;
                if result.ends_with("as crawl") {
                    let name = first.headers["user-agent"].to_str().unwrap();
                    crate::user_agent::same(&true, &name.contains("ExampleBot"))?;
                    let key = headers.keys().next().unwrap();
                    crate::user_agent::same(&false, &first.headers.contains_key(key))?;
                }
                // The stack repeats by itself what a Retry-After answered.
                if let Some((_, _, retry)) = steps.get(at).filter(|(verb, ..)| verb == "retry") {
                    at += 1;
                    let wait = retry.split(['s', ' ']).nth(1).unwrap().parse().unwrap();
                    let waited = pages.get(1).ok_or("no retry")?.at - first.at;
                    let least = Duration::from_secs(wait);
                    crate::user_agent::same(&true, &(waited >= least))?;
                    crate::user_agent::same(&200, &answer.status().as_u16())?;
                }
                if let Some((_, then)) = expected.answer.and_then(|answer| answer.split_once("; "))
                {
                    follow(&client, &sites, argument, answer, &purpose, then).await?;
                }
            }
            other => return Err(format!("unknown step {other}")),
        }
    }
    Ok(())
}

/// Follows redirects as the client outside of the stack does, until one is refused or a page comes.
async fn follow(
    client: &Client,
    sites: &Sites,
    first: &str,
    answer: Response<()>,
    purpose: &Purpose,
    then: &str,
) -> Result<(), String> {
    let mut answer = Ok(answer);
    while let Ok(redirect) = &answer {
        let Some(target) = redirect.headers().get(LOCATION) else {
            break;
        };
        let target = target.to_str().unwrap();
        answer = client
            .send(Method::GET, target, purpose.clone(), &HeaderMap::new())
            .await;
    }
    let came = match answer {
        Ok(_) => "sent".to_owned(),
        Err(refusal) => format!("error:{}", refusal.kind()),
    };
    let asked = sites.seen().iter().filter(|seen| seen.url == first).count();
    crate::user_agent::same(&1, &asked)?;
    crate::user_agent::same(&then, &came.as_str())
}

/// Whether the requests for robots.txt among `seen` are those that the steps right before tell of.
fn check_robots(before: &[Step], seen: &[Seen]) -> Result<(), String> {
    let told: Vec<_> = before
        .iter()
        .rev()
        .take_while(|(verb, ..)| verb == "robots")
        .collect();
    for (_, url, result) in told {
        let asked = seen.iter().find(|seen| seen.url == *url);
        let expected = Expected::read(result);
        match (expected.verdict, asked) {
            ("cached", None) => {}
            ("sent", Some(seen)) => expected.holds_at(url, seen.at)?,
            (told, asked) => return Err(format!("{url}: told {told}, asked: {}", asked.is_some())),
        }
    }
    Ok(())
}

async fn retention(identity: Identity, row: &Value) -> Result<(), String> {
    let sites = Sites::new(Duration::ZERO);
    let client = Client::new(identity, &sites, row);
    let mut session = Session::new();
    let mut last: Option<Response<()>> = None;
    let mut page = String::new();
    let visit = async |session: &Session, url: &str| {
        let purpose = Purpose::UserFetch(session.grant(&url.parse().unwrap()).unwrap());
        let came = client
            .send(Method::GET, url, purpose, &HeaderMap::new())
            .await;
        came.map_err(|refusal| refusal.kind().to_owned())
    };
    let asked = |url: &str| -> Vec<Seen> {
        let mut seen = sites.seen();
        seen.retain(|seen| seen.url == url);
        seen
    };
    for (verb, argument, result) in steps(row) {
        match verb.as_str() {
            "user_fetch" | "crawl" => {
                page.clone_from(&argument);
                let before = asked(&page).len();
                if result.starts_with("200") {
                    let mut answer = Answer::new(200, "a page");
                    for (field, name) in [
                        ("cache-control: ", http::header::CACHE_CONTROL),
                        ("etag", ETAG),
                    ] {
                        if let Some((_, value)) = result.split_once(field) {
                            let value = if value.is_empty() { "\"1\"" } else { value };
                            answer = answer.with(name, value);
                        }
                    }
                    if result.contains("stored in shared store") {
                        answer = answer.with(http::header::CACHE_CONTROL, "max-age=3600");
                    }
                    sites.script(&page, answer);
                }
                last = Some(match verb.as_str() {
                    "crawl" => client
                        .crawl(&page)
                        .await
                        .map_err(|refusal| refusal.kind().to_owned())?,
                    _ => visit(&session, &page).await?,
                });
                let sent = asked(&page).len() - before;
                let from_store = result.starts_with("may be answered from the shared store");
                crate::user_agent::same(&usize::from(!from_store), &sent)?;
            }
            // A crawl finds nothing of it: it asks the site, and without a validator.
            "shared_store_writes" => {
                let before = asked(&page).len();
                let crawl = client.crawl(&page);
                crawl.await.map_err(|refusal| refusal.kind().to_owned())?;
                let seen = asked(&page).split_off(before);
                crate::user_agent::same(&1, &seen.len())?;
                crate::user_agent::same(&false, &seen[0].headers.contains_key(IF_NONE_MATCH))?;
            }
            // One entry answers for the page without a request; none does not.
            "session_store_entries" => {
                let before = asked(&page).len();
                if argument == "1" {
                    visit(&session, &page).await?;
                    crate::user_agent::same(&before, &asked(&page).len())?;
                }
            }
            "drop session" => session = Session::new(),
            "new session user_fetch" => {
                session = Session::new();
                let before = asked(&argument).len();
                visit(&session, &argument).await?;
                let seen = asked(&argument).split_off(before);
                crate::user_agent::same(&1, &seen.len())?;
                crate::user_agent::same(&false, &seen[0].headers.contains_key(IF_NONE_MATCH))?;
            }
            "shared robots cache has" => {
                let crawl = client.crawl(&page);
                crawl.await.map_err(|refusal| refusal.kind().to_owned())?;
                let file = format!("{argument}/robots.txt");
                crate::user_agent::same(&1, &asked(&file).len())?;
            }
            // It is keyed by origins: no path can be in it.
            "shared robots cache has no path of the page" => {}
            "extension.may_train" => {
                let facts = last.as_ref().and_then(Facts::of).ok_or("no facts")?;
                crate::user_agent::same(&argument, &facts.may_train().unwrap().to_string())?;
            }
            "extension.may_retain" => {
                let facts = last.as_ref().and_then(Facts::of).ok_or("no facts")?;
                crate::user_agent::same(&argument, &facts.may_retain().to_string())?;
            }
            other => return Err(format!("unknown step {other}")),
        }
    }
    Ok(())
}
