//! `preferences/`: what sites wish, source by source and together.

use etiquette_core::decide::preferences::tdm::TdmRule;
use etiquette_core::decide::preferences::{
    Directives, Preferences, StatementSource, Tdm, Use, Wishes, content_signal, content_usage,
};
use etiquette_discovery::html::HtmlScanner;
use etiquette_robots::{ProductToken, Robots};
use etiquette_tests::vectors::Kind::{List, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, Vectors, any_text, headers, list, only_keys, optional, same, text, unknown,
};
use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};

type Play = fn(&Value) -> Result<Value, String>;

/// What rows have beside id and expectation.
type Keys = &'static [(&'static str, Kind)];

/// The sets, what their rows have, and who plays them.
const SETS: &[(&str, Keys, Play)] = &[
    (
        "preferences/content_usage_header.json",
        &[("header_lines", List)],
        usage_header,
    ),
    (
        "preferences/content_usage_robots.json",
        &[("path", Text), ("robots_txt", Text), ("token", Text)],
        usage_robots,
    ),
    (
        "preferences/content_signal.json",
        &[
            ("response_header", Text),
            ("robots_txt", Text),
            ("token", Text),
        ],
        signal,
    ),
    (
        "preferences/x_robots_tag.json",
        &[("header_lines", List), ("token", Text)],
        x_robots_tag,
    ),
    (
        "preferences/meta_robots.json",
        &[("html", Text), ("token", Text)],
        meta_robots,
    ),
    ("preferences/tdm.json", &[("input", Object)], tdm),
    ("preferences/combine.json", &[("sources", Object)], combine),
];

#[test]
fn preferences() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("preferences");
    for (file, keys, play) in SETS {
        let keys = [&[("id", Text), ("expect", Kind::Any)], *keys].concat();
        for row in vectors.rows(file, "cases") {
            report.play(file, &row, |row| {
                only_keys(row, "the row", &keys)?;
                known_expectation(&row["expect"])?;
                same(&row["expect"], &play(row)?)
            });
        }
    }
    report
}

/// Fails where something is expected that no set tells of.
fn known_expectation(expect: &Value) -> Result<(), String> {
    const WISHES: &[(&str, Kind)] = &[
        ("ai-input", Text),
        ("ai-train", Text),
        ("search", Text),
        ("train-ai", Text),
    ];
    match expect {
        Value::Array(rules) => rules.iter().try_for_each(|rule| any_text(rule).map(drop)),
        expect => {
            let more = [
                ("crawl", Kind::Flag),
                ("policy", Text),
                ("preferences", Object),
                ("reserved", Kind::Flag),
            ];
            only_keys(&expect["preferences"], "preferences", WISHES)?;
            only_keys(expect, "expect", &[WISHES, &more].concat())
        }
    }
}

fn token(row: &Value) -> Result<ProductToken, String> {
    let token = text(row, "token")?;
    token.parse().map_err(|e| format!("{token}: {e}"))
}

fn lines(row: &Value) -> Result<Vec<&[u8]>, String> {
    let lines = list(row, "header_lines")?.iter();
    lines.map(|line| Ok(any_text(line)?.as_bytes())).collect()
}

fn field(value: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(value).map_err(|_| unknown(format_args!("the header value {value:?}")))
}

fn usage(wishes: Wishes) -> Value {
    json!({ "train-ai": wishes.train_ai.to_string(), "search": wishes.search.to_string() })
}

fn usage_header(row: &Value) -> Result<Value, String> {
    Ok(usage(content_usage::from_header(lines(row)?)))
}

fn usage_robots(row: &Value) -> Result<Value, String> {
    let robots = Robots::parse(text(row, "robots_txt")?.as_bytes());
    let group = robots.group(&token(row)?);
    let path = text(row, "path")?.as_bytes();
    let crawl = group.check(path).allowed();
    let preferences = if crawl {
        usage(content_usage::from_robots(&group, path))
    } else {
        Value::Null
    };
    Ok(json!({ "crawl": crawl, "preferences": preferences }))
}

