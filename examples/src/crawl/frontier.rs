//! What is still to be visited: on the start hosts only, each URL once.
//!
//! Lists (sitemaps, then feeds) go before the pages of their host: until they are read, nobody knows which pages are
//! worth a request. Pages go in the order of [`Rank`]. One budget of pages holds, however they were found.

mod target;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use http::Uri;
use tower_etiquette::Origin;

use super::visits::Change;
pub use target::Found;
pub(super) use target::{Host, Kind, List, Rank, Read, Target, host_of, spelled};

/// URLs that are remembered at most, so that a site with endless links costs no endless memory.
const MOST_SEEN: usize = 200_000;

/// Sitemaps that are read of a host at most.
const MOST_SITEMAPS: usize = 50;

/// Feeds that are read of a host at most.
const MOST_FEEDS: usize = 10;

/// Indexes that may stand above a sitemap: the protocol has one, sites have two.
const MOST_INDEXES: u8 = 3;

/// The queues of all start hosts.
#[derive(Debug)]
pub(super) struct Frontier {
    queues: BTreeMap<Host, Queue>,
    seen: HashMap<String, Seen>,
    max_depth: usize,
    pages_left: usize,
    /// Pages taken in so far: their order where ranks are equal.
    taken: u64,
}

/// Where a page waits in its queue.
type Position = (Rank, u64);

#[derive(Debug, Default)]
struct Queue {
    sitemaps: VecDeque<Target>,
    feeds: VecDeque<Target>,
    pages: BTreeMap<Position, Target>,
    sitemaps_seen: usize,
    feeds_seen: usize,
    in_flight: usize,
    lists_in_flight: usize,
    /// Something was answered: the sitemaps that robots.txt names are known.
    answered: bool,
    /// Origins whose robots.txt has been searched for sitemaps.
    asked: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Where it waits as a page; `None` once it was handed out, and for lists.
    waits: Option<Position>,
    /// A link leads to it.
    linked: bool,
    fate: Fate,
}

/// What became of a URL, as far as it is counted in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Ordinary,
    /// It was left alone because a list says that it did not change.
    Spared,
    /// It was asked for as a list.
    List,
}

impl Frontier {
    /// A frontier that starts with `start` and hands out `max_pages` pages at most.
    pub(super) fn new(start: &[Uri], max_depth: usize, max_pages: usize) -> Self {
        let mut frontier = Self {
            queues: BTreeMap::new(),
            seen: HashMap::new(),
            max_depth,
            pages_left: max_pages,
            taken: 0,
        };
        for uri in start {
            if let Some(host) = host_of(uri) {
                frontier.queues.entry(host).or_default();
            }
        }
        for uri in start {
            frontier.page(uri, Found::Start, Rank::Start, Read::Ask, 0);
        }
        frontier
    }

    /// Takes in a page that a link leads to, unless it is known, too far away or on another host.
    pub(super) fn link(&mut self, uri: &Uri, depth: usize) {
        self.page(uri, Found::Link, Rank::Linked, Read::Ask, depth);
    }

    /// Takes in a page that a list names, with what the list says about it. One that waits moves forward.
    pub(super) fn listed(&mut self, uri: &Uri, found: Found, change: &Change, depth: usize) {
        self.page(uri, found, Rank::of(change), Read::of(change), depth);
    }

    /// Takes in where `target` redirects to. A hop is no link: it is as near, and as urgent, as what it stands for.
    pub(super) fn hop(&mut self, uri: &Uri, target: &Target) {
        if target.kind == Kind::Page {
            self.page(uri, target.found, target.rank, Read::Ask, target.depth);
        } else {
            let list = List {
                named_by: target.named_by.clone(),
                indexes: target.indexes,
                ..List::new(target.kind, target.found)
            };
            self.list(uri, list);
        }
    }

