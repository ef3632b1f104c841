//! The public suite of HTTP cache tests (http-tests/cache-tests), played in process against the cache layer.
//!
//! The definitions are not part of this repository; where they are absent, the test says so and ends. The layer runs as
//! in a gateway: shared, with the usual heuristic. Time is paused tokio time, so the pauses of the suite cost nothing.
//!
//! Left out as the suite's authors do for caches that are no browsers and no CDNs: `browser_only` and `cdn_only`.
//! hyper's servers cannot send 1xx responses, so the interim tests are played and fail. What else is missing to all of
//! the optimal ones is wanted: four `partial-store-partial-reuse-*` and their like ask to reuse 5 bytes that say of
//! themselves that they are 6; `partial-store-partial-complete` asks for the rest of a part without a validator, which
//! could not be joined; `conditional-lm-fresh-no-lm` asks for a 304 although the response is newer than the caller's;
//! `vary-normalise-lang-select` takes two lists of languages for one that do not mean the same.

#![allow(clippy::print_stdout, reason = "a test says what it skips and counts")]

mod client;
mod origin;
mod verdict;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use verdict::{Outcome, Score};

/// What this layer reached, and must not fall below.
const REQUIRED: usize = 149;
const OPTIMAL: usize = 88;

/// The definitions, from the folder that the environment names or from beside the repository.
fn definitions() -> Option<Vec<u8>> {
    let named = std::env::var_os("ETIQUETTE_VECTORS").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/vectors");
    let mut folders = named.into_iter().chain([beside]);
    folders.find_map(|folder| std::fs::read(folder.join("cache/cache-tests.json")).ok())
}

#[test]
fn cache_suite() {
    let Some(text) = definitions() else {
        println!("cache_suite: skipped, the definitions of the public suite are not there");
        return;
    };
    let document: Value = serde_json::from_slice(&text).unwrap();
    let tests: BTreeMap<String, Value> = document["suites"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|suite| suite["tests"].as_array().unwrap())
        .filter(|test| test["browser_only"] != true && test["cdn_only"] != true)
        .map(|test| (test["id"].as_str().unwrap().to_owned(), test.clone()))
        .collect();
    let outcomes: BTreeMap<&str, Outcome> = tests
        .iter()
        .map(|(id, test)| (id.as_str(), client::play(test)))
        .collect();
    let score = Score::of(&tests, &outcomes);
    for line in &score.missed {
        println!("{line}");
    }
    println!("{score}");
    assert!(
        score.required.0 >= REQUIRED && score.optimal.0 >= OPTIMAL,
        "{score}: below required {REQUIRED}, optimal {OPTIMAL}"
    );
}
