//! What is still to be visited: on the start hosts only, each URL once.
//!
//! Lists (sitemaps, then feeds) go before the pages of their host: until they are read, nobody knows which pages are
//! worth a request. Pages go in the order of [`Rank`]. One budget of pages holds, however they were found.

mod target;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use http::Uri;
use tower_etiquette::Origin;

use super::visits::News;
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

/// The place of a page that waits.
type Place = (Rank, u64);

#[derive(Debug, Default)]
struct Queue {
    sitemaps: VecDeque<Target>,
    feeds: VecDeque<Target>,
    pages: BTreeMap<Place, Target>,
    sitemaps_seen: usize,
    feeds_seen: usize,
    in_flight: usize,
    lists_in_flight: usize,
    /// Something was answered: the sitemaps that robots.txt names are known.
    looked: bool,
    /// Origins whose robots.txt has been looked into for sitemaps.
    asked: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Where it waits as a page; `None` once it was handed out, and for lists.
    waits: Option<Place>,
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

    /// Takes in a page that a list names, with what the list says about it. One that waits goes to a better place.
    pub(super) fn listed(&mut self, uri: &Uri, found: Found, news: &News, depth: usize) {
        self.page(uri, found, Rank::of(news), Read::of(news), depth);
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
        let (count, most, line) = match list.kind {
            Kind::Sitemap => (&mut queue.sitemaps_seen, MOST_SITEMAPS, &mut queue.sitemaps),
            _ => (&mut queue.feeds_seen, MOST_FEEDS, &mut queue.feeds),
        };
        if *count >= most || list.indexes > MOST_INDEXES || self.seen.len() >= MOST_SEEN {
            return;
        }
        let seen = self.seen.entry(uri.to_string());
        if let Entry::Occupied(known) = &seen {
            // What was taken for a page is read as the list that it is, unless it is too late.
            let Some(place) = known.get().waits else {
                return;
            };
            queue.pages.remove(&place);
        }
        seen.or_default().waits = None;
        *count += 1;
        line.push_back(Target {
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
            let Some(place) = seen.waits else { return };
            let Some(old) = queue.pages.get(&place) else {
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
            queue.pages.remove(&place);
        } else if self.seen.len() >= MOST_SEEN {
            return;
        }
        self.taken += 1;
        let place = (target.rank, self.taken);
        let seen = self.seen.entry(name).or_default();
        seen.linked |= found == Found::Link;
        seen.waits = Some(place);
        queue.pages.insert(place, target);
    }

    /// The host of `uri` and its one spelling, if it is a page of a start host.
    fn at_home(&self, uri: &Uri) -> Option<(Host, Uri)> {
        let host = host_of(uri)?;
        let uri = spelled(uri)?;
        let ours = self.queues.contains_key(&host) && uri.path() != "/robots.txt";
        ours.then_some((host, uri))
    }

    /// Whether robots.txt of the origin of `uri` is looked into for sitemaps for the first time.
    pub(super) fn first_look(&mut self, uri: &Uri) -> bool {
        let (Some(host), Ok(origin)) = (host_of(uri), Origin::of(uri)) else {
            return false;
        };
        let queue = self.queues.get_mut(&host);
        queue.is_some_and(|queue| queue.asked.insert(origin.to_string()))
    }

    /// A target of a host that has fewer than `places` in flight. It is in flight until [`Frontier::done`].
    pub(super) fn next(&mut self, places: usize) -> Option<Target> {
        for queue in self.queues.values_mut() {
            // The first answer tells which lists there are.
            let places = if queue.looked { places } else { 1 };
            if queue.in_flight >= places {
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
            queue.looked = true;
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
        self.meets(target, Fate::Spared);
    }

    /// The site was asked for a list.
    pub(super) fn list_asked(&mut self, target: &Target) {
        self.meets(target, Fate::List);
    }

    fn meets(&mut self, target: &Target, fate: Fate) {
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
        let place = match first {
            Some((place, page)) if budget || !page.costs_a_page() => *place,
            _ => {
                let spared = (Rank::Unchanged, 0)..=(Rank::Unchanged, u64::MAX);
                *self.pages.range(spared).next()?.0
            }
        };
        self.pages.remove(&place)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    fn frontier(max_depth: usize, max_pages: usize) -> Frontier {
        Frontier::new(&[uri("http://a.test/")], max_depth, max_pages)
    }

    fn changed(day: u64) -> News {
        News::Changed {
            at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400)),
            certain: false,
        }
    }

    fn drain(frontier: &mut Frontier) -> Vec<String> {
        let mut urls = Vec::new();
        while let Some(target) = frontier.next(1) {
            frontier.done(&target, false);
            urls.push(target.uri.to_string());
        }
        urls
    }

    fn sitemap(frontier: &mut Frontier, url: &str) {
        frontier.list(&uri(url), List::new(Kind::Sitemap, Found::Robots));
    }

    fn feed(frontier: &mut Frontier, url: &str) {
        frontier.list(&uri(url), List::new(Kind::Feed, Found::Start));
    }

    #[test]
    fn each_url_once_and_on_the_start_hosts_only() {
        let mut frontier = frontier(5, 100);
        for url in [
            "http://A.test:80/",
            "http://a.test/x",
            "http://a.test/x?y",
            "http://b.test/x",
            "http://www.a.test/x",
            "http://a.test:8080/x",
            "https://a.test/x",
            "http://a.test/robots.txt",
            "/relative",
        ] {
            frontier.link(&uri(url), 1);
        }
        assert_eq!(
            drain(&mut frontier),
            [
                "http://a.test/",
                "http://a.test/x",
                "http://a.test/x?y",
                "https://a.test/x"
            ]
        );
        frontier.link(&uri("http://a.test/x"), 1);
        frontier.listed(&uri("http://a.test/x"), Found::Sitemap, &changed(1), 1);
        assert_eq!(frontier.waiting(), 0);
    }

    #[test]
    fn depth_and_pages_have_limits_and_lists_go_first() {
        let mut frontier = frontier(1, 2);
        frontier.link(&uri("http://a.test/deep"), 2);
        frontier.link(&uri("http://a.test/1"), 1);
        frontier.link(&uri("http://a.test/2"), 1);
        feed(&mut frontier, "http://a.test/feed");
        sitemap(&mut frontier, "http://a.test/map");
        assert_eq!(
            drain(&mut frontier),
            [
                "http://a.test/map",
                "http://a.test/feed",
                "http://a.test/",
                "http://a.test/1"
            ]
        );
        assert_eq!(frontier.waiting(), 1);
    }

    #[test]
    fn sitemaps_and_feeds_have_limits_of_their_own() {
        let mut frontier = frontier(1, 0);
        for n in 0..2 * MOST_SITEMAPS {
            sitemap(&mut frontier, &format!("http://a.test/{n}.xml"));
            feed(&mut frontier, &format!("http://a.test/{n}.rss"));
        }
        assert_eq!(drain(&mut frontier).len(), MOST_SITEMAPS + MOST_FEEDS);
        for indexes in 0..10 {
            let mut frontier = self::frontier(1, 0);
            let list = List {
                indexes,
                ..List::new(Kind::Sitemap, Found::Sitemap)
            };
            frontier.list(&uri("http://a.test/deep.xml"), list);
            let read = drain(&mut frontier).len() == 1;
            assert_eq!(read, indexes <= MOST_INDEXES, "{indexes}");
        }
    }

    #[test]
    fn the_newest_go_first_and_links_fill_in() {
        let mut frontier = frontier(5, 5);
        for url in ["linked", "old", "twice", "same", "feed"] {
            frontier.link(&uri(&format!("http://a.test/{url}")), 1);
        }
        for (url, news) in [
            ("old", changed(1)),
            ("undated", News::Unknown),
            ("twice", News::Unknown),
            ("same", News::Unchanged),
            ("new", changed(3)),
            ("twice", changed(2)),
            // A second list that knows less changes nothing.
            ("new", News::Unknown),
            ("old", News::Unchanged),
        ] {
            let url = uri(&format!("http://a.test/{url}"));
            frontier.listed(&url, Found::Sitemap, &news, 1);
        }
        feed(&mut frontier, "http://a.test/feed");
        let order = ["feed", "", "new", "twice", "old", "undated", "same"];
        assert_eq!(
            drain(&mut frontier),
            order.map(|path| format!("http://a.test/{path}"))
        );
        // The budget is spent; what costs nothing was handed out all the same.
        assert_eq!(frontier.waiting(), 1);
    }

    #[test]
    fn a_start_that_did_not_change_is_not_asked_for() {
        let mut frontier = frontier(5, 1);
        let start = uri("http://a.test/");
        frontier.listed(&start, Found::Sitemap, &News::Unchanged, 1);
        frontier.listed(&uri("http://a.test/1"), Found::Sitemap, &changed(1), 1);
        let first = frontier.next(1).unwrap();
        assert_eq!((first.found, first.read), (Found::Start, Read::Copy));
        frontier.done(&first, false);
        frontier.spared(&first);
        assert_eq!(frontier.spared_and_linked(), 0);
        frontier.link(&start, 1);
        assert_eq!(frontier.spared_and_linked(), 1);
        assert_eq!(drain(&mut frontier), ["http://a.test/1"]);
    }

    #[test]
    fn pages_wait_for_the_lists_of_their_host() {
        let mut frontier = frontier(5, 10);
        frontier.link(&uri("http://a.test/1"), 1);
        let start = frontier.next(4).unwrap();
        assert_eq!(frontier.next(4), None, "robots.txt may name sitemaps");
        sitemap(&mut frontier, "http://a.test/map");
        frontier.done(&start, false);
        let map = frontier.next(4).unwrap();
        assert_eq!(map.kind, Kind::Sitemap);
        assert_eq!(frontier.next(4), None, "the sitemap is not read yet");
        frontier.done(&map, false);
        assert_eq!(frontier.next(4).unwrap().uri, "http://a.test/1");
    }

    #[test]
    fn a_refused_page_is_not_counted() {
        let mut frontier = frontier(1, 1);
        frontier.link(&uri("http://a.test/1"), 1);
        let first = frontier.next(1).unwrap();
        assert_eq!(frontier.next(1), None, "one place");
        frontier.done(&first, true);
        assert!(frontier.next(1).is_some());
    }

    #[test]
    fn places_are_counted_for_each_host() {
        let start = [
            uri("http://a.test/"),
            uri("http://a.test/1"),
            uri("http://b.test/"),
        ];
        let mut frontier = Frontier::new(&start, 1, 10);
        let first = [frontier.next(1), frontier.next(1)].map(Option::unwrap);
        let hosts = [0, 1].map(|n| host_of(&first[n].uri).unwrap());
        assert_eq!(hosts, ["a.test", "b.test"]);
        assert_eq!(frontier.next(1), None);
        assert_eq!(frontier.next(2), None, "nothing is answered yet");
        frontier.done(&first[0], false);
        assert!(frontier.next(1).is_some());
    }

    #[test]
    fn robots_txt_is_looked_into_once_for_each_origin() {
        let mut frontier = frontier(1, 1);
        assert!(frontier.first_look(&uri("http://a.test/")));
        assert!(!frontier.first_look(&uri("http://a.test/x")));
        assert!(frontier.first_look(&uri("https://a.test/")));
        assert!(!frontier.first_look(&uri("http://b.test/")));
    }
}
