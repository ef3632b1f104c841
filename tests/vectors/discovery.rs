//! Machine formats: what a site offers, sitemaps, Accept.

use std::io::Write;

use etiquette_discovery::plan::{Plan, PlannedResponse, Want};
use etiquette_discovery::sitemap::{
    Item, Limits, SitemapError, SitemapKind, SitemapReader, Summary,
};
use etiquette_tests::vectors::Kind::{Flag, List, Number, Object, Text};
use etiquette_tests::vectors::{
    Report, RowResult, Vectors, headers, only_keys, optional, same, text, unknown, whole,
};
use http::{StatusCode, Uri};
use serde_json::{Value, json};

#[test]
fn discovery() {
    play(&Vectors::from_env()).finish();
}

pub(crate) fn play(vectors: &Vectors) -> Report {
    let mut report = Report::new("discovery");
    for (file, play) in [
        (
            "discovery/discover.json",
            discover as fn(&Value) -> RowResult,
        ),
        ("discovery/sitemap_documents.json", sitemap_document),
        ("discovery/sitemap_gzip.json", sitemap_gzip),
    ] {
        for row in vectors.rows(file, "cases") {
            report.play(file, &row, play);
        }
    }
    crate::accept::play(vectors, &mut report);
    report
}

/// Feeds a body in pieces of three bytes; what came, and the summary.
fn read(
    reader: SitemapReader,
    body: &[u8],
) -> (Vec<String>, Vec<String>, Result<Summary, SitemapError>) {
    let mut reader = reader;
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    let mut on = |item: Item<'_>| match item {
        Item::Page(entry) | Item::Sitemap(entry) => own.push(entry.location.to_owned()),
        Item::Foreign(location) => foreign.push(location.to_owned()),
        _ => {}
    };
    for piece in body.chunks(3) {
        if let Err(error) = reader.feed(piece, &mut on) {
            return (own, foreign, Err(error));
        }
    }
    let summary = reader.finish(&mut on);
    (own, foreign, summary)
}

fn uri(value: &Value, key: &str) -> Result<Uri, String> {
    let url = text(value, key)?;
    url.parse()
        .map_err(|_| unknown(format_args!("the URL {url:?}")))
}

fn sitemap_document(row: &Value) -> RowResult {
    let keys = [
        ("id", Text),
        ("body", Text),
        // The reader decides by what it reads.
        ("content_type", Text),
        ("expect", Object),
        ("named_by", Text),
        ("sitemap_url", Text),
    ];
    only_keys(row, "the row", &keys)?;
    let keys = [
        ("type", Text),
        ("locs", List),
        ("dropped", List),
        ("truncated", Flag),
    ];
    only_keys(&row["expect"], "expect", &keys)?;
    let uri = uri(row, "sitemap_url")?;
    let mut reader = SitemapReader::new(&uri);
    if optional(row, "named_by").is_some() {
        reader = reader.named_by(&self::uri(row, "named_by")?);
    }
    let (own, foreign, summary) = read(reader, text(row, "body")?.as_bytes());
    let got = match summary {
        Err(_) => json!({ "type": "not_a_sitemap" }),
        Ok(summary) => {
            // The set calls every list of pages a urlset.
            let kind = if summary.kind == SitemapKind::Index {
                "index"
            } else {
                "urlset"
            };
            let mut got = json!({ "type": kind, "locs": own });
            if !foreign.is_empty() {
                got["dropped"] = json!(foreign);
            }
            if summary.truncated {
                got["truncated"] = json!(true);
            }
            got
        }
    };
    same(&row["expect"], &got)
}

