//! HTTPS with a root certificate of the site's own, over HTTP/1.1 and HTTP/2.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Authority, Site};
use http::Version;
use tower_etiquette::client::Client as ReadyMade;
use tower_etiquette::{Etiquette, Hosts};
use tower_etiquette_reqwest::ReqwestService;

use crate::client::{Client, TOKEN, identity, millis, policy, reqwest_builder};

const HOST: &str = "site.test";
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn site(authority: &Arc<Authority>) -> Site {
    Site::builder()
        .https(authority)
        .robots("User-agent: *\nDisallow: /private/\nCrawl-delay: 0.2\n")
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap()
}

/// What the site must have seen of a client that asked for `/a`, `/private/x` and `/b`.
fn judge(site: &Site, version: Version) {
    let log = site.log().entries();
    assert_eq!(site.log().targets(), ["/robots.txt", "/a", "/b"]);
    assert!(log.iter().all(|entry| entry.version == version), "{log:?}");
    assert!(
        log.iter()
            .all(|e| e.host == format!("{HOST}:{}", site.port()))
    );
    promises::named(&log, TOKEN).expect_kept();
    promises::robots_first(&log).expect_kept();
    promises::smallest_delay(&log, millis(200)).expect_kept();
    assert_eq!(site.log().connections(), 1);
}

async fn ready_made(alpn: &[&str], version: Version) {
    let authority = Authority::new(&[HOST], alpn);
    let site = site(&authority).await;
    let client = ReadyMade::builder(identity())
        .hosts(Hosts::new(policy(millis(50))))
        .resolve(HOST, site.port(), LOCAL)
        .root_certificate(authority.root_der().to_vec())
        .build()
        .unwrap();
    for path in ["/a", "/private/x", "/b"] {
        let answer = client.get(&site.url_as(HOST, path)).await;
        if path == "/private/x" {
            let error = answer.unwrap_err();
            assert_eq!(error.refusal().unwrap().kind(), "disallowed");
        } else {
            let text = answer.unwrap().into_body().text(1024).await.unwrap();
            assert_eq!(text, "a page");
        }
    }
    judge(&site, version);
}

async fn reqwest_adapter(alpn: &[&str], version: Version) {
    let authority = Authority::new(&[HOST], alpn);
    let site = site(&authority).await;
    let builder =
        reqwest_builder(&[authority.root_der()]).resolve(HOST, (LOCAL, site.port()).into());
    let etiquette = Etiquette::new(identity()).hosts(Hosts::new(policy(millis(50))));
    let service = ReqwestService::from_builder(builder).unwrap();
    let client = Client::new(etiquette.boxed(service));
    for path in ["/a", "/private/x", "/b"] {
        let url = site.url_as(HOST, path);
        if path == "/private/x" {
            assert_eq!(client.refused(&url).await.kind(), "disallowed");
        } else {
            assert_eq!(&client.get(&url).await.unwrap().body[..], b"a page");
        }
    }
    judge(&site, version);
}

#[tokio::test]
async fn ready_made_client_over_http_1() {
    ready_made(&["http/1.1"], Version::HTTP_11).await;
}

#[tokio::test]
async fn ready_made_client_over_http_2() {
    ready_made(&["h2", "http/1.1"], Version::HTTP_2).await;
}

#[tokio::test]
async fn reqwest_over_http_1() {
    reqwest_adapter(&["http/1.1"], Version::HTTP_11).await;
}

#[tokio::test]
async fn reqwest_over_http_2() {
    reqwest_adapter(&["h2", "http/1.1"], Version::HTTP_2).await;
}

#[tokio::test]
async fn a_root_that_is_not_trusted_admits_nothing() {
    let authority = Authority::new(&[HOST], &["http/1.1"]);
    let site = site(&authority).await;
    let client = ReadyMade::builder(identity())
        .hosts(Hosts::new(policy(millis(50))))
        .resolve(HOST, site.port(), LOCAL)
        .build()
        .unwrap();
    // Rules that cannot be read over a trusted connection are unreachable rules.
    let error = client.get(&site.url_as(HOST, "/a")).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().kind(), "robots_unreachable");
    assert_eq!(site.log().entries().len(), 0);
}
