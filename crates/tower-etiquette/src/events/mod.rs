//! What happens in the layers, as `tracing` events and as `metrics`, each behind the feature of its name. Without them
//! nothing of it is compiled; with them nothing else changes.
//!
//! # Events
//! Feature `tracing`. The target is the module of the layer, so that one directive such as
//! `tower_etiquette::robots=debug` chooses it. `host` is the name under which a host's budget stands, `origin` is scheme,
//! host and port: no event carries a path, a query, a header or a credential. `scope` is `host`; `pause` where a retry
//! layer held a request for a pause, outside of any budget; `address` where hosts on one address share a budget.
//!
//! | target | level | message | fields |
//! | --- | --- | --- | --- |
//! | `tower_etiquette::host_budget` | DEBUG | `waits` | `scope`, `host` |
//! | `tower_etiquette::host_budget` | DEBUG | `starts` | `scope`, `host`, `waited_s` |
//! | `tower_etiquette::host_budget` | INFO | `refused` | `scope`, `host`, `reason`, `retry_in_s` |
//! | `tower_etiquette::host_budget` | INFO | `paused` | `scope`, `host`, `cause`, `for_s`, `until_unix` |
//! | `tower_etiquette::host_budget` | INFO | `slowed down` | `scope`, `host`, `backoff_level`, `rate` |
//! | `tower_etiquette::host_budget` | WARN | `blocked` | `scope`, `host` |
//! | `tower_etiquette::host_budget` | INFO | `recovers` | `scope`, `host`, `backoff_level`, `forgiven` |
//! | `tower_etiquette::retry_after` | INFO | `sends again` | `host`, `cause`, `attempt` |
//! | `tower_etiquette::robots` | DEBUG | `robots.txt` | `origin`, `outcome` |
//! | `tower_etiquette::robots` | INFO | `refused` | `origin`, `reason` |
//! | `tower_etiquette::conditional_cache` | DEBUG | `answered` | `host`, `result` |
//! | `tower_etiquette::store` | WARN, DEBUG for `hosts` | `store failed` | `store`, `doing` |
//!
//! The numbers are seconds; `until_unix` is the wall time in seconds since 1970. `retry_in_s` is absent where nobody
//! knows when to come back. A recovery is emitted with the first response after it, because time alone brings it.
//!
//! # Metrics
//! Feature `metrics`, for whatever recorder the program installs. `metrics` has the same table as `events::METRICS`,
//! and `events::describe` hands it to the recorder.
//!
//! | metric | kind | labels | what it counts |
//! | --- | --- | --- | --- |
//! | `etiquette_starts_total` | counter | `scope` | requests that had their turn |
//! | `etiquette_wait_seconds` | histogram | `scope` | how long they had waited for it |
//! | `etiquette_refused_total` | counter | `scope`, `reason` | requests that a host did not admit |
//! | `etiquette_pauses_total` | counter | `scope`, `cause` | pauses begun or prolonged |
//! | `etiquette_pause_seconds` | histogram | `scope`, `cause` | how far ahead they end |
//! | `etiquette_backoffs_total` | counter | `scope` | times that a host was slowed down |
//! | `etiquette_blocks_total` | counter | `scope` | runs of refused pages that count as being blocked |
//! | `etiquette_recoveries_total` | counter | `scope` | backoff levels forgiven after successes |
//! | `etiquette_retries_total` | counter | `cause` | requests sent again |
//! | `etiquette_robots_fetches_total` | counter | `outcome` | fetches of robots.txt |
//! | `etiquette_robots_refused_total` | counter | `reason` | pages refused for robots.txt |
//! | `etiquette_cache_responses_total` | counter | `result` | responses that went through the cache |
//! | `etiquette_store_failures_total` | counter | `store` | operations of a store that failed |
//!
//! No metric has the host as a label: a crawl has too many of them. `HostsBuilder::label_hosts` adds `host` to those of
//! its budget and to the retries, for programs that ask few hosts.
//!
//! # Words
//! | field | words |
//! | --- | --- |
//! | `reason` of a host | `paused`, `queue_full`, `hosts_full`, `unread_body_timeout`, `crawl_delay_too_long`, `blocked` |
//! | `cause` | `throttled`, `unavailable`, `failed`, `refused`; `asked` for a Retry-After on any other response; `shared` for what another process learnt |
//! | `outcome` | `rules`, `none`, `closed`, `unchanged`, `unreachable`, `not_admitted`; `stored` where a store knew it |
//! | `reason` of robots.txt | `disallowed`, `robots_unreachable` |
//! | `result` | `hit`, `stale`, `revalidated`, `miss`, `collapsed`, `not_stored` |
//! | `store` | `hosts`, `journal`, `responses`, `robots` |

#[cfg(feature = "metrics")]
mod count;
mod emit;
mod event;
mod host_changes;
#[cfg(feature = "tracing")]
mod trace;

#[cfg(feature = "metrics")]
pub use count::{METRICS, Metric, describe};
pub(crate) use emit::{
    cached, queued, refused, retried, robots_fetched, robots_refused, started, store_failed,
    store_result,
};
pub(crate) use event::{ENABLED, EventScope};
pub(crate) use host_changes::{HostChanges, LastReported, PaceSnapshot};
