//! One name: whatever a site answers, each request carries the identity's own header for its purpose, and the token in
//! it is the one that the rules are looked up for.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use etiquette_discovery::Discovery;
use etiquette_discovery::fetch_sitemap;
use etiquette_discovery::plan::Want;
use etiquette_discovery::sitemap::SitemapWalk;
use etiquette_tests::client::{fetch, get};
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Arrival, Entry, Script, Site, SiteService};
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, USER_AGENT};
use http_body_util::{BodyExt, Empty};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tower::ServiceExt;
use tower_etiquette::identity::Style;
use tower_etiquette::purpose::PurposeKind;
use tower_etiquette::{BoxError, Etiquette, Identity, Purpose, Refusal, Session};
use tower_http::follow_redirect::FollowRedirect;

use crate::site::{Client, hosts};

const HOSTS: [&str; 3] = ["http://a.example", "https://a.example", "http://b.example"];

/// Sites that answer by a list of numbers, and log what they saw.
#[derive(Clone)]
struct Sites(SiteService);

impl Sites {
    fn new(answers: &[u8]) -> Self {
        Self::with(answers, None)
    }

    /// Sites whose robots.txt block `token`, if there is one.
    fn with(answers: &[u8], blocked: Option<String>) -> Self {
        let answers: Mutex<VecDeque<u8>> = Mutex::new(answers.iter().copied().collect());
        let script = Script::call(move |arrival| {
            // Used up: everything is well from here on.
            let number = answers.lock().unwrap().pop_front().unwrap_or(0);
            let answer = answer(number, arrival, blocked.as_deref());
            answer.after(Duration::from_millis(20)).literally()
        });
        Self(Site::builder().otherwise(script).in_process())
    }

    fn seen(&self) -> Vec<Entry> {
        self.0.log().entries()
    }

    fn client(&self, identity: &Identity) -> Client {
        let etiquette = Etiquette::new(identity.clone());
        etiquette.hosts(hosts()).boxed(self.0.clone())
    }
}

/// The answer with this number, if it fits the request.
fn answer(number: u8, arrival: &Arrival, blocked: Option<&str>) -> Answer {
    let headers = &arrival.headers;
    let conditional =
        headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE);
    let robots = arrival.is_robots_txt();
    let well = |status| {
        Answer::status(status)
            .header("etag", "\"1\"")
            .header("cache-control", "no-cache")
    };
    let answer = match (number, robots) {
        (1 | 2, _) => {
            let to = HOSTS[usize::from(number) % HOSTS.len()];
            let file = if robots { "robots.txt" } else { "moved" };
            let status = if number == 1 { 301 } else { 302 };
            Answer::status(status).header("location", &format!("{to}/{file}"))
        }
        (3, _) => Answer::retry_after(429, 1),
        (4, _) => Answer::status(429),
        (5, _) => Answer::retry_after(503, 2),
        (6, _) => Answer::status(503),
        (7, false) => Answer::status(403),
        (8, false) => Answer::status(401),
        (7, true) => Answer::status(404),
        (9 | 10, _) if conditional => well(304),
        (11, _) => return Answer::hang_up(),
        (12, _) => Answer::status(500),
        _ => {
            let body = match (robots, arrival.path(), blocked, number) {
                (true, _, Some(token), _) => format!("User-agent: {token}\nDisallow: /\n"),
                (true, _, None, 8) => "User-agent: *\nDisallow: /x\nCrawl-delay: 3\n".to_owned(),
                (true, ..) => "Sitemap: http://a.example/sitemap.xml\n".to_owned(),
                (_, "/sitemap.xml", ..) => "http://a.example/listed\n".to_owned(),
                _ => "<link rel=alternate type=application/atom+xml href=/feed>".to_owned(),
            };
            well(200).body(body)
        }
    };
    let kind = match arrival.path() {
        "/robots.txt" | "/sitemap.xml" => "text/plain",
        _ => "text/html",
    };
    answer.header("content-type", kind)
}

