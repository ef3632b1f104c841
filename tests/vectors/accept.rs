//! The two sets of `discovery/` about Accept: what is asked for, and whether what came is that.

use etiquette_core::decide::accept::{self, Accept, InvalidAccept, Preset};
use etiquette_tests::vectors::Kind::{Any, List, Object, Text};
use etiquette_tests::vectors::{
    Report, RowResult, Vectors, any_text, only_keys, optional, same, text, unknown,
};
use http::HeaderValue;
use serde_json::{Value, json};

pub(crate) fn play(vectors: &Vectors, report: &mut Report) {
    let file = "discovery/accept_build.json";
    for row in vectors.rows(file, "cases") {
        report.play(file, &row, build);
    }
    let file = "discovery/acceptability.json";
    for row in vectors.rows(file, "cases") {
        report.play(file, &row, acceptability);
    }
}

fn preset(name: &str) -> Result<Preset, String> {
    Ok(match name {
        "feed" => Preset::Feed,
        "sitemap" => Preset::Sitemap,
        "page" => Preset::Page,
        "markdown" => Preset::Markdown,
        "api" => Preset::Api,
        "api_catalog" => Preset::ApiCatalog,
        "openapi" => Preset::OpenApi,
        "robots" => Preset::Robots,
        "llms_txt" => Preset::LlmsTxt,
        other => return Err(unknown(format_args!("the preset {other:?}"))),
    })
}

fn accept(input: &Value) -> Result<Result<Accept, InvalidAccept>, String> {
    only_keys(
        input,
        "input",
        &[("presets", List), ("types", List), ("any", Any)],
    )?;
    let weight = |value: &Value| {
        let weight = value
            .as_f64()
            .ok_or_else(|| unknown(format_args!("the weight {value}")))?;
        // A weight that is no number of thousandths at all is as bad as one above 1000.
        Ok::<_, String>(
            if weight.fract() == 0.0 && (0.0..=65_535.0).contains(&weight) {
                weight as u16
            } else {
                u16::MAX
            },
        )
    };
    let mut builder = Accept::builder();
    for name in input["presets"].as_array().into_iter().flatten() {
        builder = builder.preset(preset(any_text(name)?)?);
    }
    for pair in input["types"].as_array().into_iter().flatten() {
        builder = builder.media_type(any_text(&pair[0])?, weight(&pair[1])?);
    }
    if let Some(any) = optional(input, "any") {
        builder = builder.or_any(weight(any)?);
    }
    Ok(builder.build())
}

fn build(row: &Value) -> RowResult {
    only_keys(
        row,
        "the row",
        &[("id", Text), ("input", Object), ("expect", Object)],
    )?;
    only_keys(
        &row["expect"],
        "expect",
        &[("accept", Text), ("error", Text)],
    )?;
    let came = match accept(&row["input"])? {
        Ok(accept) => json!({ "accept": String::from_utf8_lossy(accept.header().as_bytes()) }),
        Err(error) => json!({ "error": error.kind() }),
    };
    same(&row["expect"], &came)
}

fn acceptability(row: &Value) -> RowResult {
    let keys = [
        ("id", Text),
        ("accept", Text),
        ("content_type", Text),
        ("expect", Text),
    ];
    only_keys(row, "the row", &keys)?;
    let header = |key: &str| {
        HeaderValue::from_bytes(text(row, key)?.as_bytes())
            .map_err(|_| unknown(format_args!("the header {key}: {}", row[key])))
    };
    let content_type = match optional(row, "content_type") {
        Some(_) => Some(header("content_type")?),
        None => None,
    };
    let came = accept::judge(&header("accept")?, content_type.as_ref()).kind();
    match text(row, "expect")? {
        expected @ ("ok" | "refuse" | "sniff") => same(expected, came),
        other => Err(unknown(other)),
    }
}
