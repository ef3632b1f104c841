//! `metrics`: how often, and how long.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use tower_etiquette::events::{METRICS, describe};

use super::{SECRET, hosts, run, story, with_a_broken_store};

/// Keeps each metric under its name and labels.
#[derive(Default)]
struct Kept {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
    described: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.described.lock().unwrap().push(name.as_str().into());
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("{name:?} is a gauge");
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.described.lock().unwrap().push(name.as_str().into());
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(text(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        panic!("{key} is a gauge");
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let mut histograms = self.histograms.lock().unwrap();
        Histogram::from_arc(Arc::clone(histograms.entry(text(key)).or_default()))
    }
}

fn text(key: &Key) -> String {
    let mut labels: Vec<String> = key
        .labels()
        .map(|label| format!("{}={}", label.key(), label.value()))
        .collect();
    labels.sort();
    format!("{} {}", key.name(), labels.join(" "))
}

impl Kept {
    fn counted(&self) -> BTreeMap<String, u64> {
        let counters = self.counters.lock().unwrap();
        let value = |(key, counter): (&String, &Arc<AtomicU64>)| {
            (key.clone(), counter.load(Ordering::Relaxed))
        };
        counters.iter().map(value).collect()
    }

    fn values(&self, key: &str) -> Vec<f64> {
        let histograms = self.histograms.lock().unwrap();
        let values = histograms.get(key).expect("the histogram has values");
        values.0.lock().unwrap().clone()
    }

    fn names(&self) -> Vec<String> {
        let counters = self.counters.lock().unwrap();
        let histograms = self.histograms.lock().unwrap();
        counters.keys().chain(histograms.keys()).cloned().collect()
    }
}

#[test]
fn what_happens_is_counted_without_the_host() {
    let _alone = super::alone();
    let kept = Kept::default();
    with_local_recorder(&kept, || run(story(hosts().build())));
    let expected = [
        ("etiquette_cache_responses_total result=hit", 1),
        ("etiquette_cache_responses_total result=miss", 1),
        ("etiquette_cache_responses_total result=revalidated", 1),
        ("etiquette_pauses_total cause=throttled scope=host", 1),
        ("etiquette_refused_total reason=paused scope=host", 1),
        ("etiquette_retries_total cause=throttled", 1),
        ("etiquette_robots_fetches_total outcome=rules", 2),
        ("etiquette_robots_refused_total reason=disallowed", 1),
        // robots.txt twice, the page three times, and the one that was started by hand.
        ("etiquette_starts_total scope=host", 6),
        ("etiquette_backoffs_total scope=host", 1),
    ];
    let expected: BTreeMap<String, u64> = expected.map(|(key, n)| (key.into(), n)).into();
    assert_eq!(kept.counted(), expected);
    let pauses = kept.values("etiquette_pause_seconds cause=throttled scope=host");
    assert_eq!(pauses, [30.0]);
    let waits = kept.values("etiquette_wait_seconds scope=host");
    assert_eq!(waits.len(), 6);
    assert_eq!(waits[..2], [0.0, 2.0]);
    let named = kept.names();
    let named = named.iter().find(|key| key.contains("site.example"));
    assert_eq!(named, None);
}

#[test]
fn the_host_is_a_label_only_by_the_switch() {
    let _alone = super::alone();
    let kept = Kept::default();
    with_local_recorder(&kept, || run(story(hosts().label_hosts(true).build())));
    let counted = kept.counted();
    let starts = counted["etiquette_starts_total host=site.example scope=host"];
    assert_eq!(starts, 6);
    assert_eq!(
        counted["etiquette_retries_total cause=throttled host=site.example"],
        1
    );
    let secret = counted.keys().find(|key| key.contains(SECRET));
    assert_eq!(secret, None);
}

#[test]
fn a_store_that_fails_is_counted() {
    let _alone = super::alone();
    let kept = Kept::default();
    with_local_recorder(&kept, || run(with_a_broken_store(hosts().build())));
    // The look-up and the keeping.
    let failures = kept.counted()["etiquette_store_failures_total store=responses"];
    assert_eq!(failures, 2);
}

#[test]
fn every_metric_can_be_described() {
    let _alone = super::alone();
    let kept = Kept::default();
    with_local_recorder(&kept, describe);
    let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(*kept.described.lock().unwrap(), names);
}
