//! Retry-After: the reading of one answer, and timelines played against the real layers.

use std::time::{Duration, SystemTime};

use etiquette_core::RetryAfter;
use etiquette_tests::vectors::{Report, rows};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

#[test]
fn retry_after() {
    let mut report = Report::new("retry_after");
    for row in rows("retry_after/parse.json", "cases") {
        let id = row["id"].as_str().unwrap();
        report.row("parse.json", id, parse(&row));
    }
    report.finish();
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
