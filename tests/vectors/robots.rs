//! robots.txt: matching and parsing. What an answer to the request for it means is played by `robots_fetching`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as STANDARD;
use std::fmt::Debug;

use etiquette_robots::{ProductToken, Robots, leading_token, path_to_match, robots_url};
use etiquette_tests::vectors::{Report, rows};
use serde_json::{Value, json};

use crate::robots_fetching;

const MATCHING: &str = "robots/matching.json";
const PARSING: &str = "robots/parsing.json";

#[test]
fn robots() {
    let mut report = Report::new("robots");
    for row in rows(MATCHING, "") {
        let id = text(&row["id"]);
        match matching(&row) {
            // Where the field disagrees, the crate's documentation says how it is decided.
            Err(why) if row["level"] == "debated" => {
                report.left_out(
                    MATCHING,
                    id,
                    format!("debated, and decided otherwise: {why}"),
                );
            }
            outcome => report.row(MATCHING, id, outcome),
        }
    }
    for row in rows(PARSING, "") {
        let id = text(&row["id"]);
        report.row(PARSING, id, parsing(&row));
    }
    robots_fetching::play(&mut report);
    report.finish();
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[expect(clippy::needless_pass_by_value, reason = "it reads like an assertion")]
fn same<T: PartialEq + Debug>(what: &str, expected: T, came: T) -> Result<(), String> {
    if expected == came {
        Ok(())
    } else {
        Err(format!("{what}: expected {expected:?}, came {came:?}"))
    }
}

fn matching(row: &Value) -> Result<(), String> {
    let robots = file(row)?;
    let tokens: Vec<ProductToken> = row["agents"]
        .as_array()
        .ok_or("no agents")?
        .iter()
        .map(|agent| text(agent).parse().map_err(|e| format!("{agent}: {e}")))
        .collect::<Result<_, _>>()?;
    let url = text(&row["url"]);
    let path = path_to_match(url).ok_or_else(|| format!("no path in {url}"))?;
    let expected = row["allowed"].as_bool().ok_or("no verdict")?;

    let all = Robots::parse(&robots);
    let verdict = all.group_of(&tokens).check(path.as_bytes());
    same(&verdict.to_string(), expected, verdict.allowed())?;
    // Keeping only the groups of these tokens must not change an answer.
    let own = Robots::builder().tokens(tokens.clone()).parse(&robots);
    same(
        "kept for its tokens only",
        &verdict,
        &own.group_of(&tokens).check(path.as_bytes()),
    )
}

/// The file of a row, in whichever of its forms.
fn file(row: &Value) -> Result<Vec<u8>, String> {
    if let Some(robots) = row["robots"].as_str() {
        return Ok(robots.as_bytes().to_vec());
    }
    if let Some(coded) = row["robots_b64"].as_str() {
        return STANDARD
            .decode(coded)
            .map_err(|error| format!("{coded}: {error}"));
    }
    let parts = row["robots_parts"].as_array().ok_or("no file")?;
    let mut robots = String::new();
    for part in parts {
        let times = part[1].as_u64().ok_or("no count")?;
        robots.push_str(&text(&part[0]).repeat(times as usize));
    }
    Ok(robots.into_bytes())
}

fn parsing(row: &Value) -> Result<(), String> {
    let (input, expect) = (&row["input"], &row["expect"]);
    match text(&row["kind"]) {
        "parse" => parse(row),
        "robots_url" => same(
            "robots URL",
            expect.as_str(),
            robots_url(text(input)).as_deref(),
        ),
        "path" => same(
            "path",
            expect.as_str(),
            path_to_match(text(input)).as_deref(),
        ),
        "valid_token" => same(
            "valid",
            expect.as_bool(),
            Some(text(input).parse::<ProductToken>().is_ok()),
        ),
        "leading_token" => same("token", expect.as_str(), Some(leading_token(text(input)))),
        "token_in_user_agent" => {
            let token: ProductToken = text(&input["token"]).parse().map_err(|e| format!("{e}"))?;
            let found = token.appears_in(text(&input["user_agent"]));
            same("appears", expect.as_bool(), Some(found))
        }
        other => Err(format!("unknown kind {other}")),
    }
}

fn parse(row: &Value) -> Result<(), String> {
    let robots = Robots::parse(&file(row)?);
    let token: ProductToken = text(&row["agent"]).parse().map_err(|e| format!("{e}"))?;
    let group = robots.group(&token);
    for (what, expected) in row["expect"].as_object().ok_or("nothing expected")? {
        match what.as_str() {
            "crawl_delay_s" => {
                let delay = group.crawl_delay().map(|delay| delay.as_secs_f64());
                match expected.get("at_most") {
                    Some(most) => {
                        let fits = delay.is_none_or(|delay| Some(delay) <= most.as_f64());
                        same("crawl-delay within limits", true, fits)?;
                    }
                    None => same("crawl-delay", expected.as_f64(), delay)?,
                }
            }
            "sitemaps" => {
                let urls: Vec<String> = robots.sitemap_urls(text(&row["robots_url"])).collect();
                same("sitemaps", expected, &json!(urls))?;
            }
            "rules" => {
                let rules: Vec<Value> = group
                    .rules()
                    .iter()
                    .map(|rule| json!([rule.kind().as_str().to_lowercase(), rule.text()]))
                    .collect();
                same("rules", expected, &json!(rules))?;
            }
            "group" => same("group", expected.as_str(), group.name())?,
            "other" => {
                let records: Vec<Value> = group
                    .records()
                    .map(|record| json!([record.name(), record.value()]))
                    .collect();
                same("other records", expected, &json!(records))?;
            }
            other => return Err(format!("unknown expectation {other}")),
        }
    }
    Ok(())
}
