//! The cache between tower's neighbours: who asks, who waits, and what is kept of what broke off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use etiquette_tests::client::{fetch, get as request};
use etiquette_tests::paused::in_time;
use etiquette_tests::site::{Answer, Script, Site, SiteService};
use http_body_util::BodyExt;
use tokio::time::timeout;
use tower::limit::ConcurrencyLimitLayer;
use tower::{ServiceBuilder, ServiceExt};
use tower_etiquette::conditional_cache::{CacheStatus, ConditionalCacheLayer};
use tower_etiquette::{BoxError, BoxedService};

use crate::site::{Client, STEP};

const BODY: [&str; 3] = ["one", "two", "six"];

/// What the site does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Answers,
    /// The head does not come.
    HangsUp,
    /// The service panics instead.
    Panics,
    /// The body breaks off after its first chunk.
    BreaksOff,
    /// The body ends after its first chunk as if that were all.
    EndsEarly,
}

impl Behaviour {
    /// The answer, step by step. It can be stored for a minute.
    fn answer(self) -> Answer {
        let with = |chunks: &[&'static str]| {
            let answer = Answer::status(200)
                .header("cache-control", "max-age=60")
                .header("etag", "\"a\"")
                .header("content-length", "9");
            let answer = answer.pieces(chunks.to_vec(), STEP);
            answer.ends_after(STEP)
        };
        let answer = match self {
            Self::Answers => with(&BODY),
            Self::HangsUp => Answer::hang_up(),
            Self::Panics => Answer::panic(),
            Self::BreaksOff => with(&BODY[..1]).breaks_off(),
            Self::EndsEarly => with(&BODY[..1]),
        };
        answer.after(STEP)
    }
}

/// The site, and what it does now.
#[derive(Clone)]
struct Origin {
    service: SiteService,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl Origin {
    fn new(behaviour: Behaviour) -> Self {
        let behaviour = Arc::new(Mutex::new(behaviour));
        let now = Arc::clone(&behaviour);
        let script = Script::call(move |_| now.lock().unwrap().answer());
        Self {
            service: Site::builder().otherwise(script).in_process(),
            behaviour,
        }
    }

    /// How many requests there were.
    fn asked(&self) -> usize {
        self.service.log().entries().len()
    }
}

/// Where a limit of one stands.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    Over,
    Under,
}

const LIMITS: [Limit; 3] = [Limit::None, Limit::Over, Limit::Under];

fn client(limit: Limit, behaviour: Behaviour) -> (Client, Origin) {
    let origin = Origin::new(behaviour);
    let site = origin.service.clone();
    let cache = ConditionalCacheLayer::new();
    let one = ConcurrencyLimitLayer::new(1);
    let client = match limit {
        Limit::None => BoxedService::new(ServiceBuilder::new().layer(cache).service(site)),
        Limit::Over => {
            BoxedService::new(ServiceBuilder::new().layer(one).layer(cache).service(site))
        }
        Limit::Under => {
            BoxedService::new(ServiceBuilder::new().layer(cache).layer(one).service(site))
        }
    };
    (client, origin)
}

/// The body, and whether it came from the store.
async fn get(client: &Client) -> Result<(String, bool), BoxError> {
    let page = fetch(client.clone(), request(PAGE)).await?;
    let status = page.facts.cache_status();
    let hit = status.as_ref().is_some_and(CacheStatus::is_from_store);
    Ok((String::from_utf8(page.body.to_vec()).unwrap(), hit))
}

const PAGE: &str = "http://site.example/page";

fn whole(hit: bool) -> (String, bool) {
    ("onetwosix".to_owned(), hit)
}

/// Whether neither a request nor a body is under way.
fn assert_idle(origin: &Origin, when: &str) {
    assert_eq!(origin.service.log().in_flight(), 0, "{when}");
}

/// Moments that hit every step of an answer, and the instants between two.
fn moments() -> impl Iterator<Item = Duration> {
    let half = STEP / 2;
    (0..)
        .map(move |n| half * n)
        .take_while(|&at| at <= STEP * 6)
}

