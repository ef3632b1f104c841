//! Retry-After: what one answer says, and timelines played against the real layers.

use std::time::{Duration, SystemTime};

use etiquette_core::RetryAfter;
use etiquette_tests::timeline::{self, Arrangement, Scenario};
use etiquette_tests::vectors::Kind::{Any, List, Number, Text};
use etiquette_tests::vectors::{
    Report, RowResult, Vectors, any_text, list, only_keys, optional, text, unknown, whole,
};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

const PARSE: &str = "parse.json";
const SCENARIOS: &str = "scenarios.json";

#[test]
fn retry_after() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("retry_after");
    for row in vectors.rows("retry_after/parse.json", "cases") {
        report.play(PARSE, &row, parse);
    }
    for document in vectors.documents("retry_after/scenarios.json") {
        let rows = document["scenarios"].as_array();
        for row in rows.expect("scenarios is a list") {
            if !timeline::is_wanted(row["id"].as_str().unwrap_or_default()) {
                continue;
            }
            match Scenario::read(row, &document["defaults"]) {
                Ok(scenario) => play_timeline(&mut report, row, &scenario),
                why => report.play(SCENARIOS, row, |_| why.map(drop)),
            }
        }
    }
    report
}

const RETRY_OVER_BUDGET: &[&str] = &["retry_after", "budget"];
const BUDGET_OVER_RETRY: &[&str] = &["budget", "retry_after"];
const BUDGET: &[&str] = &["budget"];
const RETRY: &[&str] = &["retry_after"];

/// The arrangements in which a row has to hold. The whole stack is played with the least, the most and a drawn jitter,
/// the others with a drawn one; rows of many thousand requests in fewer ways, because they test size.
fn arrangements(scenario: &Scenario) -> Result<Vec<Arrangement>, String> {
    const DRAWN: (f64, f64) = (0.0, 0.1);
    let several_stacks = scenario.submit.iter().any(|s| s.row["stack"].is_number());
    let requests: u64 = scenario.submit.iter().map(|s| s.n).sum();
    let with = |layers, shared, jitter| Arrangement {
        layers,
        shared,
        jitter,
    };
    if let Some(layers) = scenario.config["layers"].as_array() {
        let names: Vec<_> = layers.iter().map(any_text).collect::<Result<_, _>>()?;
        let all = [RETRY_OVER_BUDGET, BUDGET_OVER_RETRY, BUDGET, RETRY];
        let layers = all.into_iter().find(|layers| **layers == names[..]);
        let layers = layers.ok_or_else(|| unknown(format_args!("the layers {names:?}")))?;
        return Ok(vec![
            with(layers, false, (0.0, 0.0)),
            with(layers, false, (0.1, 0.1)),
            with(layers, false, DRAWN),
        ]);
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
    Ok(all)
}

fn play_timeline(report: &mut Report, row: &Value, scenario: &Scenario) {
    if scenario.config["store"].is_string() {
        let why = "needs a store that processes share";
        report.left_out(SCENARIOS, &scenario.id, why);
        return;
    }
    report.play(SCENARIOS, row, |_| {
        arrangements(scenario)?
            .into_iter()
            .try_for_each(|arrangement| {
                timeline::play(scenario, arrangement)
                    .and_then(|observed| timeline::check(scenario, &observed, arrangement))
                    .map_err(|why| format!("{arrangement:?}: {why}"))
            })
    });
}

fn parse(row: &Value) -> RowResult {
    only_keys(
        row,
        "the row",
        &[
            ("id", Text),
            ("status", Number),
            ("retry_after", List),
            ("date", Text),
            ("age", Number),
            ("now_unix", Number),
            ("rfc", Any),
            ("accept", List),
        ],
    )?;
    let mut headers = HeaderMap::new();
    let field = |value: &Value| {
        HeaderValue::from_bytes(any_text(value)?.as_bytes())
            .map_err(|_| unknown(format_args!("{value} is no value of a header")))
    };
    for line in list(row, "retry_after")? {
        headers.append("retry-after", field(line)?);
    }
    if let Some(date) = optional(row, "date") {
        headers.insert("date", field(date)?);
    }
    if optional(row, "age").is_some() {
        let age: u64 = whole(row, "age")?;
        headers.insert("age", age.into());
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(whole(row, "now_unix")?);
    let came = RetryAfter::of(&headers, now).wait();
    let accepted = list(row, "accept")?;
    let mut fits = false;
    for one in accepted {
        only_keys(one, "accept", &[("kind", Text), ("seconds", Number)])?;
        fits |= match text(one, "kind")? {
            "wait" => came == Some(Duration::from_secs(whole(one, "seconds")?)),
            "ignore" => came.is_none(),
            other => return Err(unknown(format_args!("the outcome {other:?}"))),
        };
    }
    if fits {
        Ok(())
    } else {
        Err(format!("expected {accepted:?}, got {came:?}"))
    }
}
