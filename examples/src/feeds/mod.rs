//! Feeds, each asked when it is worth asking.
//!
//! With URLs it polls those until it is stopped. Without, it plays a day of polling on virtual time, and the same day
//! for a reader that asks every quarter of an hour for the whole feed, and compares what the sites saw.

mod args;
mod day;
mod poller;

use std::io::Write;

use tower_etiquette::client::{Client, RequestBody};
use tower_etiquette::{BoxError, HostPolicy, Hosts, TokioClock};

pub use args::Args;
pub use day::{Cost, Day};

use poller::Poller;

/// Polls the feeds of `args` until `stop` ends, one line per poll.
///
/// # Errors
/// When the name is not valid or not complete, the client cannot be built, or `out` cannot be written to.
pub async fn run(
    args: &Args,
    out: &mut (dyn Write + Send),
    stop: impl Future<Output = ()> + Send,
) -> Result<(), BoxError> {
    let hosts = Hosts::new(HostPolicy::new());
    // Redirects are facts about a feed: the poller follows them itself.
    let client = Client::builder(args.named.identity(&args.urls)?)
        .hosts(hosts)
        .max_redirects(0)
        .public_addresses_only(!args.allow_private)
        .build()?;
    let mut poller = Poller::new(client, &args.urls);
    let polls = poller.run::<RequestBody, _>(&TokioClock, None, args.polls, out);
    tokio::select! {
        () = stop => Ok(()),
        done = polls => done,
    }
}

/// Plays the day and writes one line per poll, then the comparison. Wants a runtime whose time is paused.
///
/// # Errors
/// When `out` cannot be written to.
pub async fn simulate(out: &mut (dyn Write + Send)) -> Result<Day, BoxError> {
    let day = day::play(out).await?;
    writeln!(out, "\n{day}")?;
    Ok(day)
}
