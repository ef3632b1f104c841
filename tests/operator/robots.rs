//! What robots.txt forbids does not arrive.

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Site};
use tower_etiquette::Refusal;

use crate::client::{TOKEN, Wire, etiquette, millis, refusal};
use crate::with_both_clients;

with_both_clients!(
    unreachable_rules_admit_nothing,
    a_group_for_the_client_shuts_it_out,
    refusals_name_rule_and_line,
    a_redirect_hop_meets_the_rules_of_its_own_host,
);

async fn unreachable_rules_admit_nothing(wire: Wire) {
    let site = Site::builder()
        .at("/robots.txt", Answer::status(503))
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = wire.client(&etiquette(millis(50)));
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

async fn a_group_for_the_client_shuts_it_out(wire: Wire) {
    let site = Site::builder()
        .robots("User-agent: *\nAllow: /\n\nUser-agent: ExampleBot\nDisallow: /\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = wire.client(&etiquette(millis(50)));
    for path in ["/", "/other?query"] {
        let refusal = client.refused(&site.url(path)).await;
        assert_eq!(refusal.kind(), "disallowed");
    }
    assert_eq!(site.log().targets(), ["/robots.txt"]);
    let name = site.log().entries()[0].user_agent().to_owned();
    assert!(name.contains("ExampleBot/0.1"), "{name}");
}

async fn refusals_name_rule_and_line(wire: Wire) {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow: /a\nDisallow: /private/\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let client = wire.client(&etiquette(millis(50)));
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

async fn a_redirect_hop_meets_the_rules_of_its_own_host(wire: Wire) {
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
    let client = wire.client(&etiquette(millis(50)));
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
        promises::smallest_gap(&log.entries(), millis(50)).expect_kept();
    }
}
