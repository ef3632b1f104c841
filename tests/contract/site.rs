//! The site that most of these tests ask, on paused time and without sockets, and the clients that they ask it with.

use std::time::Duration;

use bytes::Bytes;
use etiquette_tests::client;
pub(crate) use etiquette_tests::client::identity;
pub(crate) use etiquette_tests::paused::in_time;
use etiquette_tests::site::{Answer, Entry, Site, SiteService};
use http::{Request, header};
use http_body_util::Empty;
use tower_etiquette::purpose::PurposeKind;
use tower_etiquette::{BoxError, BoxedService, Etiquette, HostPolicy, Hosts};

/// How long the head of an answer takes, and then its body.
pub(crate) const STEP: Duration = Duration::from_millis(40);

/// The Retry-After of the first answer to `/busy`.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// The delay of [`hosts`].
pub(crate) const DELAY: Duration = Duration::from_secs(1);

pub(crate) const SITE: &str = "http://site.example";

pub(crate) type Client = BoxedService<Empty<Bytes>>;

/// A site whose robots.txt disallows `/no`, with a page at each other path. `/busy` is busy once.
pub(crate) fn site() -> SiteService {
    let slow = |answer: Answer, body: &'static str| {
        let answer = answer.pieces([body], STEP).chunked();
        answer.after(STEP)
    };
    let page = || slow(Answer::status(200), "a page");
    let busy = Answer::retry_after(429, PAUSE.as_secs());
    let rules = "User-agent: *\nDisallow: /no\n";
    Site::builder()
        .at("/robots.txt", slow(Answer::status(200), rules))
        .at("/busy", [slow(busy, "later"), page()])
        .otherwise(page())
        .in_process()
}

/// Whether the site has answered this request 429.
pub(crate) fn was_busy(entry: &Entry) -> bool {
    entry.status.is_some_and(|status| status == 429)
}

/// The targets that start with `prefix` and when they arrived, in milliseconds since the site is there.
pub(crate) fn arrivals(site: &SiteService, prefix: &str) -> Vec<(String, u128)> {
    let mut seen = site.log().entries();
    seen.retain(|entry| entry.target.starts_with(prefix));
    seen.into_iter()
        .map(|entry| (entry.target, entry.at.as_millis()))
        .collect()
}

/// Host state of its own with a delay of a second, the same after fast answers and slow ones, and pauses of exact length.
pub(crate) fn hosts() -> Hosts {
    Hosts::new(policy())
}

/// The policy of [`hosts`].
pub(crate) fn policy() -> HostPolicy {
    HostPolicy::new()
        .min_delay(DELAY)
        .latency_factor(0)
        .jitter(0.0, 0.0)
}

/// The whole stack over a site.
pub(crate) fn stack(hosts: &Hosts) -> (Client, SiteService) {
    let site = site();
    let etiquette = Etiquette::new(identity()).hosts(hosts.clone());
    (etiquette.boxed(site.clone()), site)
}

/// GETs `path` and reads the body to its end; gives the status.
pub(crate) async fn get(client: &Client, path: &str) -> Result<u16, BoxError> {
    read(client, client::get(&format!("{SITE}{path}"))).await
}

/// As [`get`], for stacks that give no name: the request brings its own.
pub(crate) async fn get_named(client: &Client, path: &str) -> Result<u16, BoxError> {
    let mut request = client::get(&format!("{SITE}{path}"));
    let name = identity().user_agent(PurposeKind::Crawl).clone();
    request.headers_mut().insert(header::USER_AGENT, name);
    read(client, request).await
}

/// Sends `request` and reads the body to its end; gives the status.
pub(crate) async fn read(client: &Client, request: Request<Empty<Bytes>>) -> Result<u16, BoxError> {
    let page = client::fetch(client.clone(), request).await?;
    Ok(page.status)
}
