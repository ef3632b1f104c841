//! After "later, please" nothing arrives until later.

use std::time::Duration;

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Site};

use crate::client::{HttpClient, TOKEN, etiquette, eventually, millis};
use crate::with_both_clients;

with_both_clients!(
    after_retry_after_the_page_is_fetched_at_a_lower_rate,
    issue_3_queued_requests_wait_for_the_end_of_the_pause,
);

async fn after_retry_after_the_page_is_fetched_at_a_lower_rate(http: HttpClient) {
    let site = Site::builder()
        .robots("User-agent: *\nAllow: /\n")
        .at("/busy", [Answer::too_many(4), Answer::html("in the end")])
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(100)));
    assert_eq!(client.get(&site.url("/a")).await.unwrap().status, 200);
    let page = client.get(&site.url("/busy")).await.unwrap();
    assert_eq!((page.status, &page.body[..]), (200, &b"in the end"[..]));
    assert!(page.facts.waited() >= Duration::from_secs(4));
    assert_eq!(client.get(&site.url("/b")).await.unwrap().status, 200);
    let log = site.log().entries();
    promises::named(&log, TOKEN).expect_kept();
    promises::pause_kept(&log, Duration::ZERO).expect_kept();
    promises::slower_afterwards(&log).expect_kept();
    promises::smallest_delay(&log, millis(100)).expect_kept();
}

async fn issue_3_queued_requests_wait_for_the_end_of_the_pause(http: HttpClient) {
    let busy = Site::builder()
        .robots("User-agent: *\nAllow: /\n")
        .at("/5", [Answer::too_many(3), Answer::html("in the end")])
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let idle = Site::builder()
        .robots("User-agent: *\nAllow: /\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(50)));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..40 {
        let (client, url) = (client.clone(), busy.url(&format!("/{n}")));
        tasks.spawn(async move { client.get(&url).await.map(|page| page.status) });
    }
    let log = busy.log();
    let paused = || log.entries().iter().find_map(|entry| entry.pause());
    eventually("the 429", || paused().is_some()).await;
    let (from, to) = paused().unwrap();

    // The other host is visited one page after the other for as long as the pause lasts.
    let mut visits = 0;
    while log.now() < to {
        let url = idle.url_as("localhost", &format!("/{visits}"));
        let page = client.get(&url).await.unwrap();
        assert_eq!(page.status, 200);
        visits += 1;
    }
    // At its delay of 50 ms a pause has room for 60 of them; a machine under load may make do with a fifth.
    assert!(visits >= 12, "{visits} visits of the other host");

    let afterwards = || log.entries().iter().filter(|entry| entry.at >= to).count();
    eventually("requests after the pause", || afterwards() >= 3).await;
    drop(tasks);
    let entries = log.entries();
    assert!(
        entries
            .iter()
            .all(|entry| entry.at < from || entry.at >= to)
    );
    promises::pause_kept(&entries, Duration::ZERO).expect_kept();
    promises::slower_afterwards(&entries).expect_kept();
    promises::smallest_delay(&entries, millis(50)).expect_kept();
    promises::smallest_delay(&idle.log().entries(), millis(50)).expect_kept();
}
