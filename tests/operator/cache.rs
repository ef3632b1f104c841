//! A second visit costs the site a conditional request, or nothing.

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Site};

use crate::client::{HttpClient, etiquette, millis};
use crate::with_both_clients;

with_both_clients!(
    the_second_run_is_conditional,
    one_url_asked_for_by_many_costs_one_request,
);

async fn the_second_run_is_conditional(http: HttpClient) {
    const CHANGED: &str = "Sun, 01 Nov 2026 08:00:00 GMT";
    let fresh = Answer::html("good for a minute")
        .etag("\"f\"")
        .header("cache-control", "max-age=60");
    let stale = Answer::html("ask each time")
        .last_modified(CHANGED)
        .header("cache-control", "no-cache");
    let site = Site::builder()
        .at("/fresh", fresh)
        .at("/tag", Answer::html("tagged").etag("W/\"t\""))
        .at("/date", stale)
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(30)));
    for _ in 0..2 {
        for (path, body) in [
            ("/fresh", "good for a minute"),
            ("/tag", "tagged"),
            ("/date", "ask each time"),
        ] {
            let page = client.get(&site.url(path)).await.unwrap();
            assert_eq!((page.status, &page.body[..]), (200, body.as_bytes()));
        }
        site.log().next_run();
    }
    let log = site.log().entries();
    let second: Vec<&str> = log
        .iter()
        .filter(|entry| entry.run == 2)
        .map(|entry| entry.path())
        .collect();
    assert_eq!(second, ["/tag", "/date"]);
    promises::second_run_conditional(&log).expect_kept();
}

async fn one_url_asked_for_by_many_costs_one_request(http: HttpClient) {
    let page = Answer::html("shared")
        .header("cache-control", "max-age=60")
        .after(millis(100));
    let site = Site::builder().at("/page", page).start().await.unwrap();
    let client = http.client(&etiquette(millis(30)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (client, url) = (client.clone(), site.url("/page"));
        tasks.spawn(async move { client.get(&url).await.unwrap().body });
    }
    for body in tasks.join_all().await {
        assert_eq!(&body[..], b"shared");
    }
    assert_eq!(site.log().targets(), ["/robots.txt", "/page"]);
}
