//! The promises of a polite client, checked by what its site's log says and by nothing else.
//!
//! Every function takes entries of one site (see [`Log::entries`](crate::site::Log::entries)) in the order of arrival
//! and returns a [`PromiseCheck`]: what was counted, and whether the promise held. For a client with one permit the times of a
//! log are bounds that need no tolerance: a request is noted no earlier than it left, and a client cannot see an answer
//! before it was handed to the connection.

mod checks;

use std::fmt;
use std::time::Duration;

use crate::site::Entry;

pub use checks::{
    most_at_once, named, nothing_disallowed, pause_kept, robots_first, second_run_conditional,
    slower_afterwards, smallest_delay, smallest_delay_of_starts,
};

/// What was found about one promise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PromiseCheck {
    /// The name of the promise.
    pub promise: &'static str,
    /// Whether it held.
    pub outcome: Outcome,
    /// What was counted, in words.
    pub counted: String,
}

/// Whether a promise held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Something was counted, and it was as promised.
    Kept,
    /// At least one request was not as promised.
    Broken,
    /// The log has nothing that the promise is about.
    Unseen,
}

impl PromiseCheck {
    fn new(promise: &'static str, outcome: Outcome, counted: impl Into<String>) -> Self {
        Self {
            promise,
            outcome,
            counted: counted.into(),
        }
    }

    fn of(promise: &'static str, kept: bool, counted: impl Into<String>) -> Self {
        let outcome = if kept { Outcome::Kept } else { Outcome::Broken };
        Self::new(promise, outcome, counted)
    }

    /// Fails the test unless the promise was seen and kept.
    ///
    /// # Panics
    /// When it was not.
    #[track_caller]
    pub fn expect_kept(&self) {
        assert_eq!(self.outcome, Outcome::Kept, "{self}");
    }
}

impl fmt::Display for PromiseCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.outcome {
            Outcome::Kept => "kept",
            Outcome::Broken => "BROKEN",
            Outcome::Unseen => "unseen",
        };
        write!(f, "{:<22}  {word:<6}  {}", self.promise, self.counted)
    }
}

/// What the operator of a site knows about it, to judge its log by.
#[derive(Clone, Debug)]
pub struct Expected<'a> {
    /// The product token of the client.
    pub token: &'a str,
    /// The paths that its robots.txt disallows to that client, as prefixes.
    pub disallowed: &'a [&'a str],
    /// The smallest delay that the client may leave, for example its Crawl-delay.
    pub delay: Duration,
    /// How long a request may be on its way, for a client with several permits. Zero for a client with one: it has
    /// nothing on its way while it is being answered, so that its log is judged without tolerance.
    pub travel: Duration,
}

/// All promises, as a table.
#[derive(Clone, Debug)]
#[must_use]
pub struct Promises(Vec<PromiseCheck>);

impl Promises {
    /// Checks `log` against all of them.
    pub fn check(log: &[Entry], expected: &Expected<'_>) -> Self {
        let delay = if expected.travel.is_zero() {
            smallest_delay(log, expected.delay)
        } else {
            smallest_delay_of_starts(log, expected.delay, expected.travel)
        };
        Self(vec![
            named(log, expected.token),
            robots_first(log),
            nothing_disallowed(log, expected.disallowed),
            delay,
            pause_kept(log, expected.travel),
            slower_afterwards(log),
            second_run_conditional(log),
        ])
    }

    /// The checks, one for each promise.
    #[must_use]
    pub fn checks(&self) -> &[PromiseCheck] {
        &self.0
    }

    /// Whether one of them broke.
    #[must_use]
    pub fn any_broken(&self) -> bool {
        self.0.iter().any(|f| f.outcome == Outcome::Broken)
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<22}  {:<6}  counted in the site's log", "promise", "")?;
        self.0.iter().try_for_each(|check| writeln!(f, "{check}"))
    }
}
