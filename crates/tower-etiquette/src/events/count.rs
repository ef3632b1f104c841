//! Counters and histograms for `metrics`.

use metrics::{Label, Unit, counter, describe_counter, describe_histogram, histogram};

use super::event::{Event, EventScope, HostEvent};

/// One metric of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, which recorders for Prometheus take as it is.
    pub name: &'static str,
    /// Its unit, where that is not a plain count: such a metric is a histogram.
    pub unit: Option<Unit>,
    /// What it counts.
    pub what: &'static str,
}

const fn counts(name: &'static str, what: &'static str) -> Metric {
    Metric {
        name,
        unit: None,
        what,
    }
}

const fn seconds(name: &'static str, what: &'static str) -> Metric {
    Metric {
        name,
        unit: Some(Unit::Seconds),
        what,
    }
}

const STARTS: Metric = counts("etiquette_starts_total", "requests that had their turn");
const WAIT: Metric = seconds("etiquette_wait_seconds", "how long they had waited for it");
const REFUSED: Metric = counts(
    "etiquette_refused_total",
    "requests that a host did not admit",
);
const PAUSES: Metric = counts("etiquette_pauses_total", "pauses begun or prolonged");
const PAUSE: Metric = seconds("etiquette_pause_seconds", "how far ahead they end");
const BACKOFFS: Metric = counts(
    "etiquette_backoffs_total",
    "times that a host was slowed down",
);
const BLOCKS: Metric = counts(
    "etiquette_blocks_total",
    "runs of refused pages that count as being blocked",
);
const RECOVERIES: Metric = counts(
    "etiquette_recoveries_total",
    "backoff levels forgiven after successes",
);
const RETRIES: Metric = counts("etiquette_retries_total", "requests sent again");
const FETCHES: Metric = counts("etiquette_robots_fetches_total", "fetches of robots.txt");
const ROBOTS_REFUSED: Metric = counts(
    "etiquette_robots_refused_total",
    "pages refused for robots.txt",
);
const CACHE: Metric = counts(
    "etiquette_cache_responses_total",
    "responses that went through the cache",
);
const STORE: Metric = counts(
    "etiquette_store_failures_total",
    "operations of a store that failed",
);

/// All metrics, in the order of the [table](super).
pub const METRICS: &[Metric] = &[
    STARTS,
    WAIT,
    REFUSED,
    PAUSES,
    PAUSE,
    BACKOFFS,
    BLOCKS,
    RECOVERIES,
    RETRIES,
    FETCHES,
    ROBOTS_REFUSED,
    CACHE,
    STORE,
];

/// Describes each of [`METRICS`] to the recorder in force. Call it once the recorder is installed.
pub fn describe() {
    for metric in METRICS {
        match metric.unit {
            None => describe_counter!(metric.name, metric.what),
            Some(unit) => describe_histogram!(metric.name, unit, metric.what),
        }
    }
}

pub(super) fn count(event: &Event<'_>) {
    match *event {
        Event::Host { scope, host, what } => count_host(scope, host, what),
        Event::Retried {
            scope, host, cause, ..
        } => {
            let mut labels = vec![Label::from_static_parts("cause", cause)];
            labels.extend(host_label(scope, host));
            counter!(RETRIES.name, labels).increment(1);
        }
        Event::RobotsFetched { outcome, .. } => {
            counter!(FETCHES.name, "outcome" => outcome).increment(1);
        }
        Event::RobotsRefused { reason, .. } => {
            counter!(ROBOTS_REFUSED.name, "reason" => reason).increment(1);
        }
        Event::Cached { result, .. } => {
            counter!(CACHE.name, "result" => result).increment(1);
        }
        Event::StoreFailed { store, .. } => {
            counter!(STORE.name, "store" => store).increment(1);
        }
    }
}

fn count_host(scope: EventScope, host: &str, what: HostEvent) {
    let labels = |further: Option<(&'static str, &'static str)>| {
        let mut labels = vec![Label::from_static_parts("scope", scope.name)];
        labels.extend(further.map(|(key, value)| Label::from_static_parts(key, value)));
        labels.extend(host_label(scope, host));
        labels
    };
    match what {
        HostEvent::Queued => {}
        HostEvent::Started { waited } => {
            counter!(STARTS.name, labels(None)).increment(1);
            histogram!(WAIT.name, labels(None)).record(waited);
        }
        HostEvent::Refused { why, .. } => {
            counter!(REFUSED.name, labels(Some(("reason", why.kind())))).increment(1);
        }
        HostEvent::Paused { cause, span, .. } => {
            let labels = labels(Some(("cause", cause)));
            counter!(PAUSES.name, labels.clone()).increment(1);
            histogram!(PAUSE.name, labels).record(span);
        }
        HostEvent::BackedOff { .. } => counter!(BACKOFFS.name, labels(None)).increment(1),
        HostEvent::Blocked => counter!(BLOCKS.name, labels(None)).increment(1),
        HostEvent::Recovered { forgiven, .. } => {
            counter!(RECOVERIES.name, labels(None)).increment(forgiven.into());
        }
    }
}

fn host_label(scope: EventScope, host: &str) -> Option<Label> {
    scope
        .label_hosts
        .then(|| Label::new("host", host.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_docs_is_the_one_that_is_described() {
        let docs = include_str!("mod.rs");
        let rows: Vec<Vec<&str>> = docs
            .lines()
            .filter_map(|line| line.strip_prefix("//! | `etiquette_"))
            .map(|row| row.split('|').map(str::trim).collect())
            .collect();
        assert_eq!(rows.len(), METRICS.len());
        for (row, metric) in rows.iter().zip(METRICS) {
            assert_eq!(format!("etiquette_{}", row[0]), format!("{}`", metric.name));
            let kind = if metric.unit.is_some() {
                "histogram"
            } else {
                "counter"
            };
            assert_eq!((row[1], row[3]), (kind, metric.what));
        }
    }
}