fn signal(row: &Value) -> Result<Value, String> {
    let wishes = match (row["robots_txt"].as_str(), row["response_header"].as_str()) {
        (Some(file), None) => {
            let robots = Robots::parse(file.as_bytes());
            content_signal::from_robots(&robots.group(&token(row)?))
        }
        (None, Some(header)) => content_signal::from_header([header.as_bytes()]),
        _ => return Err(unknown("neither robots.txt nor a header, or both")),
    };
    Ok(json!({
        "search": wishes.search.to_string(),
        "ai-input": wishes.ai_input.to_string(),
        "ai-train": wishes.train_ai.to_string(),
    }))
}

fn x_robots_tag(row: &Value) -> Result<Value, String> {
    let directives = Directives::from_header(lines(row)?, text(row, "token")?);
    Ok(directives.iter().collect())
}

fn meta_robots(row: &Value) -> Result<Value, String> {
    let uri = http::Uri::from_static("https://site.example/");
    let page = HtmlScanner::new(&uri)
        .limit(64 * 1024)
        .scan(text(row, "html")?.as_bytes());
    let mut directives = Directives::default();
    for meta in page.meta_robots() {
        directives.add_meta(&meta.name, &meta.content, text(row, "token")?);
    }
    Ok(directives.iter().collect())
}

fn tdm(row: &Value) -> Result<Value, String> {
    let input = &row["input"];
    let keys = [("headers", Object), ("path", Text), ("tdmrep_json", List)];
    only_keys(input, "input", &keys)?;
    let headers = headers(&input["headers"])?;
    let mut rules = Vec::new();
    for rule in input["tdmrep_json"].as_array().into_iter().flatten() {
        rules.push(TdmRule::new(
            text(rule, "location")?,
            rule["tdm-reservation"].as_u64().unwrap_or(u64::MAX),
            rule["tdm-policy"].as_str().map(str::to_owned),
        ));
    }
    let path = input["path"].as_str().unwrap_or("/");
    let tdm = Tdm::from_headers(&headers).or(Tdm::from_rules(&rules, path));
    Ok(json!({ "reserved": tdm.reserved, "policy": tdm.policy }))
}

fn combine(row: &Value) -> Result<Value, String> {
    let sources = &row["sources"];
    let keys = [
        ("content_signal", Text),
        ("content_usage_header", Text),
        ("content_usage_robots", Text),
        ("tdm_reservation", Kind::Any),
        ("x_robots_tag", Text),
    ];
    only_keys(sources, "sources", &keys)?;
    let mut headers = HeaderMap::new();
    for (key, name) in [
        ("content_usage_header", "content-usage"),
        ("x_robots_tag", "x-robots-tag"),
        ("tdm_reservation", "tdm-reservation"),
    ] {
        if let Some(value) = optional(sources, key) {
            let value = value.as_str().map_or(value.to_string(), str::to_owned);
            headers.append(name, field(&value)?);
        }
    }
    let mut together = Preferences::read(&headers, None, "ExampleBot");
    if let Some(value) = sources["content_usage_robots"].as_str() {
        let robots = Robots::parse(format!("User-agent: *\nContent-Usage: {value}\n").as_bytes());
        let group = robots.group(&"ExampleBot".parse().unwrap());
        let said = content_usage::from_robots(&group, b"/");
        together.add(StatementSource::ContentUsageRobots, said);
    }
    if let Some(value) = sources["content_signal"].as_str() {
        let said = content_signal::from_header([value.as_bytes()]);
        together.add(StatementSource::ContentSignalHeader, said);
    }
    Ok(json!({
        "train-ai": together.about(Use::TrainAi).to_string(),
        "search": together.about(Use::Search).to_string(),
        "ai-input": together.about(Use::AiInput).to_string(),
    }))
}
