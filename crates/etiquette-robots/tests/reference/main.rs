//! The crate against a slow reading of RFC 9309: generated files, byte soup, and real files where they are there.

mod naive;

use std::fs;
use std::path::Path;

use etiquette_robots::lint::lint;
use etiquette_robots::{Pattern, ProductToken, Robots, RuleKind};
use proptest::prelude::*;

fn token(text: &str) -> ProductToken {
    text.parse().unwrap()
}

/// Compares the answers for one crawler and URL; returns what differs.
fn difference(file: &[u8], name: &str, url: &str) -> Option<String> {
    let expected = naive::check(file, name, url.as_bytes());
    let token = token(name);
    let all = Robots::parse(file);
    let own = Robots::builder().tokens([token.clone()]).parse(file);
    for (kind, robots) in [("all", &all), ("own", &own)] {
        let verdict = robots.group(&token).check(url.as_bytes());
        let rule = verdict
            .rule()
            .map(|rule| (rule.kind() == RuleKind::Allow, rule.line()));
        if verdict.allowed() != expected.allowed || rule != expected.rule {
            return Some(format!(
                "{kind}, {name}, {url}: expected {expected:?}, came {verdict} {rule:?}"
            ));
        }
    }
    None
}

/// Pieces of paths that are easily confused.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "/", "/", "a", "b", "ab", "*", "*", "**", "$", "%61", "%2F", "%2f", "%2A", "%24", "%25",
        "%", "%a", "é", "%c3%a9", "%C3", "<", "%3C", "?", "=", "&", "%3f", ".", "~", "A",
    ])
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..8).prop_map(|pieces| pieces.concat())
}

fn rule_path() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => path().prop_map(|path| format!("/{path}")),
        1 => path().prop_map(|path| format!("*{path}")),
        1 => path(),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let agent = prop::sample::select(vec!["*", "a", "B", "b", "a-b", "a/1.0", "a b", "é", ""]);
    prop_oneof![
        10 => rule_path().prop_map(|path| format!("Disallow: {path}")),
        8 => rule_path().prop_map(|path| format!("allow :{path}")),
        6 => agent.prop_map(|agent| format!("User-Agent: {agent}")),
        1 => Just("Sitemap: https://www.example.com/s.xml".to_owned()),
        1 => Just("Crawl-delay: 1".to_owned()),
        1 => Just("X-Note: x".to_owned()),
        1 => Just(String::new()),
        1 => Just("  # note: x".to_owned()),
        1 => rule_path().prop_map(|path| format!("disallow {path}#x")),
        1 => Just("no record at all".to_owned()),
    ]
}

fn file() -> impl Strategy<Value = String> {
    let end = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r", "\n\n"]);
    let lines = prop::collection::vec((line(), end), 0..25);
    (prop::bool::weighted(0.9), lines).prop_map(|(named, lines)| {
        let head = if named { "User-agent: a\n" } else { "\u{feff}" };
        let lines = lines.iter().flat_map(|(line, end)| [line.as_str(), end]);
        head.to_owned() + &lines.collect::<String>()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn verdicts_are_those_of_the_reference(file in file(), urls in prop::collection::vec(path(), 1..8)) {
        for url in &urls {
            for name in ["a", "b", "a-b", "c"] {
                let found = difference(file.as_bytes(), name, &format!("/{url}"));
                prop_assert_eq!(found, None, "{}", file);
            }
        }
    }

    #[test]
    fn a_pattern_matches_as_the_reference_does(rule in rule_path(), url in path()) {
        let url = format!("/{url}");
        let pattern = Pattern::new(rule.as_bytes());
        let (matches, bytes) = naive::pattern(rule.as_bytes(), url.as_bytes());
        prop_assert_eq!(pattern.matches(url.as_bytes()), matches);
        prop_assert_eq!(pattern.specificity(), bytes);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300), url in prop::collection::vec(any::<u8>(), 0..30)) {
        let robots = Robots::parse(&bytes);
        let verdict = robots.group(&token("a")).check(&url);
        prop_assert_eq!(verdict.allowed(), verdict.rule().is_none_or(|rule| rule.kind() == RuleKind::Allow));
        let _ = lint(&bytes);
    }

    #[test]
    fn records_in_any_bytes_keep_the_limits(parts in prop::collection::vec((line(), prop::collection::vec(any::<u8>(), 0..6)), 0..30)) {
        let bytes: Vec<u8> = parts.iter().flat_map(|(line, junk)| [line.as_bytes(), junk].concat()).collect();
        let robots = Robots::parse(&bytes);
        for name in robots.group_names() {
            if name != "*" {
                let group = robots.named_group(&token(name));
                prop_assert!(group.is_some(), "{}", name);
            }
        }
        for finding in lint(&bytes) {
            prop_assert!(finding.line() >= 1);
        }
    }
}

#[test]
fn real_files_are_read_as_the_reference_reads_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/robots/files");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: no real files at {}", folder.display());
        return;
    };
    let mut questions = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let file = fs::read(&path).unwrap();
        let robots = Robots::parse(&file);
        let mut names: Vec<&str> = robots.group_names().filter(|name| *name != "*").collect();
        names.truncate(1);
        names.push("ExampleBot");
        for name in names {
            let token = token(name);
            let rules = robots.group(&token).rules();
            let own = Robots::builder().tokens([token.clone()]).parse(&file);
            let mut urls = vec!["/".to_owned(), "/index.html?a=b".to_owned()];
            for rule in rules.iter().step_by(rules.len() / 10 + 1) {
                let text = rule.text().replace('$', "");
                urls.push(text.replace('*', ""));
                urls.push(text.replace('*', "x/y") + "z");
            }
            let naive = naive::File::read(&file);
            for url in urls.into_iter().filter(|url| url.starts_with('/')) {
                let expected = naive.check(name, url.as_bytes());
                for robots in [&robots, &own] {
                    let verdict = robots.group(&token).check(url.as_bytes());
                    let rule = verdict
                        .rule()
                        .map(|rule| (rule.kind() == RuleKind::Allow, rule.line()));
                    assert_eq!(
                        (verdict.allowed(), rule),
                        (expected.allowed, expected.rule),
                        "{} {name} {url}",
                        path.display()
                    );
                }
                questions += 1;
            }
        }
        let _ = lint(&file);
    }
    assert!(questions > 500, "only {questions} questions");
}