/// What the client is used for.
#[derive(Clone, Debug)]
enum Step {
    Crawl(usize, u8),
    Fetch(usize, u8),
    Discover(usize),
    Sitemap(usize),
}

impl Step {
    fn purpose(&self) -> PurposeKind {
        match self {
            Self::Fetch(..) => PurposeKind::UserFetch,
            _ => PurposeKind::Crawl,
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..6_u8, 0..HOSTS.len(), 0..3_u8).prop_map(|(kind, host, page)| match kind {
        0..=2 => Step::Crawl(host, page),
        3 => Step::Fetch(host, page),
        4 => Step::Discover(host),
        _ => Step::Sitemap(host),
    });
    vec(step, 1..12)
}

/// Names that sites could use, in all their forms.
fn identities() -> impl Strategy<Value = Identity> {
    let parts = (
        "[A-Za-z][A-Za-z_-]{2,14}",
        "[A-Za-z][A-Za-z_-]{2,14}",
        "[0-9]\\.[0-9a-z]{1,4}",
        any::<bool>(),
        option::of(Just("bot@example.com")),
        option::of("[a-z (]{1,12}"),
        option::of("[A-Z][a-z]{2,7}/[0-9]"),
    );
    parts.prop_filter_map(
        "no valid identity",
        |(token, user, version, product, contact, comment, more)| {
            let mut builder = Identity::builder(token, version, "https://www.example.com/bot.html")
                .user_token(user);
            if product {
                builder = builder.style(Style::Product);
            }
            if let Some(contact) = contact {
                builder = builder.contact(contact);
            }
            if let Some(comment) = comment {
                builder = builder.comment(comment);
            }
            if let Some(more) = more {
                builder = builder.product(more);
            }
            builder.build().ok()
        },
    )
}

/// Takes one step. What comes of it is the site's affair: here only what was sent counts.
async fn take(step: &Step, client: &Client, identity: &Identity, session: &Session) {
    match step {
        Step::Crawl(host, page) => {
            let client = FollowRedirect::new(client.clone());
            let _ = fetch(client, get(&format!("{}/{page}", HOSTS[*host]))).await;
        }
        Step::Fetch(host, page) => {
            let mut url = format!("{}/{page}", HOSTS[*host]);
            let Ok(grant) = session.grant(&url.parse().unwrap()) else {
                return;
            };
            // The hops as the client outside of the stack makes them, until a page comes or one is refused.
            loop {
                let mut request = get(&url);
                let purpose = Purpose::UserFetch(grant.clone());
                request.extensions_mut().insert(purpose);
                let Ok(answer) = client.clone().oneshot(request).await else {
                    return;
                };
                let Some(to) = answer.headers().get(LOCATION) else {
                    let _ = answer.into_body().collect().await;
                    return;
                };
                url = to.to_str().unwrap().to_owned();
            }
        }
        Step::Discover(host) => {
            let mut discovery = Discovery::new(client.clone())
                .token(identity.token().clone())
                .want(Want::Api)
                .want(Want::Sitemap)
                .max_probes(3);
            let start = format!("{}/", HOSTS[*host]).parse().unwrap();
            let _ = discovery.run::<Empty<Bytes>, _>(&start).await;
        }
        Step::Sitemap(host) => {
            let mut walk = SitemapWalk::new();
            let _ = walk.add(
                format!("{}/sitemap.xml", HOSTS[*host]).parse().unwrap(),
                None,
            );
            let mut client = client.clone();
            while let Some(task) = walk.next_task() {
                let _ = fetch_sitemap::<_, Empty<Bytes>, _>(&mut client, &task, |_| {}).await;
            }
        }
    }
}

/// What each of `seen` says about its sender.
fn judge(seen: &[Entry], identity: &Identity, purpose: PurposeKind) -> Result<(), TestCaseError> {
    let own = identity.user_agent(purpose);
    let token = identity.token_for(purpose).as_str();
    for request in seen {
        // Byte for byte, after a 403 as before it.
        let names: Vec<_> = request.headers.get_all(USER_AGENT).iter().collect();
        prop_assert_eq!(names, [own], "{:?}", request);
        prop_assert!(own.to_str().unwrap().contains(token), "{token} {own:?}");
    }
    Ok(())
}

/// The token that the rules are looked up for is the one in the header: a group with that very name blocks it.
async fn blocked(identity: &Identity, purpose: PurposeKind) -> Result<(), TestCaseError> {
    let sites = Sites::with(&[], Some(identity.token_for(purpose).to_string()));
    let client = sites.client(identity);
    let url = "http://closed.example/";
    let mut request = get(url);
    let session = Session::new();
    if purpose == PurposeKind::UserFetch {
        let grant = session.grant(&url.parse().unwrap()).unwrap();
        request.extensions_mut().insert(Purpose::UserFetch(grant));
    }
    let error: BoxError = match client.oneshot(request).await {
        Ok(_) => return Err(TestCaseError::fail("it was not blocked")),
        Err(error) => error,
    };
    let refusal = Refusal::find(&*error).unwrap();
    prop_assert_eq!(refusal.kind(), "disallowed", "{}", refusal);
    prop_assert_eq!(refusal.rule().unwrap().line(), 2);
    prop_assert_eq!(sites.seen().len(), 1);
    judge(&sites.seen(), identity, purpose)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn each_request_bears_the_name_that_the_rules_are_looked_up_for(
        identity in identities(),
        steps in steps(),
        answers in vec(0..13_u8, 0..60),
    ) {
        paused::run(async {
            let sites = Sites::new(&answers);
            let client = sites.client(&identity);
            let session = Session::new();
            let mut before = 0;
            for step in &steps {
                take(step, &client, &identity, &session).await;
                let seen = sites.seen().split_off(before);
                before += seen.len();
                judge(&seen, &identity, step.purpose())?;
            }
            for purpose in [PurposeKind::Crawl, PurposeKind::UserFetch] {
                blocked(&identity, purpose).await?;
            }
            Ok::<(), TestCaseError>(())
        })?;
    }
}

/// The property is about something: all kinds of requests and answers are met.
#[test]
fn the_sites_are_asked_in_every_way() {
    let mut seen = Vec::new();
    for round in 0..40_u8 {
        let answers: Vec<u8> = (0..40)
            .map(|n: u8| n.wrapping_mul(7 + round) % 13)
            .collect();
        let sites = Sites::new(&answers);
        let identity = crate::site::identity();
        paused::run(async {
            let client = sites.client(&identity);
            let session = Session::new();
            for step in [
                Step::Crawl(0, 0),
                Step::Crawl(0, 0),
                Step::Crawl(1, 1),
                Step::Discover(0),
                Step::Discover(2),
                Step::Sitemap(0),
            ] {
                take(&step, &client, &identity, &session).await;
            }
        });
        seen.extend(sites.seen());
    }
    let status = |entry: &Entry| entry.status.map_or(0, |status| status.as_u16());
    for expected in [0, 200, 301, 302, 304, 401, 403, 429, 503] {
        assert!(seen.iter().any(|e| status(e) == expected), "{expected}");
    }
    for path in [
        "/robots.txt",
        "/sitemap.xml",
        "/.well-known/api-catalog",
        "/moved",
    ] {
        assert!(seen.iter().any(|entry| entry.path() == path), "{path}");
    }
    for robots in [true, false] {
        let of = |entry: &&Entry| entry.is_conditional() && entry.is_robots_txt() == robots;
        assert!(seen.iter().find(of).is_some(), "no validation: {robots}");
    }
    let retried = seen
        .windows(2)
        .any(|pair| status(&pair[0]) == 429 && !pair[0].is_robots_txt() && status(&pair[1]) != 429);
    assert!(retried);
}
