//! Retry-After: the reading of one answer, and timelines played against the real layers.

mod expect;
mod run;
mod scenario;
mod site;

use std::time::{Duration, SystemTime};

use etiquette_core::RetryAfter;
use etiquette_tests::vectors::{Report, documents, rows};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use run::Arrangement;
use scenario::Scenario;

#[test]
fn retry_after() {
    let mut report = Report::new("retry_after");
    for row in rows("retry_after/parse.json", "cases") {
        let id = row["id"].as_str().unwrap();
        report.row("parse.json", id, parse(&row));
    }
    for document in documents("retry_after/scenarios.json") {
        for row in document["scenarios"]
            .as_array()
            .expect("scenarios is a list")
        {
            let scenario = Scenario::read(row, &document["defaults"]);
            if wanted(&scenario.id) {
                timeline(&mut report, &scenario);
            }
        }
    }
    report.finish();
}

const RETRY_OVER_BUDGET: &[&str] = &["retry_after", "budget"];
const BUDGET_OVER_RETRY: &[&str] = &["budget", "retry_after"];
const BUDGET: &[&str] = &["budget"];
const RETRY: &[&str] = &["retry_after"];

/// The arrangements in which a row has to hold. The whole stack is played with the least, the most and a drawn jitter,
/// the others with a drawn one; rows of many thousand requests in fewer ways, because they test size.
fn arrangements(scenario: &Scenario) -> Vec<Arrangement> {
    const DRAWN: (f64, f64) = (0.0, 0.1);
    let several_stacks = scenario.submit.iter().any(|s| s.row["stack"].is_number());
    let requests: u64 = scenario.submit.iter().map(|s| s.n).sum();
    let with = |layers, shared, jitter| Arrangement {
        layers,
        shared,
        jitter,
    };
    if let Some(layers) = scenario.config["layers"].as_array() {
        let names: Vec<_> = layers.iter().map(|layer| layer.as_str().unwrap()).collect();
        let all = [RETRY_OVER_BUDGET, BUDGET_OVER_RETRY, BUDGET, RETRY];
        let layers = all.into_iter().find(|layers| **layers == names[..]);
        let layers = layers.expect("a known arrangement");
        return vec![
            with(layers, false, (0.0, 0.0)),
            with(layers, false, (0.1, 0.1)),
            with(layers, false, DRAWN),
        ];
    }
    let mut all = vec![with(RETRY_OVER_BUDGET, true, DRAWN)];
    if requests < 5_000 {
        all.push(with(RETRY_OVER_BUDGET, true, (0.1, 0.1)));
        all.push(with(RETRY_OVER_BUDGET, true, (0.0, 0.0)));
        all.push(with(BUDGET_OVER_RETRY, true, DRAWN));
    }
    if requests < 2_500 && !several_stacks {
        all.push(with(BUDGET, false, DRAWN));
        all.push(with(RETRY_OVER_BUDGET, false, DRAWN));
        all.push(with(BUDGET_OVER_RETRY, false, DRAWN));
    }
    all
}

/// `ETIQUETTE_ROWS` may name the beginnings of the timelines to play, separated by commas.
fn wanted(id: &str) -> bool {
    match std::env::var("ETIQUETTE_ROWS") {
        Ok(rows) => rows.split(',').any(|row| id.starts_with(row)),
        Err(_) => true,
    }
}

fn timeline(report: &mut Report, scenario: &Scenario) {
    let file = "scenarios.json";
    if scenario.config["store"].is_string() {
        report.left_out(file, &scenario.id, "needs a store that processes share");
        return;
    }
    let outcome = arrangements(scenario)
        .into_iter()
        .try_for_each(|arrangement| {
            let played = run::play(scenario, arrangement);
            expect::check(scenario, &played, arrangement)
                .map_err(|why| format!("{arrangement:?}: {why}"))
        });
    report.row(file, &scenario.id, outcome);
}

fn parse(row: &Value) -> Result<(), String> {
    let mut headers = HeaderMap::new();
    for line in row["retry_after"].as_array().unwrap() {
        let value = HeaderValue::from_bytes(line.as_str().unwrap().as_bytes()).unwrap();
        headers.append("retry-after", value);
    }
    if let Some(date) = row["date"].as_str() {
        headers.insert("date", date.parse().unwrap());
    }
    if let Some(age) = row["age"].as_u64() {
        headers.insert("age", age.into());
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(row["now_unix"].as_u64().unwrap());
    let came = RetryAfter::of(&headers, now).wait();
    let accepted = row["accept"].as_array().unwrap();
    let fits = |one: &Value| match one["kind"].as_str().unwrap() {
        "wait" => came == Some(Duration::from_secs(one["seconds"].as_u64().unwrap())),
        "ignore" => came.is_none(),
        other => panic!("unknown outcome {other}"),
    };
    if accepted.iter().any(fits) {
        Ok(())
    } else {
        Err(format!("expected {accepted:?}, got {came:?}"))
    }
}
