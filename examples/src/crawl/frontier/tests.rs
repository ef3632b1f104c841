use std::time::{Duration, SystemTime};

use super::*;

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

fn frontier(max_depth: usize, max_pages: usize) -> Frontier {
    Frontier::new(&[uri("http://a.test/")], max_depth, max_pages)
}

fn changed(day: u64) -> Change {
    Change::Changed {
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
    for (url, change) in [
        ("old", changed(1)),
        ("undated", Change::Unknown),
        ("twice", Change::Unknown),
        ("same", Change::Unchanged),
        ("new", changed(3)),
        ("twice", changed(2)),
        // A second list that knows less changes nothing.
        ("new", Change::Unknown),
        ("old", Change::Unchanged),
    ] {
        let url = uri(&format!("http://a.test/{url}"));
        frontier.listed(&url, Found::Sitemap, &change, 1);
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
    frontier.listed(&start, Found::Sitemap, &Change::Unchanged, 1);
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
    assert_eq!(frontier.next(1), None, "one permit");
    frontier.done(&first, true);
    assert!(frontier.next(1).is_some());
}

#[test]
fn permits_are_counted_for_each_host() {
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
    assert!(frontier.is_first_answer_of(&uri("http://a.test/")));
    assert!(!frontier.is_first_answer_of(&uri("http://a.test/x")));
    assert!(frontier.is_first_answer_of(&uri("https://a.test/")));
    assert!(!frontier.is_first_answer_of(&uri("http://b.test/")));
}
