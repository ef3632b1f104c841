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

use etiquette_tests::site::SiteService;

use crate::site::{Client, DELAY, PAUSE, get, hosts, identity, in_time, site, was_busy};

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

/// The stack of `layers`, outermost first, over a site.
pub(crate) fn stack(layers: &[&str], hosts: &Hosts) -> (Client, SiteService) {
    let site = site();
    let mut client = BoxedService::new(site.clone());
    for layer in layers.iter().rev() {
        client = wrap(layer, hosts, client);
    }
    (client, site)
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
async fn visit(layers: &[&str]) -> SiteService {
    let hosts = hosts();
    let (client, site) = stack(layers, &hosts);
    let what = format!("{layers:?}");
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
    for result in in_time(&what, visits).await {
        if let Err(error) = result {
            assert!(Refusal::find(&*error).is_some(), "{what}: {error:?}");
        }
    }
    site
}

#[tokio::test(start_paused = true)]
async fn all_six_in_every_order() {
    let orders = permutations(&LAYERS);
    assert_eq!(orders.len(), 720);
    for layers in orders {
        let site = visit(&layers).await;
        for entry in site.log().entries() {
            let name = entry.user_agent();
            assert!(name.contains("ExampleBot/0.1"), "{layers:?} {entry:?}");
            assert_ne!(entry.target, "/no", "{layers:?}");
        }
        let pages = site.log().pages();
        for pair in pages.windows(2) {
            assert!(pair[1].at - pair[0].at >= DELAY, "{layers:?} {pages:?}");
            if was_busy(&pair[0]) {
                assert!(pair[1].at - pair[0].at >= PAUSE, "{layers:?} {pages:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_builders_order_visits_what_may_be_visited() {
    let pages = visit(&LAYERS).await.log().pages();
    let mut paths: Vec<String> = pages.into_iter().map(|entry| entry.target).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths, ["/1", "/2", "/busy"]);
}

#[tokio::test(start_paused = true)]
async fn each_alone() {
    for layer in LAYERS {
        let pages = visit(&[layer]).await.log().pages();
        match layer {
            // Without a name above it, it lets nothing pass.
            "robots" => assert!(pages.is_empty(), "{pages:?}"),
            "user_agent" => {
                assert!(
                    pages
                        .iter()
                        .all(|page| page.user_agent().contains("ExampleBot"))
                );
            }
            "budget" => {
                for pair in pages.windows(2) {
                    assert!(pair[1].at - pair[0].at >= DELAY, "{pages:?}");
                }
            }
            "retry_after" => {
                let busy: Vec<u16> = pages
                    .iter()
                    .filter(|page| page.target == "/busy")
                    .filter_map(|page| Some(page.status?.as_u16()))
                    .collect();
                assert_eq!(busy, [429, 200]);
            }
            _ => assert_eq!(pages.iter().filter(|page| page.target == "/2").count(), 1),
        }
    }
}
