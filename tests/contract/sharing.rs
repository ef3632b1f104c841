//! Clones, and stacks that were built apart over the same hosts, obey one budget and one pause.

use etiquette_tests::site::Entry;
use tokio::task::JoinSet;
use tower_etiquette::Etiquette;

use crate::order::wrap;
use crate::site::{Client, DELAY, PAUSE, get, hosts, identity, in_time, site, was_busy};

async fn all(clients: Vec<Client>) {
    let mut tasks = JoinSet::new();
    for (n, client) in clients.into_iter().enumerate() {
        tasks.spawn(async move { get(&client, &format!("/{n}")).await.unwrap() });
    }
    in_time("all clients", tasks.join_all()).await;
}

fn assert_spaced(seen: &[Entry]) {
    for pair in seen.windows(2) {
        assert!(pair[1].at - pair[0].at >= DELAY, "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn clones_share_a_budget() {
    let site = site();
    let client: Client = Etiquette::new(identity())
        .hosts(hosts())
        .boxed(site.clone());
    all(vec![client; 10]).await;
    let seen = site.log().entries();
    assert_eq!(seen.len(), 11, "robots.txt is read once");
    assert_spaced(&seen);
}

#[tokio::test(start_paused = true)]
async fn stacks_built_apart_share_a_budget_and_a_pause() {
    let (site, hosts) = (site(), hosts());
    let build = || -> Client {
        let etiquette = Etiquette::new(identity()).hosts(hosts.clone());
        etiquette.boxed(site.clone())
    };
    all((0..5).map(|_| build()).collect()).await;
    assert_spaced(&site.log().entries());

    let (one, two) = (build(), build());
    let both = async { tokio::join!(get(&one, "/busy"), get(&two, "/after")) };
    let (busy, after) = in_time("both", both).await;
    assert_eq!((busy.unwrap(), after.unwrap()), (200, 200));
    let seen = site.log().entries();
    assert_spaced(&seen);
    let paused = seen.iter().position(was_busy).unwrap();
    assert!(seen[paused + 1].at - seen[paused].at >= PAUSE, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn single_layers_built_apart_share_what_the_hosts_know() {
    for layer in ["budget", "retry_after"] {
        let (site, hosts) = (site(), hosts());
        let one = wrap(layer, &hosts, site.clone());
        let two = wrap(layer, &hosts, site.clone());
        let both = async {
            let busy = get(&one, "/busy").await;
            (busy, get(&two, "/after").await)
        };
        let (busy, after) = in_time(layer, both).await;
        // Alone the budget hands the 429 on, and the host pauses for everybody all the same.
        let expected = if layer == "budget" { 429 } else { 200 };
        assert_eq!((busy.unwrap(), after.unwrap()), (expected, 200), "{layer}");
        let seen = site.log().entries();
        let pause = seen[1].at - seen[0].at;
        assert!(pause >= PAUSE, "{layer}: {seen:?}");
    }
}