#[tokio::test(start_paused = true)]
async fn whenever_the_leader_is_dropped_another_goes_on_and_nothing_stays_behind() {
    for limit in LIMITS {
        for after in moments() {
            let when = format!("{limit:?}, dropped after {after:?}");
            let (client, origin) = client(limit, Behaviour::Answers);
            let leader = timeout(after, get(&client));
            let others = async { tokio::join!(get(&client), get(&client)) };
            let (_, others) = in_time(&when, async { tokio::join!(leader, others) }).await;
            assert_eq!(others.0.unwrap().0, "onetwosix", "{when}");
            assert_eq!(others.1.unwrap().0, "onetwosix", "{when}");
            assert_eq!(
                in_time(&when, get(&client)).await.unwrap(),
                whole(true),
                "{when}"
            );
            assert!(origin.asked() <= 2, "{when}");
            assert_idle(&origin, &when);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lone_caller_who_is_dropped_leaves_nothing_stored_but_a_whole() {
    for limit in LIMITS {
        for after in moments() {
            let when = format!("{limit:?}, dropped after {after:?}");
            let (client, origin) = client(limit, Behaviour::Answers);
            let had_all = timeout(after, get(&client)).await.is_ok();
            assert_idle(&origin, &when);
            let (body, hit) = in_time(&when, get(&client)).await.unwrap();
            assert_eq!(body, "onetwosix", "{when}");
            // One who has all of it finds it in the store; one who was dropped may have been late by an instant only.
            assert!(hit || !had_all, "{when}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_failure_is_one_request_and_an_error_for_all() {
    for limit in [Limit::None, Limit::Under] {
        for behaviour in [
            Behaviour::HangsUp,
            Behaviour::Panics,
            Behaviour::BreaksOff,
            Behaviour::EndsEarly,
        ] {
            let when = format!("{limit:?}, {behaviour:?}");
            let (client, origin) = client(limit, behaviour);
            let all = async { tokio::join!(get(&client), get(&client), get(&client)) };
            let all = in_time(&when, all).await;
            assert!(
                all.0.is_err() && all.1.is_err() && all.2.is_err(),
                "{when}: {all:?}"
            );
            assert_eq!(origin.asked(), 1, "{when}");
            assert_idle(&origin, &when);
            // Neither is it remembered, nor is any of the body.
            *origin.behaviour.lock().unwrap() = Behaviour::Answers;
            assert_eq!(
                in_time(&when, get(&client)).await.unwrap(),
                whole(false),
                "{when}"
            );
            assert_eq!(
                in_time(&when, get(&client)).await.unwrap(),
                whole(true),
                "{when}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_does_not_read_holds_neither_the_others_nor_the_store() {
    for limit in [Limit::None, Limit::Under] {
        let when = format!("{limit:?}");
        let (client, origin) = client(limit, Behaviour::Answers);
        let unread = in_time(&when, client.clone().oneshot(request(PAGE)))
            .await
            .unwrap();
        assert_eq!(
            in_time(&when, get(&client)).await.unwrap(),
            whole(false),
            "{when}"
        );
        assert_eq!(
            in_time(&when, get(&client)).await.unwrap(),
            whole(true),
            "{when}"
        );
        assert_idle(&origin, &when);
        let body = in_time(&when, unread.into_body().collect()).await.unwrap();
        assert_eq!(body.to_bytes(), "onetwosix", "{when}");
        assert_eq!(origin.asked(), 1, "{when}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stored_answer_needs_no_permit_under_a_full_limit() {
    let (client, origin) = client(Limit::Under, Behaviour::Answers);
    assert_eq!(get(&client).await.unwrap(), whole(false));
    let other = request("http://site.example/other");
    let mut other = std::pin::pin!(client.clone().oneshot(other));
    // The only permit is taken by a request that nobody carries on.
    assert!(timeout(STEP / 2, &mut other).await.is_err());
    assert_eq!(in_time("a hit", get(&client)).await.unwrap(), whole(true));
    assert_eq!(origin.asked(), 2);
}
