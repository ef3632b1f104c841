//! `tracing`: what happens, and to whom.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{SECRET, hosts, run, story, with_a_broken_store};

/// Keeps each event of the layers as one line.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_etiquette")
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let target = metadata.target().trim_start_matches("tower_etiquette::");
        let mut line = Line(format!("{} {target}", metadata.level()));
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            // The wall clock is not the test's.
            "until_unix" => self.0 += " until_unix",
            "message" => self.0 += &format!(" {value:?}:"),
            name => self.0 += &format!(" {name}={value:?}"),
        }
    }
}

#[test]
fn a_store_that_fails_is_told_of_without_its_words() {
    let _alone = super::alone();
    let lines = Lines::default();
    let story = with_a_broken_store(hosts().build());
    tracing::subscriber::with_default(lines.clone(), || run(story));
    let lines = lines.0.lock().unwrap();
    let failed: Vec<&str> = lines
        .iter()
        .filter(|line| line.contains("store failed"))
        .map(String::as_str)
        .collect();
    assert_eq!(
        failed,
        [
            "WARN store store failed: store=responses doing=look up a response",
            "WARN store store failed: store=responses doing=keep a response",
        ]
    );
    assert!(
        !lines.iter().any(|line| line.contains(SECRET)),
        "{lines:#?}"
    );
}

#[test]
fn each_happening_is_told_once_and_names_no_url() {
    let _alone = super::alone();
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || run(story(hosts().build())));
    let lines = std::mem::take(&mut *lines.0.lock().unwrap());
    let events: Vec<&str> = lines.iter().map(String::as_str).collect();
    let budget = "host_budget";
    let expected = [
        // robots.txt first, then the page a delay later.
        format!("DEBUG {budget} starts: scope=host host=site.example waited_s=0.0"),
        "DEBUG robots robots.txt: origin=http://site.example outcome=rules".into(),
        format!("DEBUG {budget} waits: scope=host host=site.example"),
        format!("DEBUG {budget} starts: scope=host host=site.example waited_s=2.0"),
        format!(
            "INFO {budget} paused: scope=host host=site.example cause=throttled for_s=30.0 until_unix"
        ),
        format!("INFO {budget} slowed down: scope=host host=site.example backoff_level=1 rate=0.5"),
        "INFO retry_after sends again: host=site.example cause=throttled attempt=2".into(),
        // After the pause robots.txt is read again, before the page.
        format!("DEBUG {budget} waits: scope=host host=site.example"),
    ];
    let seen: Vec<&str> = events.iter().copied().take(expected.len()).collect();
    assert_eq!(seen, expected, "all: {events:#?}");
    let has = |line: &str| events.contains(&line);
    for line in [
        "DEBUG conditional_cache answered: host=site.example result=miss",
        "DEBUG conditional_cache answered: host=site.example result=hit",
        "DEBUG conditional_cache answered: host=site.example result=revalidated",
        "INFO robots refused: origin=http://site.example reason=disallowed",
        "INFO host_budget refused: scope=host host=site.example reason=paused retry_in_s=2.857142857",
    ] {
        assert!(has(line), "{line} in {events:#?}");
    }
    let secret = events.iter().find(|line| line.contains(SECRET));
    assert_eq!(secret, None);
    let path = events
        .iter()
        .find(|line| line.contains("/page") || line.contains("/private"));
    assert_eq!(path, None);
}
