//! The two sets of `discovery/` about Accept: what is asked for, and whether what came is that.

use etiquette_core::decide::accept::{self, Accept, InvalidAccept, Preset};
use etiquette_tests::vectors::{Report, rows};
use http::HeaderValue;
use serde_json::Value;

pub(crate) fn play(report: &mut Report) {
    build(report);
    acceptability(report);
}

fn preset(name: &str) -> Preset {
    match name {
        "feed" => Preset::Feed,
        "sitemap" => Preset::Sitemap,
        "page" => Preset::Page,
        "markdown" => Preset::Markdown,
        "api" => Preset::Api,
        "api_catalog" => Preset::ApiCatalog,
        "openapi" => Preset::OpenApi,
        "robots" => Preset::Robots,
        "llms_txt" => Preset::LlmsTxt,
        other => panic!("no preset {other}"),
    }
}

fn accept(input: &Value) -> Result<Accept, InvalidAccept> {
    let weight = |value: &Value| {
        let weight = value.as_f64().unwrap();
        // A weight that is no number of thousandths at all is as bad as one above 1000.
        if weight.fract() == 0.0 && (0.0..=65_535.0).contains(&weight) {
            weight as u16
        } else {
            u16::MAX
        }
    };
    let mut builder = Accept::builder();
    for name in input["presets"].as_array().into_iter().flatten() {
        builder = builder.preset(preset(name.as_str().unwrap()));
    }
    for pair in input["types"].as_array().into_iter().flatten() {
        builder = builder.media_type(pair[0].as_str().unwrap(), weight(&pair[1]));
    }
    if !input["any"].is_null() {
        builder = builder.or_any(weight(&input["any"]));
    }
    builder.build()
}

fn build(report: &mut Report) {
    let file = "discovery/accept_build.json";
    for row in rows(file, "cases") {
        let came = match accept(&row["input"]) {
            Ok(accept) => serde_json::json!({ "accept": accept.header().to_str().unwrap() }),
            Err(error) => serde_json::json!({ "error": error.kind() }),
        };
        let outcome = crate::user_agent::same(&row["expect"], &came);
        report.row(file, row["id"].as_str().unwrap(), outcome);
    }
}

fn acceptability(report: &mut Report) {
    let file = "discovery/acceptability.json";
    for row in rows(file, "cases") {
        let header = |value: &Value| HeaderValue::from_bytes(value.as_str()?.as_bytes()).ok();
        let accept = header(&row["accept"]).unwrap();
        let came = accept::judge(&accept, header(&row["content_type"]).as_ref()).kind();
        let outcome = crate::user_agent::same(&row["expect"].as_str().unwrap(), &came);
        report.row(file, row["id"].as_str().unwrap(), outcome);
    }
}
