//! Reading the JSON vector sets and reporting on their rows.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The folders that hold vectors: the committed one and, if the environment names it, a second one.
fn folders() -> impl Iterator<Item = PathBuf> {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let extra = std::env::var_os("ETIQUETTE_VECTORS").map(PathBuf::from);
    std::iter::once(committed).chain(extra)
}

/// Reads `file`, for example `"robots/matching.json"`, from every folder that has it.
///
/// # Panics
/// When a file is there but is not JSON: a broken vector file is a broken test.
#[must_use]
pub fn documents(file: &str) -> Vec<Value> {
    let found: Vec<Value> = folders()
        .map(|folder| folder.join(file))
        .filter(|path| path.is_file())
        .map(|path| {
            let text = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        })
        .collect();
    assert!(!found.is_empty(), "no folder has {file}");
    found
}

/// The rows of `file` from every folder: the array at `key`, or the document itself where `key` is empty.
///
/// A row that stands in both folders with the same `id` and the same content is played once.
#[must_use]
pub fn rows(file: &str, key: &str) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for document in documents(file) {
        let list = if key.is_empty() {
            &document
        } else {
            &document[key]
        };
        let list = list
            .as_array()
            .unwrap_or_else(|| panic!("{file}: no array at {key:?}"));
        for row in list {
            if seen.insert(row.to_string()) {
                rows.push(row.clone());
            }
        }
    }
    rows
}

/// What a run over one folder's sets found. Dropping it without [`Report::finish`] loses the findings.
#[derive(Debug)]
#[must_use]
pub struct Report {
    folder: &'static str,
    played: usize,
    failed: Vec<String>,
    left_out: Vec<String>,
}

impl Report {
    /// A report for the sets of `folder`.
    pub fn new(folder: &'static str) -> Self {
        Self {
            folder,
            played: 0,
            failed: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Notes the outcome of one row: `Err` says what was expected and what came.
    pub fn row(&mut self, file: &str, id: &str, outcome: Result<(), impl Display>) {
        self.played += 1;
        if let Err(why) = outcome {
            self.failed.push(format!("{file} {id}: {why}"));
        }
    }

    /// Notes a row or a set that is not played, and why, so that it stays visible.
    pub fn left_out(&mut self, file: &str, id: &str, why: impl Display) {
        self.left_out.push(format!("{file} {id}: {why}"));
    }

    /// Prints the counts and fails the test when a row failed.
    ///
    /// # Panics
    /// When a row failed, naming each, and when nothing was played at all.
    #[expect(
        clippy::print_stdout,
        reason = "what is left out is shown by the test that leaves it out"
    )]
    pub fn finish(self) {
        for line in &self.left_out {
            println!("left out: {line}");
        }
        println!(
            "{}: {} rows, {} failed, {} left out",
            self.folder,
            self.played,
            self.failed.len(),
            self.left_out.len()
        );
        assert!(
            self.failed.is_empty(),
            "{} rows failed:\n{}",
            self.failed.len(),
            self.failed.join("\n")
        );
        assert!(self.played > 0, "{}: no row was played", self.folder);
    }
}
