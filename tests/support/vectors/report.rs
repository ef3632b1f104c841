//! What a run over vector sets found.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;

use super::row::RowResult;

/// What a run over one folder's sets found. Dropping it without [`Report::finish`] loses it.
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

    /// Plays `row` and notes the outcome under its `id`. A panic fails this row alone.
    pub fn play(&mut self, file: &str, row: &Value, play: impl FnOnce(&Value) -> RowResult) {
        let id = id(row);
        self.play_as(file, &id, || play(row));
    }

    /// As [`Report::play`], under a name of the caller's choice.
    pub fn play_as(&mut self, file: &str, id: &str, play: impl FnOnce() -> RowResult) {
        let outcome = caught(play);
        self.row(file, id, outcome);
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

    /// The rows that failed so far: file, id and reason of each.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failed
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

/// What `play` gives, or the error that it panicked with.
///
/// # Errors
/// Those of `play`, and a panic.
pub fn caught<T, E: From<String>>(play: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|cause| {
        let cause = cause
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| cause.downcast_ref::<&str>().copied())
            .unwrap_or("without a message");
        Err(format!("it panicked: {cause}").into())
    })
}

/// The id of a row; the row itself where it has none.
fn id(row: &Value) -> String {
    row["id"]
        .as_str()
        .map_or_else(|| format!("(a row without an id: {row})"), str::to_owned)
}
