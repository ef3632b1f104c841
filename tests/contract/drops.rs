//! Whatever is dropped, and whenever: its permit, its turn and its flight are free for others.

use std::time::Duration;

use tokio::time::timeout;
use tower::ServiceExt;
use tower_etiquette::Hosts;
use tower_etiquette::hosts::HostSnapshot;

use crate::order::{ALONE, wrap};
use crate::site::{Client, SITE, STEP, get, get_named, hosts, in_time, site, stack};

/// The first busy page takes: robots.txt, delay, 429, pause, the second try, its body.
const LONGEST: Duration = Duration::from_secs(9);

fn snapshot(hosts: &Hosts) -> Option<HostSnapshot> {
    hosts.snapshot(&SITE.parse().unwrap()).unwrap()
}

fn assert_idle(hosts: &Hosts, when: &str) {
    if let Some(known) = snapshot(hosts) {
        assert_eq!((known.in_flight, known.waiting), (0, 0), "{when}");
    }
}

/// Moments that hit every wait of a visit, and the instants between two.
fn moments() -> impl Iterator<Item = Duration> {
    let half = STEP / 2;
    (0..).map(move |n| half * n).take_while(|&at| at < LONGEST)
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_leaves_nothing_behind() {
    for after in moments() {
        let hosts = hosts();
        let (client, site) = stack(&hosts);
        let when = format!("dropped after {after:?}");
        let _ = timeout(after, get(&client, "/busy")).await;
        assert_idle(&hosts, &when);
        let status = in_time(&when, get(&client, "/1")).await;
        assert_eq!(status.unwrap(), 200, "{when}");
        assert_idle(&hosts, &when);
        assert_eq!(site.log().targets()[0], "/robots.txt", "{when}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_layer_alone_keeps_what_a_dropped_future_held() {
    for layer in ALONE {
        for after in moments() {
            let hosts = hosts();
            let client = wrap(layer, &hosts, site());
            let when = format!("{layer}, dropped after {after:?}");
            let first = timeout(after, get_named(&client, "/busy"));
            let second = get_named(&client, "/1");
            let (_, second) = in_time(&when, async { tokio::join!(first, second) }).await;
            assert_eq!(second.unwrap(), 200, "{when}");
            let third = in_time(&when, get_named(&client, "/2")).await;
            assert_eq!(third.unwrap(), 200, "{when}");
            assert_idle(&hosts, &when);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_behind_it_are_woken() {
    for after in moments() {
        let hosts = hosts();
        let (client, _site) = stack(&hosts);
        let when = format!("dropped after {after:?}");
        let others = async {
            // They queue up behind the first.
            tokio::task::yield_now().await;
            tokio::join!(
                get(&client, "/1"),
                get(&client, "/busy"),
                get(&client, "/2")
            )
        };
        let first = timeout(after, get(&client, "/busy"));
        let (_, others) = in_time(&when, async { tokio::join!(first, others) }).await;
        let statuses = [others.0, others.1, others.2].map(|other| other.unwrap());
        assert_eq!(statuses, [200; 3], "{when}");
        assert_idle(&hosts, &when);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_dropped_gives_its_permit_back() {
    let hosts = hosts();
    let (client, _site) = stack(&hosts);
    let ask = |client: &Client| {
        let request = etiquette_tests::client::get(&format!("{SITE}/1"));
        client.clone().oneshot(request)
    };
    let response = ask(&client).await.unwrap();
    assert_eq!(snapshot(&hosts).unwrap().in_flight, 1);
    drop(response);
    assert_idle(&hosts, "after the body was dropped");
    in_time("the next page", get(&client, "/2")).await.unwrap();

    // A service that is dropped while its response is read takes nothing away.
    let response = ask(&client).await.unwrap();
    drop(client);
    drop(response);
    assert_idle(&hosts, "after the service was dropped");
}
