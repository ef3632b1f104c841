//! The crawl itself: take a URL, visit it, take in what it leads to.
//!
//! Sitemaps and feeds decide what is worth a visit, compared with when pages were visited last; links fill in.
//!
//! It keeps no pace of its own. It has as many requests in flight as a host allows; the layers under the client decide when
//! each of them starts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::time::{Duration, Instant};

use http::Uri;
use tokio::task::JoinSet;
use tower_etiquette::{Clock, Identity, Origin, TokioClock};

use super::args::Prefer;
use super::frontier::{Found, Frontier, Host, Kind, List, Read, Target, host_of, spelled};
use super::record::From;
use super::report::{Report, Tally};
use super::visit::{Visited, Visitor};
use super::visits::{Change, Visits};
use super::{Args, BadLink, Error, pace};

/// How often the pace of the hosts is reported while requests wait.
const PACE_INTERVAL: Duration = Duration::from_millis(200);

/// A client and the limits of a crawl with it. Runs of one engine share what the client remembers.
pub(super) struct Engine {
    visitor: Visitor,
    visits: Visits,
    prefer: Prefer,
    max_depth: usize,
    max_pages: usize,
    max_in_flight: NonZeroU32,
}

impl Engine {
    /// An engine that calls itself `identity` and keeps at least `delay`, or the default of the layers.
    pub(super) fn new(
        args: &Args,
        identity: Identity,
        delay: Option<Duration>,
    ) -> Result<Self, Error> {
        Ok(Self {
            // First, since it refuses a folder that another process uses.
            visitor: Visitor::new(args, identity, delay)?,
            visits: Visits::open(args.cache.as_deref())?,
            prefer: args.prefer,
            max_depth: args.max_depth,
            max_pages: args.max_pages,
            max_in_flight: args.max_in_flight,
        })
    }

    /// Whether the page behind the crawler's name names it.
    ///
    /// # Errors
    /// What was found instead.
    pub(super) async fn check_published(&self) -> Result<(), BadLink> {
        self.visitor.check_published().await
    }

    /// Crawls from `start` until nothing is left or `stop` ends. Says whether `stop` ended it.
    pub(super) async fn crawl(
        &mut self,
        start: &[Uri],
        report: &mut Report<'_>,
        mut stop: Pin<&mut (impl Future<Output = ()> + Send)>,
    ) -> Result<(Tally, bool), Error> {
        let began = Instant::now();
        let mut frontier = Frontier::new(start, self.max_depth, self.max_pages);
        if self.prefer == Prefer::Machine {
            // What robots.txt named in the last run is read before the start page: perhaps it needs no visit.
            for uri in start {
                self.add_sitemaps(&mut frontier, uri, None);
            }
        }
        // One URL of each start host, to ask for its pace.
        let hosts: BTreeMap<Host, &Uri> = start
            .iter()
            .filter_map(|uri| Some((host_of(uri)?, uri)))
            .collect();
        let mut tally = Tally::default();
        let mut visits: JoinSet<(Target, Visited)> = JoinSet::new();
        let mut paces = tokio::time::interval(PACE_INTERVAL);
        let mut stopped = false;
        let max_in_flight = usize::try_from(self.max_in_flight.get()).unwrap_or(usize::MAX);
        loop {
            while let Some(target) = frontier.next(max_in_flight) {
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
                _ = paces.tick() => {
                    self.report_paces(&hosts, report)?;
                    continue;
                }
            };
            tally.count(&visited.record);
            tally.unchanged_fresh += usize::from(visited.record.unchanged && visited.fresh);
            report.visited(&visited.record)?;
            self.report_paces(&hosts, report)?;
            self.take_in(&mut frontier, &target, &visited)?;
        }
        // Dropping them ends them; the layers free what they hold.
        drop(visits);
        tally.unchanged_linked = frontier.spared_and_linked();
        tally.lists = frontier.lists_not_linked();
        tally.left = frontier.waiting();
        tally.took = began.elapsed();
        Ok((tally, stopped))
    }

    /// Takes in what a visit led to.
    fn take_in(
        &mut self,
        frontier: &mut Frontier,
        target: &Target,
        visited: &Visited,
    ) -> Result<(), Error> {
        let url = target.uri.to_string();
        if let Some(at) = visited.current_at {
            self.visits.visited(&url, at)?;
        }
        let asked = matches!(visited.record.from, Some(From::Network | From::Validated));
        if visited.record.unchanged {
            frontier.spared(target);
        } else if asked && target.kind != Kind::Page {
            frontier.list_asked(target);
        }
        if self.prefer == Prefer::Machine {
            self.take_in_lists(frontier, target, visited)?;
        }
        // Only now may the next target be handed out: what a list says is known.
        frontier.done(target, visited.record.refusal.is_some());
        if let Some(uri) = &visited.moved_to {
            frontier.hop(uri, target);
        }
        for link in &visited.links {
            frontier.link(link, target.depth + 1);
        }
        Ok(())
    }

    fn take_in_lists(
        &mut self,
        frontier: &mut Frontier,
        target: &Target,
        visited: &Visited,
    ) -> Result<(), Error> {
        if let Some(maps) = &visited.maps_of_site
            && let Ok(origin) = Origin::of(&target.uri)
        {
            self.visits.named(&origin.to_string(), maps)?;
            self.add_sitemaps(frontier, &target.uri, Some(maps));
        }
        for (uri, kind) in &visited.announced {
            frontier.list(uri, List::new(*kind, Found::Start));
        }
        let now = TokioClock.now().wall;
        // A sitemap of an index may speak for the host for which the index may.
        let named_by = target.named_by.as_ref().unwrap_or(&target.uri);
        for map in &visited.maps {
            let Some(uri) = spelled(&map.uri) else {
                continue;
            };
            let change = self.visits.change(&uri.to_string(), map.date, now);
            let list = List {
                named_by: Some(named_by.clone()),
                indexes: target.indexes + 1,
                read: Read::of(&change),
                ..List::new(Kind::Sitemap, Found::Sitemap)
            };
            frontier.list(&uri, list);
        }
        for entry in &visited.entries {
            let Some(uri) = spelled(&entry.uri) else {
                continue;
            };
            let url = uri.to_string();
            let (found, change): (_, Change) = match target.kind {
                Kind::Feed => (
                    Found::Feed,
                    self.visits.change_of_feed(&url, entry.date, now),
                ),
                _ => (Found::Sitemap, self.visits.change(&url, entry.date, now)),
            };
            frontier.listed(&uri, found, &change, target.depth + 1);
        }
        Ok(())
    }

    /// Adds the sitemaps that the robots.txt of the origin of `uri` names, or named in the last run.
    fn add_sitemaps(&self, frontier: &mut Frontier, uri: &Uri, named: Option<&[Uri]>) {
        let Ok(origin) = Origin::of(uri) else { return };
        let known;
        let maps = match named {
            // Each answer brings the same robots.txt.
            Some(_) if !frontier.is_first_answer_of(uri) => return,
            Some(maps) => maps,
            None => {
                known = self.visits.sitemaps(&origin.to_string());
                &known
            }
        };
        for map in maps {
            let list = List {
                named_by: origin.uri("/"),
                ..List::new(Kind::Sitemap, Found::Robots)
            };
            frontier.list(map, list);
        }
    }

    fn report_paces(
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
