//! The crawl itself: take a URL, visit it, take in what it leads to.
//!
//! It keeps no pace of its own. It has as many requests on the way as a host has places; the layers under the client
//! decide when each of them starts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::time::{Duration, Instant};

use http::Uri;
use tokio::task::JoinSet;
use tower_etiquette::identity::Identity;

use super::frontier::{Frontier, Host, Kind, Target, host_of};
use super::report::{Report, Tally};
use super::visit::{Visited, Visitor};
use super::{Args, Error, pace};

/// How often the pace is looked at while requests wait.
const LOOK: Duration = Duration::from_millis(200);

/// A client and the limits of a crawl with it. Runs of one engine share what the client remembers.
pub(super) struct Engine {
    visitor: Visitor,
    max_depth: usize,
    max_pages: usize,
    places: NonZeroU32,
}

impl Engine {
    /// An engine that calls itself `identity` and keeps at least `min_gap`, or the default of the layers.
    pub(super) fn new(
        args: &Args,
        identity: Identity,
        min_gap: Option<Duration>,
    ) -> Result<Self, Error> {
        Ok(Self {
            visitor: Visitor::new(args, identity, min_gap)?,
            max_depth: args.max_depth,
            max_pages: args.max_pages,
            places: args.places,
        })
    }

    /// Crawls from `start` until nothing is left or `stop` ends. Says whether `stop` ended it.
    pub(super) async fn crawl(
        &self,
        start: &[Uri],
        report: &mut Report<'_>,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<(Tally, bool), Error> {
        let began = Instant::now();
        let mut frontier = Frontier::new(start, self.max_depth, self.max_pages);
        // One URL of each start host, to ask for its pace.
        let hosts: BTreeMap<Host, &Uri> = start
            .iter()
            .filter_map(|uri| Some((host_of(uri)?, uri)))
            .collect();
        let mut tally = Tally::default();
        let mut visits: JoinSet<(Target, Visited)> = JoinSet::new();
        let mut look = tokio::time::interval(LOOK);
        let mut stopped = false;
        let places = usize::try_from(self.places.get()).unwrap_or(usize::MAX);
        loop {
            while let Some(target) = frontier.next(places) {
                let visitor = self.visitor.clone();
                visits.spawn(async move {
                    let visited = visitor.visit(&target).await;
                    (target, visited)
                });
            }
            let (target, visited) = tokio::select! {
                () = stop.as_mut() => {
                    stopped = true;
                    break;
                }
                done = visits.join_next() => match done {
                    Some(Ok(done)) => done,
                    Some(Err(broken)) => std::panic::resume_unwind(broken.into_panic()),
                    None => break,
                },
                _ = look.tick() => {
                    self.say_paces(&hosts, report)?;
                    continue;
                }
            };
            tally.count(&visited.record);
            report.visited(&visited.record)?;
            self.say_paces(&hosts, report)?;
            take_in(&mut frontier, &target, visited);
        }
        // Dropping them ends them; the layers free what they hold.
        drop(visits);
        tally.left = frontier.waiting();
        tally.took = began.elapsed();
        Ok((tally, stopped))
    }

    fn say_paces(
        &self,
        hosts: &BTreeMap<Host, &Uri>,
        report: &mut Report<'_>,
    ) -> Result<(), Error> {
        for (host, uri) in hosts {
            if let Some(why) = pace::why(self.visitor.hosts(), uri) {
                report.pace(host, why)?;
            }
        }
        Ok(())
    }
}

/// Takes in what a visit led to.
fn take_in(frontier: &mut Frontier, target: &Target, visited: Visited) {
    frontier.done(target, visited.record.refusal.is_some());
    if let Some(maps) = visited.maps_of_site
        && frontier.first_look(&target.uri)
    {
        for map in &maps {
            frontier.add(map, Kind::Sitemap, 0);
        }
    }
    // A hop is no link: it is as near as what it stands for.
    if let Some(uri) = &visited.moved_to {
        frontier.add(uri, target.kind, target.depth);
    }
    for map in &visited.maps {
        frontier.add(map, Kind::Sitemap, target.depth);
    }
    for link in &visited.links {
        frontier.add(link, Kind::Page, target.depth + 1);
    }
}
