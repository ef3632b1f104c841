//! Verdicts: a test counts when it and everything that it depends on holds.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// How one test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    /// What the test is about does not hold.
    Fails(String),
    /// Something failed that had to hold before.
    Setup(String),
}

/// The counts of a run, as the suite's site counts.
pub(crate) struct Score {
    pub(crate) required: (usize, usize),
    pub(crate) optimal: (usize, usize),
    behaviours: (usize, usize),
    pub(crate) missed: Vec<String>,
}

impl Score {
    pub(crate) fn of(tests: &BTreeMap<String, Value>, outcomes: &BTreeMap<&str, Outcome>) -> Self {
        let mut score = Self {
            required: (0, 0),
            optimal: (0, 0),
            behaviours: (0, 0),
            missed: Vec::new(),
        };
        for (id, test) in tests {
            let kind = test["kind"].as_str().unwrap_or("required");
            let counts = match kind {
                "required" => &mut score.required,
                "optimal" => &mut score.optimal,
                _ => &mut score.behaviours,
            };
            counts.1 += 1;
            match judge(id, tests, outcomes) {
                Ok(()) => counts.0 += 1,
                Err(why) => score.missed.push(format!("{kind} {id}: {why}")),
            }
        }
        score
    }
}

fn judge(
    id: &str,
    tests: &BTreeMap<String, Value>,
    outcomes: &BTreeMap<&str, Outcome>,
) -> Result<(), String> {
    for needed in tests[id]["depends_on"].as_array().into_iter().flatten() {
        let needed = needed.as_str().unwrap();
        if !tests.contains_key(needed) || judge(needed, tests, outcomes).is_err() {
            return Err(format!("depends on {needed}"));
        }
    }
    match &outcomes[id] {
        Outcome::Holds => Ok(()),
        Outcome::Fails(why) => Err(why.clone()),
        Outcome::Setup(why) => Err(format!("setup: {why}")),
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((r, rn), (o, on), (b, bn)) = (self.required, self.optimal, self.behaviours);
        write!(
            f,
            "required {r}/{rn}, optimal {o}/{on}, behaviours yes {b}/{bn}"
        )
    }
}
