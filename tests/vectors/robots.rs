//! robots.txt: matching and parsing. What an answer to the request for it means is played by `robots_fetching`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use etiquette_robots::{Group, ProductToken, Robots, leading_token, path_to_match, robots_url};
use etiquette_tests::vectors::Kind::{Any, Flag, List, Number, Object, Text};
use etiquette_tests::vectors::{
    Kind, Report, RowResult, Vectors, any_text, caught, list, only_keys, optional, same, text,
    unknown,
};
use serde_json::{Value, json};

use crate::robots_fetching;

const MATCHING: &str = "robots/matching.json";
const PARSING: &str = "robots/parsing.json";

const MATCHING_ROW: &[(&str, Kind)] = &[
    ("id", Text),
    ("agents", List),
    ("allowed", Flag),
    ("robots", Text),
    ("robots_b64", Text),
    ("robots_parts", List),
    ("url", Text),
];

const PARSING_ROW: &[(&str, Kind)] = &[
    ("id", Text),
    ("agent", Text),
    ("expect", Object),
    ("kind", Text),
    ("path", Text),
    ("robots", Text),
    ("robots_b64", Text),
    ("robots_parts", List),
    ("robots_url", Text),
    ("url", Text),
];

#[test]
fn robots() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("robots");
    for row in vectors.rows(MATCHING, "") {
        let id = row["id"].as_str().unwrap_or_default();
        let debated = row["level"] == "debated";
        match caught(|| matching(&row)) {
            // Where the field disagrees, the crate's documentation says how it is decided.
            Err(Mismatch::Verdict(why)) if debated => {
                report.left_out(
                    MATCHING,
                    id,
                    format!("debated, and decided otherwise: {why}"),
                );
            }
            outcome => report.play(MATCHING, &row, |_| Ok(outcome?)),
        }
    }
    for row in vectors.rows(PARSING, "") {
        report.play(PARSING, &row, parsing);
    }
    robots_fetching::play(vectors, &mut report);
    report
}

/// Why a row of matching does not hold.
enum Mismatch {
    /// The row cannot be played.
    Row(String),
    /// The verdict is another.
    Verdict(String),
}

impl From<String> for Mismatch {
    fn from(why: String) -> Self {
        Self::Row(why)
    }
}

impl From<Mismatch> for String {
    fn from(mismatch: Mismatch) -> Self {
        match mismatch {
            Mismatch::Row(why) | Mismatch::Verdict(why) => why,
        }
    }
}

/// As [`same`], with what is compared.
fn same_at<E, C>(what: &str, expected: &E, came: &C) -> RowResult
where
    E: PartialEq<C> + std::fmt::Debug + ?Sized,
    C: std::fmt::Debug + ?Sized,
{
    same(expected, came).map_err(|why| format!("{what}: {why}"))
}

fn matching(row: &Value) -> Result<(), Mismatch> {
    only_keys(row, "the row", MATCHING_ROW)?;
    let robots = file(row)?;
    let tokens: Vec<ProductToken> = list(row, "agents")?
        .iter()
        .map(token)
        .collect::<Result<_, _>>()?;
    let url = text(row, "url")?;
    let path = path_to_match(url).ok_or_else(|| unknown(format_args!("no path in {url}")))?;
    let expected = flag(&row["allowed"])?;

    let all = Robots::parse(&robots);
    let verdict = all.group_of(&tokens).check(path.as_bytes());
    same_at(&verdict.to_string(), &expected, &verdict.allowed()).map_err(Mismatch::Verdict)?;
    // Keeping only the groups of these tokens must not change an answer.
    let own = Robots::builder().tokens(tokens.clone()).parse(&robots);
    same_at(
        "kept for its tokens only",
        &verdict,
        &own.group_of(&tokens).check(path.as_bytes()),
    )
    .map_err(Mismatch::Verdict)
}

fn token(value: &Value) -> Result<ProductToken, String> {
    let token = any_text(value)?;
    token.parse().map_err(|e| format!("{token}: {e}"))
}

fn flag(value: &Value) -> Result<bool, String> {
    value
        .as_bool()
        .ok_or_else(|| unknown(format_args!("{value} is neither true nor false")))
}

/// The file of a row, in whichever of its forms.
fn file(row: &Value) -> Result<Vec<u8>, String> {
    if let Some(robots) = row["robots"].as_str() {
        return Ok(robots.as_bytes().to_vec());
    }
    if let Some(coded) = row["robots_b64"].as_str() {
        return BASE64_STANDARD
            .decode(coded)
            .map_err(|_| unknown(format_args!("no base64: {coded}")));
    }
    let mut robots = String::new();
    for part in list(row, "robots_parts")? {
        let times = part[1].as_u64().ok_or_else(|| unknown(part))?;
        robots.push_str(&any_text(&part[0])?.repeat(times as usize));
    }
    Ok(robots.into_bytes())
}

