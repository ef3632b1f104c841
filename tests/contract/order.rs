//! In any order nothing panics or hangs, and each layer keeps its own promise for the requests that reach it.

use bytes::Bytes;
use etiquette_core::signing::{Signer, SigningKey};
use http::{Request, Response};
use http_body::Body;
use http_body_util::Empty;
use tower::{Layer, Service};
use tower_etiquette::{
    Accept, AcceptLayer, BoxError, BoxedService, ConditionalCacheLayer, HostBudgetLayer, Hosts,
    PreferencesLayer, Refusal, RefusalLayer, RetryAfterLayer, RobotsLayer, SignLayer,
    UserAgentLayer,
};

use crate::probe::{Client, DELAY, PAUSE, Probe, get, hosts, identity, in_time};

const LAYERS: [&str; 6] = [
    "user_agent",
    "accept",
    "robots",
    "cache",
    "retry_after",
    "budget",
];

/// Each of them as it is used without the others, and the layers that stand beside the six.
pub(crate) const ALONE: [&str; 9] = [
    "user_agent",
    "accept",
    "robots alone",
    "cache",
    "retry_after",
    "budget",
    "preferences",
    "refusal",
    "sign",
];

/// One layer around `inner`. It asks of `inner` what its own bounds say, and gives a service that can be shared.
pub(crate) fn wrap<S, B>(layer: &str, hosts: &Hosts, inner: S) -> Client
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError> + Send + Sync,
{
    match layer {
        "user_agent" => BoxedService::new(UserAgentLayer::new(identity()).layer(inner)),
        "accept" => BoxedService::new(AcceptLayer::new(Accept::any()).layer(inner)),
        "robots" => BoxedService::new(RobotsLayer::new().hosts(hosts.clone()).layer(inner)),
        // Its tokens have to come from somewhere.
        "robots alone" => {
            let layer = RobotsLayer::with_identity(identity()).hosts(hosts.clone());
            BoxedService::new(layer.layer(inner))
        }
        "cache" => BoxedService::new(ConditionalCacheLayer::new().layer(inner)),
        "retry_after" => BoxedService::new(RetryAfterLayer::new(hosts.clone()).layer(inner)),
        "budget" => BoxedService::new(HostBudgetLayer::new(hosts.clone()).layer(inner)),
        "preferences" => BoxedService::new(PreferencesLayer::new().layer(inner)),
        "refusal" => BoxedService::new(RefusalLayer::new().layer(inner)),
        "sign" => {
            let (key, _) = SigningKey::generate().unwrap();
            let signer = Signer::new(key, "https://www.example.com").unwrap();
            BoxedService::new(SignLayer::new(signer).layer(inner))
        }
        other => panic!("{other}"),
    }
}

/// The stack of `layers`, outermost first.
fn stack(layers: &[&str], hosts: &Hosts) -> (Client, Probe) {
    let probe = Probe::default();
    let mut client = BoxedService::new(probe.clone());
    for layer in layers.iter().rev() {
        client = wrap(layer, hosts, client);
    }
    (client, probe)
}

/// All orders of `items`.
fn permutations<'a>(items: &[&'a str]) -> Vec<Vec<&'a str>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in items.iter().enumerate() {
        let mut rest = items.to_vec();
        rest.remove(at);
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

/// What a stack of `layers` does with a busy page, others and a disallowed one.
async fn visit(layers: &[&str]) -> Probe {
    let hosts = hosts();
    let (client, probe) = stack(layers, &hosts);
    let told = format!("{layers:?}");
    let visits = async {
        let both = tokio::join!(get(&client, "/1"), get(&client, "/busy"));
        [
            both.0,
            both.1,
            get(&client, "/no").await,
            get(&client, "/2").await,
            get(&client, "/1").await,
        ]
    };
    for result in in_time(&told, visits).await {
        if let Err(error) = result {
            assert!(Refusal::find(&*error).is_some(), "{told}: {error:?}");
        }
    }
    probe
}

#[tokio::test(start_paused = true)]
async fn all_six_in_every_order() {
    let orders = permutations(&LAYERS);
    assert_eq!(orders.len(), 720);
    for layers in orders {
        let probe = visit(&layers).await;
        let seen = probe.seen();
        for seen in &seen {
            assert!(seen.name.contains("ExampleBot/0.1"), "{layers:?} {seen:?}");
            assert_ne!(seen.path, "/no", "{layers:?}");
        }
        let pages = probe.pages();
        for pair in pages.windows(2) {
            assert!(pair[1].at - pair[0].at >= DELAY, "{layers:?} {pages:?}");
            if pair[0].status == 429 {
                assert!(pair[1].at - pair[0].at >= PAUSE, "{layers:?} {pages:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_builders_order_visits_what_may_be_visited() {
    let probe = visit(&LAYERS).await;
    let mut paths: Vec<String> = probe.pages().into_iter().map(|seen| seen.path).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths, ["/1", "/2", "/busy"]);
}

#[tokio::test(start_paused = true)]
async fn each_alone() {
    for layer in LAYERS {
        let probe = visit(&[layer]).await;
        let pages = probe.pages();
        match layer {
            // Without a name above it, it lets nothing pass.
            "robots" => assert!(pages.is_empty(), "{pages:?}"),
            "user_agent" => {
                assert!(pages.iter().all(|page| page.name.contains("ExampleBot")));
            }
            "budget" => {
                for pair in pages.windows(2) {
                    assert!(pair[1].at - pair[0].at >= DELAY, "{pages:?}");
                }
            }
            "retry_after" => {
                let busy: Vec<u16> = pages
                    .iter()
                    .filter(|page| page.path == "/busy")
                    .map(|page| page.status)
                    .collect();
                assert_eq!(busy, [429, 200]);
            }
            _ => assert_eq!(pages.iter().filter(|page| page.path == "/2").count(), 1),
        }
    }
}
