//! `preferences/`: what sites wish, source by source and together.

use etiquette_core::decide::preferences::tdm::TdmRule;
use etiquette_core::decide::preferences::{
    Directives, Preferences, StatementSource, Tdm, Use, Wishes, content_signal, content_usage,
};
use etiquette_discovery::html::HtmlScanner;
use etiquette_robots::{ProductToken, Robots};
use etiquette_tests::vectors::{Report, rows};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::user_agent::same;

type Play = fn(&Value) -> Value;

#[test]
fn preferences() {
    let mut report = Report::new("preferences");
    for (file, play) in [
        (
            "preferences/content_usage_header.json",
            usage_header as Play,
        ),
        ("preferences/content_usage_robots.json", usage_robots),
        ("preferences/content_signal.json", signal),
        ("preferences/x_robots_tag.json", x_robots_tag),
        ("preferences/meta_robots.json", meta_robots),
        ("preferences/tdm.json", tdm),
        ("preferences/combine.json", combine),
    ] {
        for row in rows(file, "cases") {
            let outcome = same(&row["expect"], &play(&row));
            report.row(file, row["id"].as_str().unwrap(), outcome);
        }
    }
    report.finish();
}

fn text<'v>(row: &'v Value, key: &str) -> &'v str {
    row[key].as_str().unwrap()
}

fn token(row: &Value) -> ProductToken {
    text(row, "token").parse().unwrap()
}

fn lines(row: &Value) -> Vec<&[u8]> {
    let lines = row["header_lines"].as_array().unwrap().iter();
    lines
        .map(|line| line.as_str().unwrap().as_bytes())
        .collect()
}

fn usage(wishes: Wishes) -> Value {
    json!({ "train-ai": wishes.train_ai.to_string(), "search": wishes.search.to_string() })
}

fn usage_header(row: &Value) -> Value {
    usage(content_usage::from_header(lines(row)))
}

fn usage_robots(row: &Value) -> Value {
    let robots = Robots::parse(text(row, "robots_txt").as_bytes());
    let group = robots.group(&token(row));
    let path = text(row, "path").as_bytes();
    let crawl = group.check(path).allowed();
    let preferences = if crawl {
        usage(content_usage::from_robots(&group, path))
    } else {
        Value::Null
    };
    json!({ "crawl": crawl, "preferences": preferences })
}

fn signal(row: &Value) -> Value {
    let wishes = match (row["robots_txt"].as_str(), row["response_header"].as_str()) {
        (Some(file), None) => {
            let robots = Robots::parse(file.as_bytes());
            content_signal::from_robots(&robots.group(&token(row)))
        }
        (None, Some(header)) => content_signal::from_header([header.as_bytes()]),
        other => panic!("neither robots.txt nor a header: {other:?}"),
    };
    json!({
        "search": wishes.search.to_string(),
        "ai-input": wishes.ai_input.to_string(),
        "ai-train": wishes.train_ai.to_string(),
    })
}

fn x_robots_tag(row: &Value) -> Value {
    let directives = Directives::from_header(lines(row), text(row, "token"));
    directives.iter().collect()
}

fn meta_robots(row: &Value) -> Value {
    let uri = http::Uri::from_static("https://site.example/");
    let page = HtmlScanner::new(&uri)
        .limit(64 * 1024)
        .scan(text(row, "html").as_bytes());
    let mut directives = Directives::default();
    for meta in page.meta_robots() {
        directives.add_meta(&meta.name, &meta.content, text(row, "token"));
    }
    directives.iter().collect()
}

fn tdm(row: &Value) -> Value {
    let input = &row["input"];
    let mut headers = HeaderMap::new();
    for (name, value) in input["headers"].as_object().unwrap() {
        let values = value.as_array().cloned();
        for value in values.unwrap_or_else(|| vec![value.clone()]) {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value.as_str().unwrap()).unwrap(),
            );
        }
    }
    let rules: Vec<_> = input["tdmrep_json"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|rule| {
            TdmRule::new(
                text(rule, "location"),
                rule["tdm-reservation"].as_u64().unwrap_or(u64::MAX),
                rule["tdm-policy"].as_str().map(str::to_owned),
            )
        })
        .collect();
    let path = input["path"].as_str().unwrap_or("/");
    let tdm = Tdm::from_headers(&headers).or(Tdm::from_rules(&rules, path));
    json!({ "reserved": tdm.reserved, "policy": tdm.policy })
}

fn combine(row: &Value) -> Value {
    let sources = &row["sources"];
    let mut headers = HeaderMap::new();
    for (key, name) in [
        ("content_usage_header", "content-usage"),
        ("x_robots_tag", "x-robots-tag"),
        ("tdm_reservation", "tdm-reservation"),
    ] {
        if let Some(value) = sources.get(key) {
            let value = value.as_str().map_or(value.to_string(), str::to_owned);
            headers.append(name, HeaderValue::from_str(&value).unwrap());
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
    json!({
        "train-ai": together.about(Use::TrainAi).to_string(),
        "search": together.about(Use::Search).to_string(),
        "ai-input": together.about(Use::AiInput).to_string(),
    })
}
