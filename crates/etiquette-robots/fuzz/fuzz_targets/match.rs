//! A file, a NUL, and a path: the answer against trying each rule by itself.

#![no_main]

use etiquette_robots::{Cause, Pattern, ProductToken, Robots, RuleKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: &[u8]| {
    let at = octets.iter().position(|octet| *octet == 0).unwrap_or(octets.len());
    let (file, path) = octets.split_at(at);
    let path = [b"/", path].concat();
    let robots = Robots::parse(file);
    let token: ProductToken = "a".parse().expect("a token");
    let group = robots.group(&token);
    let verdict = group.check(&path);
    if verdict.cause() == Cause::RobotsTxt {
        return;
    }
    if robots.rules_over_limit() > 0 {
        // A rule with more wildcards than are matched is not what it says.
        return;
    }
    let best = group
        .rules()
        .into_iter()
        .filter(|rule| Pattern::new(rule.octets()).matches(&path))
        .max_by_key(|rule| {
            let allow = rule.kind() == RuleKind::Allow;
            let specificity = Pattern::new(rule.octets()).specificity();
            (specificity, allow, std::cmp::Reverse(rule.line()))
        });
    assert_eq!(verdict.rule(), best.as_ref());
    assert_eq!(
        verdict.allowed(),
        best.is_none_or(|rule| rule.kind() == RuleKind::Allow)
    );
});
