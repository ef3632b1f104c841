//! Many names on one machine, which sees one guest.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use etiquette_tests::promises;
use etiquette_tests::site::{Answer, Entry, Site};
use tower_etiquette::client::{Client, ClientBuilder};
use tower_etiquette::{HostPolicy, Hosts};

use crate::client::{TOKEN, identity, millis, policy};

const NAMES: usize = 8;
const DELAY: Duration = Duration::from_millis(100);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A client for which every name leads to this machine; hosts of its own are asked without a delay.
fn client() -> ClientBuilder {
    Client::builder(identity())
        .hosts(Hosts::new(policy(Duration::ZERO)))
        .resolver(|_| async { Ok(vec![LOOPBACK]) })
}

/// One page from each of the names, all at once.
async fn visit(client: &Client, site: &Site) {
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..NAMES {
        let url = site.url_as(&format!("{number}.example"), "/page");
        let client = client.clone();
        tasks.spawn(async move {
            let body = client.get(&url).await.unwrap().into_body();
            body.text(1 << 10).await.unwrap()
        });
    }
    while let Some(page) = tasks.join_next().await {
        assert_eq!(page.unwrap(), "a page");
    }
}

async fn site() -> Site {
    Site::builder()
        .robots("User-agent: *\nDisallow:\n")
        .otherwise(Answer::html("a page").after(millis(30)))
        .start()
        .await
        .unwrap()
}

fn hosts_of(log: &[Entry]) -> usize {
    let hosts: std::collections::BTreeSet<&str> =
        log.iter().map(|entry| entry.host.as_str()).collect();
    hosts.len()
}

#[tokio::test]
async fn names_on_one_address_share_its_permits_and_its_delay() {
    let site = site().await;
    let shared = HostPolicy::new().min_delay(DELAY).latency_factor(0);
    let client = client().per_address(shared).build().unwrap();
    visit(&client, &site).await;
    let log = site.log().entries();
    assert_eq!((log.len(), hosts_of(&log)), (2 * NAMES, NAMES));
    promises::named(&log, TOKEN).expect_kept();
    promises::smallest_delay(&log, DELAY).expect_kept();
    assert_eq!(promises::most_at_once(&log), 1);
}

/// The check of the test above: without the second budget the machine is asked by all names at once.
#[tokio::test]
async fn without_it_each_name_has_only_its_own_budget() {
    let site = site().await;
    visit(&client().build().unwrap(), &site).await;
    let log = site.log().entries();
    assert_eq!((log.len(), hosts_of(&log)), (2 * NAMES, NAMES));
    assert!(promises::most_at_once(&log) > 1);
}

#[tokio::test]
async fn a_pause_stays_the_host_s_that_asked_for_it() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow:\n")
        .at("/busy", Answer::too_many(3))
        .otherwise(Answer::html("a page"))
        .start()
        .await
        .unwrap();
    let shared = HostPolicy::new().min_delay(DELAY).latency_factor(0);
    let client = client()
        .hosts(Hosts::new(
            policy(Duration::ZERO).max_wait(Duration::from_secs(2)),
        ))
        .per_address(shared.max_wait(Duration::from_secs(5)))
        .build()
        .unwrap();
    let busy = client.get(&site.url_as("one.example", "/busy")).await;
    assert!(
        busy.unwrap_err()
            .refusal()
            .is_some_and(|refusal| refusal.retry_at().is_some())
    );
    let other = client
        .get(&site.url_as("two.example", "/page"))
        .await
        .unwrap();
    assert_eq!(other.status(), 200);
    let log = site.log().entries();
    let paused = log.iter().find(|entry| entry.path() == "/busy").unwrap();
    let (from, until) = paused.pause().unwrap();
    let within = log
        .iter()
        .filter(|entry| entry.at > from && entry.at < until);
    let hosts: Vec<String> = within.map(|entry| entry.host.clone()).collect();
    assert!(!hosts.is_empty());
    assert!(
        hosts.iter().all(|host| host.starts_with("two.example")),
        "{hosts:?}"
    );
}

/// A permit is held until the body ends, at the address as at the host.
#[tokio::test]
async fn a_body_that_is_being_read_holds_the_permit_at_the_address() {
    let site = Site::builder()
        .robots("User-agent: *\nDisallow:\n")
        .otherwise(Answer::html("a page").trickle(millis(300)))
        .start()
        .await
        .unwrap();
    let shared = HostPolicy::new()
        .min_delay(Duration::ZERO)
        .latency_factor(0);
    let client = client().per_address(shared).build().unwrap();
    visit(&client, &site).await;
    let log = site.log().entries();
    assert_eq!(promises::most_at_once(&log), 1);
    assert_eq!(log.len(), 2 * NAMES);
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_an_error_and_asks_nobody() {
    let site = site().await;
    let lookups = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&lookups);
    let client = Client::builder(identity())
        .hosts(Hosts::new(policy(Duration::ZERO)))
        .resolver(move |name| {
            counted.fetch_add(1, Ordering::Relaxed);
            let found = if name == "known.example" {
                vec![LOOPBACK]
            } else {
                vec![]
            };
            async { Ok(found) }
        })
        .per_address(HostPolicy::new().min_delay(Duration::ZERO))
        .build()
        .unwrap();
    client
        .get(&site.url_as("unknown.example", "/page"))
        .await
        .unwrap_err();
    assert!(site.log().entries().is_empty());
    assert_eq!(lookups.load(Ordering::Relaxed), 1);
    let page = client
        .get(&site.url_as("known.example", "/page"))
        .await
        .unwrap();
    assert_eq!(page.status(), 200);
    assert_eq!(site.log().entries().len(), 2);
}
