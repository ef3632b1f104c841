//! A polite crawl, seen from both ends of the connection.
//!
//! Without targets the program serves a small site to itself, crawls it twice and then judges itself by what the site
//! saw. With targets it crawls those. Sitemaps and feeds decide what is visited ([`Prefer::Machine`]); they are found
//! through robots.txt and the start page, never guessed at. It is an example, no crawler framework: one process, one
//! list of URLs in memory, nothing kept of the pages but their links and the times of the visits.

mod args;
mod engine;
mod error;
mod frontier;
mod introduced;
mod pace;
mod published;
mod record;
mod report;
mod targets;
mod visit;
mod visits;

use std::io::Write;
use std::pin::{Pin, pin};
use std::time::Duration;

use etiquette_tests::promises::Promises;
use http::Uri;
use tower_etiquette::Identity;

pub use args::{Args, Prefer};
pub use error::Error;
pub use frontier::Found;
pub(crate) use introduced::introduced;
pub use published::BadLink;
pub use record::{From, Record, Refused};
pub use report::Tally;
pub use targets::BadTarget;

use crate::site;
use engine::Engine;
use introduced::Introduced;
use report::Report;

/// The delay towards the site that the program serves to itself: shorter than that site's Crawl-delay, so that the site
/// decides. Towards others it is the default of the layers.
const OWN_DELAY: Duration = Duration::from_millis(200);

/// What a crawl came to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// How each run went: one with targets, two without.
    pub runs: Vec<Tally>,
    /// What the log of the program's own site says, if it was crawled.
    pub promises: Option<Promises>,
    /// Whether it was stopped before its end.
    pub stopped: bool,
}

impl Outcome {
    /// The exit status: 1 if a promise broke, else 0.
    #[must_use]
    pub fn status(&self) -> u8 {
        u8::from(self.promises.as_ref().is_some_and(Promises::any_broken))
    }
}

/// Crawls as `args` say, writes to `out` what happens, and ends early, with the summary, when `stop` does.
///
/// # Errors
/// When a target may not be crawled like this, the name is not valid, the page behind it does not name it where that is
/// required, or a file or socket cannot be used. That a page fails is no error of the crawl.
pub async fn run(
    args: &Args,
    out: &mut (dyn Write + Send),
    stop: impl Future<Output = ()> + Send,
) -> Result<Outcome, Error> {
    let introduced = introduced(args).await?;
    let mut report = Report::new(out, args.quiet || args.json, args.output.as_deref())?;
    let stop = pin!(stop);
    if args.urls.is_empty() {
        crawl_oneself(args, introduced.identity, &mut report, stop).await
    } else {
        crawl_targets(args, introduced, &mut report, stop).await
    }
}

async fn crawl_targets(
    args: &Args,
    introduced: Introduced,
    report: &mut Report<'_>,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Result<Outcome, Error> {
    let mut engine = Engine::new(args, introduced.identity, args.delay)?;
    if introduced.elsewhere {
        tokio::select! {
            () = stop.as_mut() => {
                if !args.json {
                    report.summary("stopped before the start")?;
                }
                return Ok(Outcome { runs: Vec::new(), promises: None, stopped: true });
            }
            checked = engine.check_published() => match checked {
                Ok(()) => {}
                Err(why) if args.require_published => return Err(Error::Unpublished(why)),
                // Whoever reads JSON reads nothing else there.
                Err(why) if args.json => eprintln!("crawl: warning: {why}"),
                Err(why) => report.summary(format_args!("warning: {why}"))?,
            }
        }
    }
    let (tally, stopped) = engine.crawl(&args.urls, report, stop).await?;
    if args.json {
        report.summary(tally.json(1, stopped))?;
    } else {
        report.summary(format_args!("{}{tally}", prefix(stopped)))?;
    }
    Ok(Outcome {
        runs: vec![tally],
        promises: None,
        stopped,
    })
}

async fn crawl_oneself(
    args: &Args,
    identity: Identity,
    report: &mut Report<'_>,
    mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
) -> Result<Outcome, Error> {
    let token = identity.token().to_string();
    let site = site::serve().await?;
    let start: Uri = site.url("/").parse().expect("an address makes a URL");
    let mut engine = Engine::new(args, identity, args.delay.or(Some(OWN_DELAY)))?;
    let mut runs = Vec::new();
    let mut stopped = false;
    for run in ["first", "second"] {
        report.progress(format_args!("{run} run of {start}"))?;
        let (tally, early) = engine
            .crawl(std::slice::from_ref(&start), report, stop.as_mut())
            .await?;
        runs.push(tally);
        stopped = early;
        if stopped {
            break;
        }
        site.log().next_run();
    }
    let log = site.log().entries();
    let promises = Promises::check(&log, &site::expected(&token, args.max_in_flight.get() > 1));
    if args.json {
        for (run, tally) in (1..).zip(&runs) {
            report.summary(tally.json(run, stopped && run == runs.len()))?;
        }
    } else {
        report.summary("\nThe site's access log:")?;
        for entry in &log {
            report.summary(entry)?;
        }
        report.summary(format_args!("\n{promises}"))?;
        for (run, tally) in ["first", "second"].iter().zip(&runs) {
            report.summary(format_args!("{run} run: {tally}"))?;
        }
        if stopped {
            report.summary("stopped before the end")?;
        }
    }
    Ok(Outcome {
        runs,
        promises: Some(promises),
        stopped,
    })
}

/// What a summary begins with.
fn prefix(stopped: bool) -> &'static str {
    if stopped { "stopped: " } else { "" }
}
