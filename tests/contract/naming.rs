//! One name: whatever a site answers, each request carries the identity's own header for its purpose, and the token in
//! it is the one that the rules are looked up for.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_discovery::Discovery;
use etiquette_discovery::fetch_sitemap;
use etiquette_discovery::plan::Want;
use etiquette_discovery::sitemap::SitemapWalk;
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
    USER_AGENT,
};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Empty, Full};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tower::{ServiceExt, service_fn};
use tower_etiquette::identity::Style;
use tower_etiquette::purpose::PurposeKind;
use tower_etiquette::{BoxError, BoxedService, Etiquette, Identity, Purpose, Refusal, Session};
use tower_http::follow_redirect::FollowRedirect;

use crate::probe::hosts;

type Client = BoxedService<Empty<Bytes>>;

const HOSTS: [&str; 3] = ["http://a.example", "https://a.example", "http://b.example"];

/// Sites that answer by a list of numbers, and what they saw.
#[derive(Clone, Default)]
struct Sites {
    answers: Arc<Mutex<VecDeque<u8>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// The token that is blocked, if one is.
    closed_to: Option<String>,
}

#[derive(Clone)]
struct Seen {
    uri: Uri,
    names: Vec<HeaderValue>,
    conditional: bool,
    status: u16,
}

impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.status, self.uri, self.names)
    }
}

impl Sites {
    fn new(answers: &[u8]) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.iter().copied().collect())),
            ..Self::default()
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn answer<B>(&self, request: &Request<B>) -> Result<Response<Full<Bytes>>, io::Error> {
        let headers = request.headers();
        let conditional =
            headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE);
        let robots = request.uri().path() == "/robots.txt";
        // Used up: everything is well from here on.
        let number = self.answers.lock().unwrap().pop_front().unwrap_or(0);
        let mut answer = Response::builder();
        let status = match (number, robots) {
            (1, _) => 301,
            (2, _) => 302,
            (3, _) => {
                answer = answer.header(RETRY_AFTER, 1);
                429
            }
            (4, _) => 429,
            (5, _) => {
                answer = answer.header(RETRY_AFTER, 2);
                503
            }
            (6, _) => 503,
            (7, false) => 403,
            (8, false) => 401,
            (7, true) => 404,
            (9 | 10, _) if conditional => 304,
            (11, _) => 0,
            (12, _) => 500,
            _ => 200,
        };
        let names = headers.get_all(USER_AGENT).iter().cloned().collect();
        self.seen.lock().unwrap().push(Seen {
            uri: request.uri().clone(),
            names,
            conditional,
            status,
        });
        match status {
            0 => return Err(io::Error::other("the connection broke")),
            301 | 302 => {
                let to = HOSTS[usize::from(number) % HOSTS.len()];
                let file = if robots { "robots.txt" } else { "moved" };
                answer = answer.header(LOCATION, format!("{to}/{file}"));
            }
            200 | 304 => {
                answer = answer
                    .header(ETAG, "\"1\"")
                    .header(CACHE_CONTROL, "no-cache");
            }
            _ => {}
        }
        let body = match (status, robots, request.uri().path()) {
            (200, true, _) => match (&self.closed_to, number) {
                (Some(token), _) => format!("User-agent: {token}\nDisallow: /\n"),
                (None, 8) => "User-agent: *\nDisallow: /x\nCrawl-delay: 3\n".to_owned(),
                _ => "Sitemap: http://a.example/sitemap.xml\n".to_owned(),
            },
            (200, _, "/sitemap.xml") => "http://a.example/listed\n".to_owned(),
            (200, ..) => "<link rel=alternate type=application/atom+xml href=/feed>".to_owned(),
            _ => String::new(),
        };
        let kind = if robots || request.uri().path() == "/sitemap.xml" {
            "text/plain"
        } else {
            "text/html"
        };
        answer = answer.status(status).header(CONTENT_TYPE, kind);
        Ok(answer.body(Full::from(body)).unwrap())
    }

    fn client(&self, identity: &Identity) -> Client {
        let sites = self.clone();
        let site = service_fn(move |request: Request<Empty<Bytes>>| {
            let answer = sites.answer(&request);
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                answer
            }
        });
        Etiquette::new(identity.clone()).hosts(hosts()).boxed(site)
    }
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

fn get(url: &str) -> Request<Empty<Bytes>> {
    Request::get(url).body(Empty::new()).unwrap()
}

/// Takes one step. What comes of it is the site's affair: here only what was sent counts.
async fn take(step: &Step, client: &Client, identity: &Identity, session: &Session) {
    match step {
        Step::Crawl(host, page) => {
            let client = FollowRedirect::new(client.clone());
            let answer = client
                .oneshot(get(&format!("{}/{page}", HOSTS[*host])))
                .await;
            if let Ok(answer) = answer {
                let _ = answer.into_body().collect().await;
            }
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
fn judge(seen: &[Seen], identity: &Identity, purpose: PurposeKind) -> Result<(), TestCaseError> {
    let own = identity.user_agent(purpose);
    let token = identity.token_for(purpose).as_str();
    for request in seen {
        // Byte for byte, after a 403 as before it.
        prop_assert_eq!(
            &request.names[..],
            std::slice::from_ref(own),
            "{:?}",
            request
        );
        prop_assert!(own.to_str().unwrap().contains(token), "{token} {own:?}");
    }
    Ok(())
}

/// The token that the rules are looked up for is the one in the header: a group with that very name blocks it.
async fn blocked(identity: &Identity, purpose: PurposeKind) -> Result<(), TestCaseError> {
    let sites = Sites {
        closed_to: Some(identity.token_for(purpose).to_string()),
        ..Sites::default()
    };
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

fn paused<T>(play: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(play)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn each_request_bears_the_name_that_the_rules_are_looked_up_for(
        identity in identities(),
        steps in steps(),
        answers in vec(0..13_u8, 0..60),
    ) {
        paused(async {
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
        let identity = crate::probe::identity();
        paused(async {
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
    for status in [0, 200, 301, 302, 304, 401, 403, 429, 503] {
        assert!(seen.iter().any(|seen| seen.status == status), "{status}");
    }
    for path in [
        "/robots.txt",
        "/sitemap.xml",
        "/.well-known/api-catalog",
        "/moved",
    ] {
        assert!(seen.iter().any(|seen| seen.uri.path() == path), "{path}");
    }
    for robots in [true, false] {
        let of = |seen: &&Seen| seen.conditional && (seen.uri.path() == "/robots.txt") == robots;
        assert!(seen.iter().find(of).is_some(), "no validation: {robots}");
    }
    let retried = seen.windows(2).any(|pair| {
        pair[0].status == 429 && pair[0].uri.path() != "/robots.txt" && pair[1].status != 429
    });
    assert!(retried);
}