fn sitemap_gzip(row: &Value) -> RowResult {
    const LIMIT: usize = 64 * 1024;
    let keys = [
        ("id", Text),
        ("content_encoding", Text),
        ("content_type", Text),
        ("expect", Text),
        ("gzip_layers_on_the_wire", Number),
        ("url", Text),
    ];
    only_keys(row, "the row", &keys)?;
    let expected = text(row, "expect")?;
    if !["error_too_large", "gunzip_once", "parse"].contains(&expected) {
        return Err(unknown(expected));
    }
    let mut body = b"<urlset><url><loc>https://site.example/a</loc></url></urlset>".to_vec();
    if expected == "error_too_large" {
        // A row that says so has a body beyond the limit; which limit is the reader's to choose.
        body.splice(0..0, std::iter::repeat_n(b' ', LIMIT));
    }
    let layers: u64 = match optional(row, "gzip_layers_on_the_wire") {
        Some(_) => whole(row, "gzip_layers_on_the_wire")?,
        None => 0,
    };
    // The client removes the layer that Content-Encoding names.
    let left = layers.saturating_sub(u64::from(row["content_encoding"] == "gzip"));
    for _ in 0..left {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&body).map_err(|e| e.to_string())?;
        body = encoder.finish().map_err(|e| e.to_string())?;
    }
    let uri = uri(row, "url")?;
    let reader = SitemapReader::new(&uri).limits(Limits::default().bytes(LIMIT as u64));
    let (own, _, summary) = read(reader, &body);
    let got = match summary {
        Err(SitemapError::TooLarge { .. }) => "error_too_large",
        Ok(summary) if own == ["https://site.example/a"] && summary.gunzipped => "gunzip_once",
        Ok(_) if own == ["https://site.example/a"] => "parse",
        _ => "nothing read",
    };
    same(expected, got)
}

/// A site of the responses that the row lists; every other URL answers 404.
fn discover(row: &Value) -> RowResult {
    let keys = [
        ("id", Text),
        ("expect", Object),
        ("max_probes", Number),
        ("site", Object),
        ("want", List),
    ];
    only_keys(row, "the row", &keys)?;
    only_keys(
        &row["expect"],
        "expect",
        &[("requests", List), ("sources", List)],
    )?;
    let site = &row["site"];
    let keys = [
        // For the reader: what the robots.txt forbids.
        ("disallow", List),
        ("origin", Text),
        ("responses", Object),
        ("start", Text),
    ];
    only_keys(site, "site", &keys)?;
    for (url, response) in site["responses"].as_object().into_iter().flatten() {
        let keys = [
            ("body", Text),
            ("final_url", Text),
            ("headers", Object),
            ("status", Number),
        ];
        only_keys(response, url, &keys)?;
    }
    let start = uri(site, "start")?;
    let token = "ExampleBot".parse().map_err(|e| format!("{e}"))?;
    let probes: u64 = match optional(row, "max_probes") {
        Some(_) => whole(row, "max_probes")?,
        None => 0,
    };
    let mut plan = Plan::new(&start)
        .map_err(|e| e.to_string())?
        .token(token)
        .max_probes(u8::try_from(probes).unwrap_or(u8::MAX));
    for want in row["want"].as_array().into_iter().flatten() {
        plan = plan.want(match want.as_str() {
            Some("api") => Want::Api,
            Some("llms") => Want::Llms,
            Some("sitemap") => Want::Sitemap,
            _ => return Err(unknown(format_args!("to want {want}"))),
        });
    }
    while let Some(request) = plan.next_request() {
        let response = &site["responses"][request.uri.to_string()];
        let uri = match optional(response, "final_url") {
            Some(_) => uri(response, "final_url")?,
            None => request.uri.clone(),
        };
        let status: u16 = match optional(response, "status") {
            Some(_) => whole(response, "status")?,
            None => 404,
        };
        plan.response(PlannedResponse {
            uri: &uri,
            status: StatusCode::from_u16(status)
                .map_err(|_| unknown(format_args!("the status {status}")))?,
            headers: &headers(&response["headers"])?,
            body: response["body"].as_str().unwrap_or_default().as_bytes(),
        });
    }
    let findings = plan.finish();
    let sources: Vec<Value> = findings
        .sources
        .iter()
        .map(|source| {
            let mut one = json!({
                "kind": source.kind.name(),
                "url": source.uri.to_string(),
                "via": source.via.name(),
            });
            if source.cross_origin {
                one["cross_origin"] = json!(true);
            }
            one
        })
        .collect();
    let requests: Vec<String> = findings.requests.iter().map(ToString::to_string).collect();
    same(
        &row["expect"],
        &json!({ "sources": sources, "requests": requests }),
    )
}
