//! Processes of a test's own: tests of the same program that another test starts, so that they can be killed or counted.

use std::process::{Command, Stdio};

/// The test `name` of this program, ignored or not, as a process whose output is read. What it writes to its standard
/// error is shown.
///
/// # Panics
/// When this program has no path.
#[must_use]
pub fn test(name: &str) -> Command {
    let program = std::env::current_exe().expect("a running program has a path");
    let mut process = Command::new(program);
    process
        .args(["--exact", name, "--include-ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    process
}
