//! What robots.txt forbids does not arrive.

use std::time::Duration;

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Site};
use tower_etiquette::Refusal;

use crate::client::{HttpClient, TOKEN, etiquette, eventually, millis, refusal};
use crate::with_both_clients;

with_both_clients!(
    unreachable_rules_admit_nothing,
    a_group_for_the_client_blocks_it,
    refusals_name_rule_and_line,
    a_redirect_hop_meets_the_rules_of_its_own_host,
    many_who_wait_cost_one_request_though_half_give_up,
    queued_pages_meet_the_rules_of_their_start,
    an_origin_that_was_forgotten_is_asked_again,
);

async fn unreachable_rules_admit_nothing(http: HttpClient) {
    let site = Site::builder()
        .at("/robots.txt", Answer::status(503))
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(50)));
    let (one, two) = (site.url("/"), site.url("/other"));
    let refusals = tokio::join!(client.refused(&one), client.refused(&two));
    let later = client.refused(&one).await;
    for refusal in [refusals.0, refusals.1, later] {
        assert!(refusal.retry_at().is_some(), "{refusal:?}");
    }
    assert!(!site.log().entries().is_empty());
    assert_eq!(site.log().pages().len(), 0, "{:?}", site.log().targets());
    promises::named(&site.log().entries(), TOKEN).expect_kept();
}

async fn a_group_for_the_client_blocks_it(http: HttpClient) {
    let site = Site::builder()
        .robots("User-agent: *\nAllow: /\n\nUser-agent: ExampleBot\nDisallow: /\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(50)));
    for path in ["/", "/other?query"] {
        let refusal = client.refused(&site.url(path)).await;
        assert_eq!(refusal.kind(), "disallowed");
    }
    assert_eq!(site.log().targets(), ["/robots.txt"]);
    let name = site.log().entries()[0].user_agent().to_owned();
    assert!(name.contains("ExampleBot/0.1"), "{name}");
}

async fn refusals_name_rule_and_line(http: HttpClient) {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /a\nDisallow: /private/\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(50)));
    let refusal = client.refused(&site.url("/private/x")).await;
    let Refusal::Disallowed(leaf) = &refusal else {
        panic!("{refusal:?}")
    };
    let rule = refusal.rule().unwrap();
    assert_eq!(rule.line(), 3);
    assert!(rule.to_string().contains("/private/"), "{rule}");
    assert_eq!(leaf.origin.to_string(), site.url(""));
    assert_eq!(client.get(&site.url("/public")).await.unwrap().status, 200);
    assert_eq!(site.log().targets(), ["/robots.txt", "/public"]);
}

async fn a_redirect_hop_meets_the_rules_of_its_own_host(http: HttpClient) {
    let other = Site::builder()
        .robots("User-agent: *\nDisallow: /private/\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let site = Site::builder()
        .robots("User-agent: *\nAllow: /\n")
        .at(
            "/in",
            Answer::redirect(&other.url_as("localhost", "/private/x")),
        )
        .at(
            "/out",
            Answer::redirect(&other.url_as("localhost", "/public")),
        )
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(50)));
    let refusal = refusal(client.follow(&site.url("/in")).await);
    assert_eq!(refusal.kind(), "disallowed");
    assert_eq!(refusal.origin().unwrap().host(), "localhost");
    assert_eq!(other.log().targets(), ["/robots.txt"]);
    let page = client.follow(&site.url("/out")).await.unwrap();
    assert_eq!(page.status, 200);
    assert_eq!(other.log().targets(), ["/robots.txt", "/public"]);
    assert_eq!(site.log().targets(), ["/robots.txt", "/in", "/out"]);
    for log in [site.log(), other.log()] {
        promises::named(&log.entries(), TOKEN).expect_kept();
        promises::robots_first(&log.entries()).expect_kept();
        promises::smallest_delay(&log.entries(), millis(50)).expect_kept();
    }
}

async fn many_who_wait_cost_one_request_though_half_give_up(http: HttpClient) {
    let rules = Answer::text("User-agent: *\nDisallow: /private/\n");
    let site = Site::builder()
        .at("/robots.txt", rules.after(millis(1_000)))
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(Duration::ZERO));
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..200 {
        let (client, url) = (client.clone(), site.url("/private/x"));
        // Those who give up do so one after another, while the answer is on its way.
        let patience = millis(if n < 100 { 5 * n } else { 30_000 });
        tasks.spawn(async move { tokio::time::timeout(patience, client.refused(&url)).await });
    }
    let outcomes = tasks.join_all().await;
    let refused = outcomes
        .iter()
        .flatten()
        .filter(|refusal| refusal.kind() == "disallowed")
        .count();
    assert_eq!(refused, 100);
    assert_eq!(site.log().targets(), ["/robots.txt"]);
}

async fn queued_pages_meet_the_rules_of_their_start(http: HttpClient) {
    let site = Site::builder()
        .at(
            "/robots.txt",
            [
                Answer::text("User-agent: *\nAllow: /\n"),
                Answer::text("User-agent: *\nDisallow: /\n"),
            ],
        )
        .at("/busy", Answer::too_many(1))
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = http.client(&etiquette(millis(20)));
    // The pause after this ends the life of the rules that the queued pages were admitted by.
    let busy = tokio::spawn({
        let (client, url) = (client.clone(), site.url("/busy"));
        async move { client.refused(&url).await }
    });
    eventually("the 429", || site.log().targets().len() == 2).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..30 {
        let (client, url) = (client.clone(), site.url(&format!("/{n}")));
        tasks.spawn(async move { client.refused(&url).await });
    }
    for refusal in tasks.join_all().await {
        assert_eq!(refusal.kind(), "disallowed");
    }
    assert_eq!(busy.await.unwrap().kind(), "disallowed");
    assert_eq!(
        site.log().targets(),
        ["/robots.txt", "/busy", "/robots.txt"]
    );
    promises::pause_kept(&site.log().entries(), Duration::ZERO).expect_kept();
}

async fn an_origin_that_was_forgotten_is_asked_again(http: HttpClient) {
    let rules = "User-agent: *\nDisallow: /private/\n";
    let (one, two) = tokio::join!(
        Site::builder().robots(rules).start(),
        Site::builder().robots(rules).start(),
    );
    let (one, two) = (one.unwrap(), two.unwrap());
    let client = http.client(&etiquette(millis(20)).robots(|layer| layer.max_origins(1)));
    for _ in 0..3 {
        for site in [&one, &two] {
            let refusal = client.refused(&site.url("/private/x")).await;
            assert_eq!(refusal.kind(), "disallowed");
        }
    }
    for site in [&one, &two] {
        assert!(site.log().entries().len() > 1, "it was forgotten");
        assert_eq!(site.log().pages().len(), 0);
    }
}
