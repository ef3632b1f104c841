//! What a site does not see: requests under another name, and pages that nobody asked for.

use etiquette_tests::site::{Answer, Site};
use http::header::USER_AGENT;
use tower_etiquette::{Etiquette, Hosts, Identity, Purpose, Session};

use crate::client::{Client, HttpClient, etiquette, millis, policy, refusal, request};
use crate::with_both_clients;

with_both_clients!(
    another_name_is_refused_before_a_socket_is_opened,
    a_grant_is_for_one_page_once,
);

const PAGE: &str = "/page";

async fn site() -> Site {
    Site::builder()
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap()
}

fn client(http: HttpClient) -> Client {
    let identity = Identity::builder("ExampleBot", "0.1", "https://www.example.com/bot.html")
        .user_token("Example-User")
        .build()
        .unwrap();
    http.client(&Etiquette::new(identity).hosts(Hosts::new(policy(millis(20)))))
}

async fn another_name_is_refused_before_a_socket_is_opened(http: HttpClient) {
    let site = site().await;
    let client = client(http);
    let link = "https://www.example.com/bot.html";
    for (name, kind) in [
        (
            "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0".to_owned(),
            "disguise",
        ),
        (
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)".to_owned(),
            "impersonation",
        ),
        (format!("GPTBot/1.2 ({link})"), "impersonation"),
        (String::new(), "unidentified"),
        // Its own name, but that of the other purpose.
        (format!("Example-User/0.1 ({link})"), "unidentified"),
    ] {
        let mut crawl = request(&site.url(PAGE));
        let header = name.parse().unwrap();
        crawl.headers_mut().insert(USER_AGENT, header);
        let refused = refusal(client.send(crawl).await);
        assert_eq!(refused.kind(), kind, "{name}");
        assert_eq!(refused.contact(), Some(link));
    }
    assert_eq!(site.log().connections(), 0);
    // Its own name passes, so that the log is one that could have shown the others.
    assert_eq!(client.get(&site.url(PAGE)).await.unwrap().status, 200);
    assert_eq!(site.log().targets(), ["/robots.txt", PAGE]);
}

async fn a_grant_is_for_one_page_once(http: HttpClient) {
    let site = site().await;
    let client = client(http);
    let session = Session::new();
    let asked = |path: &str, purpose: &Purpose| {
        let mut request = request(&site.url(path));
        request.extensions_mut().insert(purpose.clone());
        request
    };
    let grant = session.grant(&site.url(PAGE).parse().unwrap()).unwrap();
    let purpose = Purpose::UserFetch(grant);
    let other = refusal(client.send(asked("/other", &purpose)).await);
    assert_eq!(other.kind(), "not_the_granted_url");
    let mut post = asked(PAGE, &purpose);
    *post.method_mut() = http::Method::POST;
    assert_eq!(refusal(client.send(post).await).kind(), "method");
    assert_eq!(site.log().connections(), 0);

    let page = client.send(asked(PAGE, &purpose)).await.unwrap();
    assert_eq!(page.status, 200);
    let (seen, connections) = (site.log().targets(), site.log().connections());
    assert_eq!(seen, ["/robots.txt", PAGE]);
    for path in [PAGE, "/other"] {
        let refused = refusal(client.send(asked(path, &purpose)).await);
        assert_eq!(refused.kind(), "one_page_only");
    }
    assert_eq!(site.log().targets(), seen);
    assert_eq!(site.log().connections(), connections);

    // An identity without a token for it fetches nothing for anybody.
    let nameless = http.client(&etiquette(millis(20)));
    let grant = session.grant(&site.url(PAGE).parse().unwrap()).unwrap();
    let refused = nameless.send(asked(PAGE, &Purpose::UserFetch(grant)));
    assert_eq!(refusal(refused.await).kind(), "no_user_token");
    assert_eq!(site.log().connections(), connections);
}
