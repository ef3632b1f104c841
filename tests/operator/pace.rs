//! How fast requests arrive, and over how many connections.

use std::num::NonZeroU32;
use std::time::Duration;

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Site};
use tower_etiquette::{Etiquette, HostPolicy, Hosts};

use crate::client::{HttpClient, TOKEN, etiquette, identity, millis, policy};
use crate::with_both_clients;

with_both_clients!(
    a_crawl_delay_of_two_seconds_holds_from_the_first_page_on,
    slow_pages_are_followed_by_longer_pauses,
    twenty_clients_built_apart_keep_one_delay,
    connections_stay_within_the_permits,
);

async fn a_crawl_delay_of_two_seconds_holds_from_the_first_page_on(http: HttpClient) {
    let site = Site::builder()
        .robots("User-agent: *\nCrawl-delay: 2\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(50)));
    let (one, two) = (site.url("/1"), site.url("/2"));
    let (one, two) = tokio::join!(client.get(&one), client.get(&two));
    assert_eq!((one.unwrap().status, two.unwrap().status), (200, 200));
    let log = site.log().entries();
    assert_eq!(log.len(), 3);
    promises::robots_first(&log).expect_kept();
    promises::smallest_delay(&log, Duration::from_secs(2)).expect_kept();
}

async fn slow_pages_are_followed_by_longer_pauses(http: HttpClient) {
    const SLOW: Duration = Duration::from_millis(600);
    let site = Site::builder()
        .robots("User-agent: *\nAllow: /\n")
        .at("/slow", Answer::html("a page").after(SLOW))
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    // The latency factor is that of the defaults.
    let hosts = Hosts::new(HostPolicy::new().min_delay(millis(100)));
    let client = http.client(&Etiquette::new(identity()).hosts(hosts));
    for path in ["/fast", "/also-fast", "/slow", "/after"] {
        assert_eq!(client.get(&site.url(path)).await.unwrap().status, 200);
    }
    let log = site.log().entries();
    let delays: Vec<Duration> = log
        .windows(2)
        .map(|pair| pair[1].at - pair[0].ended.unwrap())
        .collect();
    let [_, fast, _, slow] = delays[..] else {
        panic!("{:?}", site.log().targets())
    };
    // Five times the latency is left free.
    assert!(slow >= SLOW * 5, "{delays:?}");
    assert!(slow > fast * 2, "{delays:?}");
}

/// The host state that a whole process shares is what keeps twenty handlers from being twenty clients.
async fn twenty_clients_built_apart_keep_one_delay(http: HttpClient) {
    // A name of its own for each test, since the process is shared with the other one.
    let host = match http {
        HttpClient::Hyper => "127.0.0.1",
        HttpClient::Reqwest => "localhost",
    };
    let site = Site::builder()
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..20 {
        let url = site.url_as(host, &format!("/{n}"));
        tasks.spawn(async move {
            let client = http.client(&Etiquette::new(identity()));
            let _ = client.get(&url).await;
        });
    }
    tokio::time::sleep(millis(4_500)).await;
    drop(tasks);
    let log = site.log().entries();
    assert!(log.len() >= 3, "{:?}", site.log().targets());
    promises::named(&log, TOKEN).expect_kept();
    promises::robots_first(&log).expect_kept();
    promises::smallest_delay(&log, Duration::from_secs(1)).expect_kept();
}

async fn connections_stay_within_the_permits(http: HttpClient) {
    const MAX_IN_FLIGHT: u32 = 2;
    let site = Site::builder()
        .otherwise(
            Answer::html("a page")
                .after(millis(100))
                .trickle(millis(100)),
        )
        .start()
        .await
        .unwrap();
    let permits = NonZeroU32::new(MAX_IN_FLIGHT).unwrap();
    // Long enough for a connection to be back in the pool when the next request starts.
    let policy = policy(millis(100)).max_in_flight(permits);
    let etiquette = Etiquette::new(identity()).hosts(Hosts::new(policy));
    let client = http.client(&etiquette);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (client, url) = (client.clone(), site.url(&format!("/{n}")));
        tasks.spawn(async move { client.get(&url).await.unwrap().status });
    }
    let statuses = tasks.join_all().await;
    assert_eq!(statuses, [200; 8]);
    let log = site.log().entries();
    assert_eq!(log.len(), 9);
    assert_eq!(promises::most_at_once(&log), MAX_IN_FLIGHT as usize);
    assert!(site.log().connections() <= u64::from(MAX_IN_FLIGHT));
}
