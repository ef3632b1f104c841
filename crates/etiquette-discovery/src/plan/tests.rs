use etiquette_robots::Robots;
use http::{HeaderMap, StatusCode, Uri, header};

use super::course::PROBE_BYTES;
use super::*;
use crate::Via;

fn plan() -> Plan {
    let start = "https://www.example.com/a?b#c".parse().unwrap();
    Plan::new(&start)
        .unwrap()
        .token("ExampleBot".parse().unwrap())
}

fn respond(plan: &mut Plan, status: u16, content_type: &str, body: &[u8]) -> Uri {
    let request = plan.next_request().unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
    plan.response(PlannedResponse {
        uri: &request.uri,
        status: StatusCode::from_u16(status).unwrap(),
        headers: &headers,
        body,
    });
    request.uri
}

#[test]
fn an_unreachable_robots_txt_closes_the_site() {
    let mut plan = plan().want(Want::Llms).max_probes(3);
    respond(&mut plan, 503, "text/plain", b"");
    assert_eq!(plan.next_request(), None);
    let findings = plan.finish();
    assert_eq!(findings.robots, RobotsAccess::Unreachable);
    assert!(!findings.start_allowed);
    assert_eq!(findings.requests, ["https://www.example.com/robots.txt"]);
}

#[test]
fn a_disallowed_start_is_not_asked_for_but_its_sitemaps_are_told() {
    let mut plan = plan();
    let robots = b"User-agent: ExampleBot\nDisallow: /a\nSitemap: /s.xml\n";
    respond(&mut plan, 200, "text/plain", robots);
    assert_eq!(plan.next_request(), None);
    let findings = plan.finish();
    assert!(!findings.start_allowed);
    assert_eq!(findings.sources[0].uri, "https://www.example.com/s.xml");
}

#[test]
fn a_robots_txt_that_is_known_costs_nothing() {
    let mut plan = plan().robots(Robots::parse(b"Sitemap: /s.xml\n"));
    let start = respond(&mut plan, 200, "text/html", b"");
    assert_eq!(start, "https://www.example.com/a?b");
    let findings = plan.finish();
    assert_eq!(findings.requests.len(), 1);
    assert_eq!(findings.sources.len(), 1);
}

#[test]
fn a_client_that_obeys_robots_txt_is_not_asked_for_it() {
    let mut plan = plan().client_obeys_robots().want(Want::Llms).max_probes(1);
    let request = plan.next_request().unwrap();
    assert_eq!(request.kind, RequestKind::Start);
    let robots = b"User-agent: ExampleBot\nDisallow: /llms.txt\nSitemap: /s.xml\n";
    plan.learn_robots(&request.uri, Robots::parse(robots));
    respond(&mut plan, 200, "text/html", b"");
    // A probe that the client would refuse is not even tried.
    assert_eq!(plan.next_request(), None);
    assert_eq!(
        plan.finish().sources[0].uri,
        "https://www.example.com/s.xml"
    );
}

#[test]
fn probes_are_bounded_and_must_look_like_what_they_are() {
    let mut plan = plan()
        .want(Want::Sitemap)
        .want(Want::Llms)
        .want(Want::Api)
        .max_probes(200);
    respond(&mut plan, 404, "text/html", b"");
    respond(&mut plan, 200, "text/html", b"");
    respond(&mut plan, 200, "application/xml", b"<html>not found</html>");
    respond(&mut plan, 200, "text/plain", b"<!doctype html>");
    respond(&mut plan, 200, "application/json", b"{\"error\": 404}");
    assert_eq!(plan.next_request(), None);
    assert_eq!(plan.finish().sources, []);
}

#[test]
fn a_refused_probe_is_no_request() {
    let mut plan = plan().want(Want::Llms).want(Want::Sitemap).max_probes(1);
    respond(&mut plan, 404, "text/html", b"");
    respond(&mut plan, 200, "text/html", b"");
    plan.no_response(false);
    let mut big = b"<urlset><url><loc>https://www.example.com/x</loc></url>".to_vec();
    big.resize(PROBE_BYTES, b' ');
    assert_eq!(
        respond(&mut plan, 200, "application/xml", &big),
        "https://www.example.com/sitemap.xml"
    );
    let findings = plan.finish();
    assert_eq!(findings.requests.len(), 3);
    assert_eq!(findings.sources[0].via, Via::WellKnown);
}

#[test]
fn an_error_page_tells_nothing() {
    let mut plan = plan();
    respond(&mut plan, 404, "text/plain", b"");
    respond(&mut plan, 404, "text/html", b"<link rel=feed href=/f>");
    let findings = plan.finish();
    assert_eq!(findings.start_status, Some(StatusCode::NOT_FOUND));
    assert_eq!(findings.sources, []);
}

#[test]
fn a_start_must_be_absolute() {
    for start in ["/a", "ftp://www.example.com/", "www.example.com"] {
        let start = start.parse().unwrap();
        assert_eq!(Plan::new(&start).unwrap_err(), InvalidStart::NotAbsolute);
    }
}
