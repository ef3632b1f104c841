//! What several processes make of one robots.txt when all of them wait for a long pause: on paused time, with a store in
//! memory that keeps a claim for a minute, as a server does.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use etiquette_core::decide::robots_txt::{StoredOutcome, StoredRobots};
use etiquette_core::store::{Claim, RobotsKey, RobotsStore, StoreFuture};
use http::{Request, Response};
use http_body_util::{Empty, Full};
use tokio::time::Instant;
use tower::{ServiceExt, service_fn};
use tower_etiquette::{
    BoxError, BoxedService, Etiquette, HostPolicy, Hosts, Identity, PausedClock,
};

const CLAIM: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Shelf(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    record: Option<StoredRobots>,
    claimed_until: Option<Instant>,
}

fn rules(record: &mut StoredRobots) -> Option<&mut Option<Bytes>> {
    match &mut record.copy.as_mut()?.outcome {
        StoredOutcome::Rules(bytes) => Some(bytes),
        _ => None,
    }
}

impl RobotsStore for Shelf {
    fn load<'a>(&'a self, _: &'a RobotsKey) -> StoreFuture<'a, Option<StoredRobots>> {
        let record = self.0.lock().unwrap().record.clone();
        Box::pin(std::future::ready(Ok(record)))
    }

    fn save<'a>(&'a self, _: &'a RobotsKey, mut record: StoredRobots) -> StoreFuture<'a, ()> {
        let mut kept = self.0.lock().unwrap();
        // A copy that was confirmed comes without its bytes: they stay.
        let before = kept.record.as_mut().and_then(rules).cloned().flatten();
        if let Some(bytes @ None) = rules(&mut record) {
            *bytes = before;
        }
        *kept = Kept {
            record: Some(record),
            claimed_until: None,
        };
        Box::pin(std::future::ready(Ok(())))
    }

    fn claim<'a>(&'a self, _: &'a RobotsKey) -> StoreFuture<'a, Claim> {
        let mut kept = self.0.lock().unwrap();
        let now = Instant::now();
        let taken = kept.claimed_until.is_some_and(|until| now < until);
        let claim = if taken {
            Claim::Taken(Duration::from_millis(100))
        } else {
            kept.claimed_until = Some(now + CLAIM);
            Claim::Granted
        };
        Box::pin(std::future::ready(Ok(claim)))
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_long_pause_one_process_asks_for_the_rules_again() {
    let clock = Arc::new(PausedClock::new(
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_076_000),
    ));
    let rules = Arc::new(Mutex::new(Vec::new()));
    let (asked, busy) = (Arc::clone(&rules), Arc::new(AtomicU32::new(0)));
    let site = service_fn(move |request: Request<Empty<Bytes>>| {
        let response = Response::builder();
        let (response, body) = match request.uri().path() {
            "/robots.txt" => {
                let known = request.headers().contains_key("if-none-match");
                let status = if known { 304 } else { 200 };
                asked.lock().unwrap().push(status);
                (response.status(status).header("etag", "\"a\""), "")
            }
            // Once for each of the processes.
            "/busy" if busy.fetch_add(1, Ordering::SeqCst) < 2 => {
                (response.status(429).header("retry-after", "300"), "")
            }
            _ => (response.status(200), "page"),
        };
        let response = response.body(Full::<Bytes>::from(body)).unwrap();
        std::future::ready(Ok::<_, BoxError>(response))
    });
    let shelf = Arc::new(Shelf::default());
    let process = || -> BoxedService<Empty<Bytes>> {
        let hosts = Hosts::builder()
            .policy(HostPolicy::new())
            .clock(Arc::clone(&clock) as _)
            .build();
        let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html");
        Etiquette::new(identity.build().unwrap())
            .hosts(hosts)
            .robots(|robots| {
                robots
                    .store(Arc::clone(&shelf) as _)
                    .clock(Arc::clone(&clock) as _)
            })
            .boxed(site.clone())
    };
    let (one, two) = (process(), process());
    let get = |process: &BoxedService<Empty<Bytes>>, path: &str| {
        let url = format!("http://site.example{path}");
        let request = Request::get(url).body(Empty::new()).unwrap();
        process.clone().oneshot(request)
    };
    get(&one, "/").await.unwrap();
    get(&two, "/").await.unwrap();
    assert_eq!(*rules.lock().unwrap(), [200], "one reads for both");
    let begin = Instant::now();
    let (first, second) = tokio::join!(get(&one, "/busy"), get(&two, "/busy"));
    assert_eq!(
        (first.unwrap().status(), second.unwrap().status()),
        (http::StatusCode::OK, http::StatusCode::OK)
    );
    assert!(begin.elapsed() >= Duration::from_secs(300));
    assert_eq!(*rules.lock().unwrap(), [200, 304], "and one asks again");
}
