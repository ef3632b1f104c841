//! Any bytes as a robots.txt.

#![no_main]

use etiquette_robots::lint::lint;
use etiquette_robots::{ProductToken, Robots};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let robots = Robots::parse(bytes);
    let lines = bytes.len() as u32 + 1;
    let names: Vec<ProductToken> = robots
        .group_names()
        .filter_map(|name| name.parse().ok())
        .collect();
    let other: ProductToken = "no-such-name-in-any-file".parse().expect("a token");
    for token in names.iter().take(8).chain([&other]) {
        let own = Robots::builder().tokens([token.clone()]).parse(bytes);
        let (group, same) = (robots.group(token), own.group(token));
        assert_eq!(group.crawl_delay(), same.crawl_delay());
        assert_eq!(robots.names(token), own.names(token));
        let rules = group.rules();
        assert_eq!(rules, same.rules());
        assert!(rules.is_sorted_by_key(|rule| rule.line()));
        for rule in rules.iter().take(32) {
            assert!((1..=lines).contains(&rule.line()));
            assert_eq!(group.check(rule.bytes()), same.check(rule.bytes()));
        }
        let _ = group.request_rate();
    }
    let _ = robots.sitemap_urls("https://www.example.com/robots.txt").count();
    // Percent-encoded and written form of each rule, and the records of the smallest possible lines.
    assert!(robots.size() <= 2_000 + 20 * bytes.len(), "{}", robots.size());
    for finding in lint(bytes) {
        assert!((1..=lines).contains(&finding.line()));
        assert!(!finding.to_string().is_empty());
    }
});
