//! What is still to be visited: on the start hosts only, each URL once, nearest first.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use http::Uri;
use tower_etiquette::Origin;

/// URLs that are remembered at most, so that a site with endless links costs no endless memory.
const MOST_SEEN: usize = 200_000;

/// Sitemaps that are read of a host at most.
const MOST_SITEMAPS: usize = 50;

/// A URL to be visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uri: Uri,
    pub(super) kind: Kind,
    /// Links away from where the crawl started.
    pub(super) depth: usize,
}

/// What a URL is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Sitemap,
    Page,
}

/// A host as budgets see it: without the scheme, and without the scheme's port.
pub(super) type Host = String;

/// The queues of all start hosts.
#[derive(Debug)]
pub(super) struct Frontier {
    queues: BTreeMap<Host, Queue>,
    seen: HashSet<String>,
    max_depth: usize,
    pages_left: usize,
}

#[derive(Debug, Default)]
struct Queue {
    sitemaps: VecDeque<Target>,
    pages: VecDeque<Target>,
    sitemaps_seen: usize,
    in_flight: usize,
    /// Origins whose robots.txt has been looked into for sitemaps.
    asked: BTreeSet<String>,
}

/// The host of an absolute URI.
pub(super) fn host_of(uri: &Uri) -> Option<Host> {
    let origin = Origin::of(uri).ok()?;
    Some(match origin.explicit_port() {
        Some(port) => format!("{}:{port}", origin.host()),
        None => origin.host().to_owned(),
    })
}

impl Frontier {
    /// A frontier that starts with `start` and hands out `max_pages` pages at most.
    pub(super) fn new(start: &[Uri], max_depth: usize, max_pages: usize) -> Self {
        let mut frontier = Self {
            queues: BTreeMap::new(),
            seen: HashSet::new(),
            max_depth,
            pages_left: max_pages,
        };
        for uri in start {
            if let Some(host) = host_of(uri) {
                frontier.queues.entry(host).or_default();
            }
        }
        for uri in start {
            frontier.add(uri, Kind::Page, 0);
        }
        frontier
    }

    /// Takes `uri` in, unless it is known, too far away or on another host.
    pub(super) fn add(&mut self, uri: &Uri, kind: Kind, depth: usize) {
        let (Some(host), Ok(origin)) = (host_of(uri), Origin::of(uri)) else {
            return;
        };
        if depth > self.max_depth || self.seen.len() >= MOST_SEEN {
            return;
        }
        let Some(queue) = self.queues.get_mut(&host) else {
            return;
        };
        // One spelling of scheme and host, and a slash for an empty path.
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let Some(uri) = origin.uri(path) else { return };
        let full = kind == Kind::Sitemap && queue.sitemaps_seen >= MOST_SITEMAPS;
        if full || uri.path() == "/robots.txt" || !self.seen.insert(uri.to_string()) {
            return;
        }
        let target = Target { uri, kind, depth };
        match kind {
            Kind::Sitemap => {
                queue.sitemaps_seen += 1;
                queue.sitemaps.push_back(target);
            }
            Kind::Page => queue.pages.push_back(target),
        }
    }

    /// Whether robots.txt of `origin` is looked into for sitemaps for the first time.
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
            if queue.in_flight >= places {
                continue;
            }
            let target = match queue.sitemaps.pop_front() {
                Some(sitemap) => Some(sitemap),
                None if self.pages_left > 0 => queue.pages.pop_front(),
                None => None,
            };
            let Some(target) = target else { continue };
            queue.in_flight += 1;
            if target.kind == Kind::Page {
                self.pages_left -= 1;
            }
            return Some(target);
        }
        None
    }

    /// A target is no longer in flight. One that was `refused` cost its site nothing and counts as no page.
    pub(super) fn done(&mut self, target: &Target, refused: bool) {
        if let Some(queue) = host_of(&target.uri).and_then(|host| self.queues.get_mut(&host)) {
            queue.in_flight = queue.in_flight.saturating_sub(1);
        }
        if refused && target.kind == Kind::Page {
            self.pages_left += 1;
        }
    }

    /// How many URLs wait to be visited.
    pub(super) fn waiting(&self) -> usize {
        let queues = self.queues.values();
        queues.map(|q| q.sitemaps.len() + q.pages.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    fn frontier(max_depth: usize, max_pages: usize) -> Frontier {
        Frontier::new(&[uri("http://a.test/")], max_depth, max_pages)
    }

    fn drain(frontier: &mut Frontier) -> Vec<String> {
        let mut urls = Vec::new();
        while let Some(target) = frontier.next(1) {
            frontier.done(&target, false);
            urls.push(target.uri.to_string());
        }
        urls
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
            frontier.add(&uri(url), Kind::Page, 1);
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
        frontier.add(&uri("http://a.test/x"), Kind::Page, 1);
        assert_eq!(frontier.waiting(), 0);
    }

    #[test]
    fn depth_and_pages_have_limits_and_sitemaps_go_first() {
        let mut frontier = frontier(1, 2);
        frontier.add(&uri("http://a.test/deep"), Kind::Page, 2);
        frontier.add(&uri("http://a.test/1"), Kind::Page, 1);
        frontier.add(&uri("http://a.test/2"), Kind::Page, 1);
        frontier.add(&uri("http://a.test/map"), Kind::Sitemap, 0);
        assert_eq!(
            drain(&mut frontier),
            ["http://a.test/map", "http://a.test/", "http://a.test/1"]
        );
        assert_eq!(frontier.waiting(), 1);
    }

    #[test]
    fn sitemaps_have_a_limit_of_their_own() {
        let mut frontier = frontier(1, 0);
        for n in 0..2 * MOST_SITEMAPS {
            let map = uri(&format!("http://a.test/{n}.xml"));
            frontier.add(&map, Kind::Sitemap, 0);
        }
        assert_eq!(drain(&mut frontier).len(), MOST_SITEMAPS);
    }

    #[test]
    fn a_refused_page_is_not_counted() {
        let mut frontier = frontier(1, 1);
        frontier.add(&uri("http://a.test/1"), Kind::Page, 1);
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
        let hosts = [frontier.next(1), frontier.next(1)].map(|t| host_of(&t.unwrap().uri));
        assert_eq!(
            hosts,
            [Some("a.test".to_owned()), Some("b.test".to_owned())]
        );
        assert_eq!(frontier.next(1), None);
        assert!(frontier.next(2).is_some());
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