fn parsing(row: &Value) -> RowResult {
    let kind = text(row, "kind")?;
    if kind == "parse" {
        return parse(row);
    }
    let keys = [
        ("id", Text),
        ("kind", Text),
        ("input", Any),
        ("expect", Any),
    ];
    only_keys(row, "the row", &keys)?;
    let (input, expect) = (&row["input"], &row["expect"]);
    match kind {
        "robots_url" => {
            let url = robots_url(any_text(input)?);
            same_at("robots URL", expect, &json!(url))
        }
        "path" => {
            let path = path_to_match(any_text(input)?);
            same_at("path", expect, &json!(path))
        }
        "valid_token" => {
            let valid = any_text(input)?.parse::<ProductToken>().is_ok();
            same_at("valid", &flag(expect)?, &valid)
        }
        "leading_token" => same_at("token", expect, &json!(leading_token(any_text(input)?))),
        "token_in_user_agent" => {
            only_keys(input, "input", &[("token", Text), ("user_agent", Text)])?;
            let found = token(&input["token"])?.appears_in(text(input, "user_agent")?);
            same_at("appears", &flag(expect)?, &found)
        }
        other => Err(unknown(format_args!("the kind {other}"))),
    }
}

fn parse(row: &Value) -> RowResult {
    only_keys(row, "the row", PARSING_ROW)?;
    let robots = Robots::parse(&file(row)?);
    let group = robots.group(&token(&row["agent"])?);
    let expect = row["expect"]
        .as_object()
        .ok_or_else(|| unknown(format_args!("expect is {}", row["expect"])))?;
    for (what, expected) in expect {
        match what.as_str() {
            "crawl_delay_s" => {
                let delay = group.crawl_delay().map(|delay| delay.as_secs_f64());
                if expected.is_object() {
                    only_keys(
                        expected,
                        "crawl_delay_s",
                        &[("at_most", Number), ("or", Any)],
                    )?;
                    let most = expected["at_most"].as_f64();
                    let most = most.ok_or_else(|| unknown(expected))?;
                    let fits = match delay {
                        Some(delay) => delay <= most,
                        // What may come in its place: no delay, and nothing else so far.
                        None if expected["or"].is_null() => true,
                        None => return Err(unknown(expected)),
                    };
                    same_at("crawl-delay within limits", &true, &fits)?;
                } else {
                    same_at("crawl-delay", &expected.as_f64(), &delay)?;
                }
            }
            "sitemaps" => {
                let urls: Vec<String> = robots.sitemap_urls(text(row, "robots_url")?).collect();
                same_at("sitemaps", expected, &json!(urls))?;
            }
            "rules" => {
                let rules: Vec<Value> = group
                    .rules()
                    .iter()
                    .map(|rule| json!([rule.kind().as_str().to_lowercase(), rule.text()]))
                    .collect();
                same_at("rules", expected, &json!(rules))?;
            }
            "group" => same_at("group", expected, &json!(group.name()))?,
            "other" => {
                let records: Vec<Value> = group
                    .records()
                    .map(|record| json!([record.name(), record.value()]))
                    .collect();
                same_at("other records", expected, &json!(records))?;
            }
            "allowed" => allowed(row, &group, expected)?,
            other => return Err(unknown(format_args!("the key {other:?} of expect"))),
        }
    }
    Ok(())
}

/// What may be fetched: a verdict on the row's `url` or `path` (the whole site where it names none), or verdicts by URL or
/// path, as an object or as pairs.
fn allowed(row: &Value, group: &Group<'_>, expected: &Value) -> RowResult {
    let check = |url: &str, expected: &Value| {
        let path = if url.starts_with('/') {
            url.into()
        } else {
            path_to_match(url).ok_or_else(|| unknown(format_args!("no path in {url}")))?
        };
        let verdict = group.check(path.as_bytes());
        same_at(
            &format!("{url}: {verdict}"),
            &flag(expected)?,
            &verdict.allowed(),
        )
    };
    match expected {
        Value::Bool(_) => {
            let url = optional(row, "url").or_else(|| optional(row, "path"));
            check(url.map_or(Ok("/"), any_text)?, expected)
        }
        Value::Object(verdicts) => verdicts
            .iter()
            .try_for_each(|(url, expected)| check(url, expected)),
        Value::Array(verdicts) => verdicts
            .iter()
            .try_for_each(|pair| check(any_text(&pair[0])?, &pair[1])),
        other => Err(unknown(format_args!("allowed is {other}"))),
    }
}