    /// Takes in a sitemap or a feed of a start host.
    pub(super) fn list(&mut self, uri: &Uri, list: List) {
        let Some((host, uri)) = self.at_home(uri) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&host) else {
            return;
        };
        let (count, most, lists) = match list.kind {
            Kind::Sitemap => (&mut queue.sitemaps_seen, MOST_SITEMAPS, &mut queue.sitemaps),
            _ => (&mut queue.feeds_seen, MOST_FEEDS, &mut queue.feeds),
        };
        if *count >= most || list.indexes > MOST_INDEXES || self.seen.len() >= MOST_SEEN {
            return;
        }
        let seen = self.seen.entry(uri.to_string());
        if let Entry::Occupied(known) = &seen {
            // What was taken for a page is read as the list that it is, unless it is too late.
            let Some(position) = known.get().waits else {
                return;
            };
            queue.pages.remove(&position);
        }
        seen.or_default().waits = None;
        *count += 1;
        lists.push_back(Target {
            named_by: list.named_by,
            indexes: list.indexes,
            ..Target::new(uri, list.kind, list.found, Rank::Start, list.read, 0)
        });
    }

    fn page(&mut self, uri: &Uri, found: Found, rank: Rank, read: Read, depth: usize) {
        if depth > self.max_depth {
            return;
        }
        let Some((host, uri)) = self.at_home(uri) else {
            return;
        };
        let Some(queue) = self.queues.get_mut(&host) else {
            return;
        };
        let name = uri.to_string();
        let mut target = Target::new(uri, Kind::Page, found, rank, read, depth);
        if let Some(seen) = self.seen.get_mut(&name) {
            seen.linked |= found == Found::Link;
            let Some(position) = seen.waits else { return };
            let Some(old) = queue.pages.get(&position) else {
                return;
            };
            if target.weight() <= old.weight() {
                return;
            }
            // The start is asked first, whatever is said about it: it names the feeds.
            if old.rank == Rank::Start {
                target.rank = Rank::Start;
                target.found = old.found;
            }
            target.depth = target.depth.min(old.depth);
            queue.pages.remove(&position);
        } else if self.seen.len() >= MOST_SEEN {
            return;
        }
        self.taken += 1;
        let position = (target.rank, self.taken);
        let seen = self.seen.entry(name).or_default();
        seen.linked |= found == Found::Link;
        seen.waits = Some(position);
        queue.pages.insert(position, target);
    }

    /// The host of `uri` and its one spelling, if it is a page of a start host.
    fn at_home(&self, uri: &Uri) -> Option<(Host, Uri)> {
        let host = host_of(uri)?;
        let uri = spelled(uri)?;
        let ours = self.queues.contains_key(&host) && uri.path() != "/robots.txt";
        ours.then_some((host, uri))
    }

    /// Whether the robots.txt of the origin of `uri` is searched for sitemaps for the first time.
    pub(super) fn is_first_answer_of(&mut self, uri: &Uri) -> bool {
        let (Some(host), Ok(origin)) = (host_of(uri), Origin::of(uri)) else {
            return false;
        };
        let queue = self.queues.get_mut(&host);
        queue.is_some_and(|queue| queue.asked.insert(origin.to_string()))
    }

    /// A target of a host that has fewer than `max_in_flight` in flight. It is in flight until [`Frontier::done`].
    pub(super) fn next(&mut self, max_in_flight: usize) -> Option<Target> {
        for queue in self.queues.values_mut() {
            // The first answer says which lists there are.
            let limit = if queue.answered { max_in_flight } else { 1 };
            if queue.in_flight >= limit {
                continue;
            }
            let list = queue.sitemaps.pop_front();
            let target = match list.or_else(|| queue.feeds.pop_front()) {
                Some(list) => {
                    queue.lists_in_flight += 1;
                    list
                }
                None if queue.lists_in_flight > 0 => continue,
                None => match queue.next_page(self.pages_left > 0) {
                    Some(page) => page,
                    None => continue,
                },
            };
            queue.in_flight += 1;
            if target.costs_a_page() {
                self.pages_left -= 1;
            }
            if let Some(seen) = self.seen.get_mut(&target.uri.to_string()) {
                seen.waits = None;
            }
            return Some(target);
        }
        None
    }

    /// A target is no longer in flight. One that was `refused` cost its site nothing and counts as no page.
    pub(super) fn done(&mut self, target: &Target, refused: bool) {
        if let Some(queue) = host_of(&target.uri).and_then(|host| self.queues.get_mut(&host)) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
            queue.answered = true;
            if target.kind != Kind::Page {
                queue.lists_in_flight = queue.lists_in_flight.saturating_sub(1);
            }
        }
        if refused && target.costs_a_page() {
            self.pages_left += 1;
        }
    }

    /// A page was not asked for, because a list says that it did not change.
    pub(super) fn spared(&mut self, target: &Target) {
        self.set_fate(target, Fate::Spared);
    }

    /// The site was asked for a list.
    pub(super) fn list_asked(&mut self, target: &Target) {
        self.set_fate(target, Fate::List);
    }

    fn set_fate(&mut self, target: &Target, fate: Fate) {
        if let Some(seen) = self.seen.get_mut(&target.uri.to_string()) {
            seen.fate = fate;
        }
    }

    /// To how many of the pages that were left alone a link leads.
    pub(super) fn spared_and_linked(&self) -> usize {
        self.count(Fate::Spared, true)
    }

    /// To how many of the lists that were asked for no link leads: following links would not have asked for them.
    pub(super) fn lists_not_linked(&self) -> usize {
        self.count(Fate::List, false)
    }

    fn count(&self, fate: Fate, linked: bool) -> usize {
        let seen = self.seen.values();
        seen.filter(|seen| seen.fate == fate && seen.linked == linked)
            .count()
    }

    /// How many URLs wait to be visited.
    pub(super) fn waiting(&self) -> usize {
        let queues = self.queues.values();
        queues
            .map(|q| q.sitemaps.len() + q.feeds.len() + q.pages.len())
            .sum()
    }
}

impl Queue {
    /// The next page; where no budget is left only one that costs no request.
    fn next_page(&mut self, budget: bool) -> Option<Target> {
        let first = self.pages.first_key_value();
        let position = match first {
            Some((position, page)) if budget || !page.costs_a_page() => *position,
            _ => {
                let spared = (Rank::Unchanged, 0)..=(Rank::Unchanged, u64::MAX);
                *self.pages.range(spared).next()?.0
            }
        };
        self.pages.remove(&position)
    }
}

#[cfg(test)]
mod tests;
