//! What several processes make of one robots.txt when all of them wait for a long pause: on paused time, with a store in
//! memory that keeps a claim for a minute, as a server does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use etiquette_core::decide::robots_txt::{StoredOutcome, StoredRobots};
use etiquette_core::store::{Claim, RobotsKey, RobotsStore, StoreFuture};
use etiquette_tests::client::{self, fetch, identity};
use etiquette_tests::paused;
use etiquette_tests::site::{Answer, Site};
use http_body_util::Empty;
use tokio::time::Instant;
use tower_etiquette::{BoxedService, Etiquette, HostPolicy, Hosts};

const CLAIM: Duration = Duration::from_secs(60);

/// A store in memory of the one robots.txt of this test.
#[derive(Debug, Default)]
struct MemoryRules(Mutex<Kept>);

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

impl RobotsStore for MemoryRules {
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
    let clock = paused::clock_at(1_796_076_000);
    let busy = || Answer::retry_after(429, 300);
    let page = || Answer::status(200).body("page");
    let site = Site::builder()
        .at("/robots.txt", Answer::status(200).etag("\"a\""))
        // Once for each of the processes.
        .at("/busy", [busy(), busy(), page()])
        .otherwise(page())
        .in_process();
    let rules = || -> Vec<u16> {
        let entries = site.log().entries().into_iter();
        let rules = entries.filter(|entry| entry.is_robots_txt());
        rules
            .filter_map(|entry| Some(entry.status?.as_u16()))
            .collect()
    };
    let store = Arc::new(MemoryRules::default());
    let process = || -> BoxedService<Empty<Bytes>> {
        let hosts = Hosts::builder()
            .policy(HostPolicy::new())
            .clock(Arc::clone(&clock) as _)
            .build();
        Etiquette::new(identity())
            .hosts(hosts)
            .robots(|robots| {
                robots
                    .store(Arc::clone(&store) as _)
                    .clock(Arc::clone(&clock) as _)
            })
            .boxed(site.clone())
    };
    let (one, two) = (process(), process());
    let get = |process: &BoxedService<Empty<Bytes>>, path: &str| {
        fetch(
            process.clone(),
            client::get(&format!("http://site.example{path}")),
        )
    };
    get(&one, "/").await.unwrap();
    get(&two, "/").await.unwrap();
    assert_eq!(rules(), [200], "one reads for both");
    let begin = Instant::now();
    let (first, second) = tokio::join!(get(&one, "/busy"), get(&two, "/busy"));
    assert_eq!((first.unwrap().status, second.unwrap().status), (200, 200));
    assert!(begin.elapsed() >= Duration::from_secs(300));
    assert_eq!(rules(), [200, 304], "and one asks again");
}
