//! The layers around the client.

use std::time::Duration;

use tower_etiquette::conditional_cache::{ConditionalCacheLayer, Heuristic};
use tower_etiquette::{
    Accept, AcceptLayer, BoxError, BoxedService, HostBudgetLayer, HostPolicy, Hosts, Identity,
    RefusalLayer, RetryAfterLayer, RobotsLayer, UserAgentLayer,
};
use tower_layer::Layer;

use super::args::{Args, Name};
use super::body::PassedBody;
use super::upstream::client_of;

/// Layers around a client, their types forgotten.
pub type Stack = BoxedService<PassedBody>;

/// The client towards the upstream, and the named layers around it in their order.
pub(super) fn stack(args: &Args) -> Result<Stack, BoxError> {
    let upstream = &args.upstream;
    if upstream.scheme_str() != Some("http") || upstream.authority().is_none() {
        return Err("--upstream takes http://host:port".into());
    }
    let has = |name| args.layers.contains(&name);
    let hosts = Hosts::new(HostPolicy::new().min_delay(Duration::try_from_secs_f64(args.delay)?));
    let client = client_of(upstream, args.allow_private);
    let mut stack = BoxedService::new(client);
    if has(Name::Budget) {
        stack = BoxedService::new(HostBudgetLayer::new(hosts.clone()).layer(stack));
    }
    if has(Name::RetryAfter) {
        stack = BoxedService::new(RetryAfterLayer::new(hosts.clone()).layer(stack));
    }
    if has(Name::Cache) {
        let mut cache = ConditionalCacheLayer::new().max_bytes(args.cache_bytes);
        if args.shared_cache {
            cache = cache.shared().heuristic(Heuristic::tenth());
        }
        stack = BoxedService::new(cache.layer(stack));
    }
    if has(Name::Robots) {
        stack = BoxedService::new(RobotsLayer::new().hosts(hosts).layer(stack));
    }
    if has(Name::Accept) {
        stack = BoxedService::new(AcceptLayer::new(Accept::any()).layer(stack));
    }
    if has(Name::UserAgent) || has(Name::Robots) {
        let named = Identity::builder(&args.token, &args.bot_version, &args.info_url);
        stack = BoxedService::new(UserAgentLayer::new(named.build()?).layer(stack));
    }
    Ok(BoxedService::new(RefusalLayer::new().layer(stack)))
}
