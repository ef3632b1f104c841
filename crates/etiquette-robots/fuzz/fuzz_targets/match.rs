//! A file, a NUL, and a path: the answer against trying each rule by itself.

#![no_main]

use etiquette_robots::{Cause, Pattern, ProductToken, Robots, RuleKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (file, path) = bytes.split_at(at);
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
        .filter(|rule| Pattern::new(rule.bytes()).matches(&path))
        .max_by_key(|rule| {
            let allow = rule.kind() == RuleKind::Allow;
            let specificity = Pattern::new(rule.bytes()).specificity();
            (specificity, allow, std::cmp::Reverse(rule.line()))
        });
    assert_eq!(verdict.rule(), best.as_ref());
    assert_eq!(
        verdict.allowed(),
        best.is_none_or(|rule| rule.kind() == RuleKind::Allow)
    );
});
