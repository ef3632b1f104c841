//! Readiness: one success for one call on the same instance, and no deadlock with limits around a layer or the stack.

use tokio::task::JoinSet;
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer, ServiceBuilder};
use tower_etiquette::{BoxedService, Etiquette};

use crate::order::{ALONE, wrap};
use crate::site::{Client, get, get_named, hosts, identity, in_time, site};

/// Eight requests at once through `client`; the site panics if it is called unready.
async fn eight(what: &str, client: &Client) {
    let mut tasks = JoinSet::new();
    for n in 0..8 {
        let client = client.clone();
        tasks.spawn(async move { get_named(&client, &format!("/{n}")).await.unwrap() });
    }
    assert_eq!(in_time(what, tasks.join_all()).await, [200; 8]);
}

#[tokio::test(start_paused = true)]
async fn an_inner_limit_of_one_is_enough_for_each_layer() {
    for layer in ALONE {
        let inner = ConcurrencyLimitLayer::new(1).layer(site());
        eight(layer, &wrap(layer, &hosts(), inner)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_outer_limit_of_one_is_enough_for_each_layer() {
    for layer in ALONE {
        let client = wrap(layer, &hosts(), site());
        let limit = ConcurrencyLimitLayer::new(1);
        eight(layer, &BoxedService::new(limit.layer(client))).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_inner_limit_of_one_is_enough() {
    let site = site();
    let inner = ConcurrencyLimitLayer::new(1).layer(site.clone());
    let client = Etiquette::new(identity()).hosts(hosts()).boxed(inner);
    eight("over a limit of one", &client).await;
    assert_eq!(get(&client, "/busy").await.unwrap(), 200);
    // The rules, the eight, the busy page twice, and the rules again after its pause.
    assert_eq!(site.log().entries().len(), 1 + 8 + 2 + 1);
}

#[tokio::test(start_paused = true)]
async fn an_outer_limit_of_one_is_enough() {
    let site = site();
    let client = BoxedService::new(
        ServiceBuilder::new()
            .concurrency_limit(1)
            .layer(Etiquette::new(identity()).hosts(hosts()).layer())
            .service(site.clone()),
    );
    eight("under a limit of one", &client).await;
    assert_eq!(get(&client, "/busy").await.unwrap(), 200);
    assert_eq!(site.log().entries().len(), 1 + 8 + 2 + 1);
}

/// That each layer's service is so is checked by boxing it, in [`wrap`].
#[test]
fn the_stack_is_clone_send_sync_and_static() {
    fn holds<T: Clone + Send + Sync + 'static>(_: &T) {}
    let etiquette = Etiquette::new(identity()).hosts(hosts());
    holds(&etiquette);
    holds(&etiquette.layer());
    holds(&etiquette.service(site()));
    let boxed: Client = etiquette.boxed(site());
    holds(&boxed);
}
