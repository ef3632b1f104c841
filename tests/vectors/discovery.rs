//! Machine formats: what a site offers, sitemaps, Accept.

use std::io::Write;

use etiquette_discovery::plan::{Plan, PlannedResponse, Want};
use etiquette_discovery::sitemap::{
    Item, Limits, SitemapError, SitemapKind, SitemapReader, Summary,
};
use etiquette_tests::vectors::{Report, rows};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use serde_json::{Value, json};

#[test]
fn discovery() {
    let mut report = Report::new("discovery");
    for (file, play) in [
        (
            "discovery/discover.json",
            discover as fn(&Value) -> Result<(), String>,
        ),
        ("discovery/sitemap_documents.json", sitemap_document),
        ("discovery/sitemap_gzip.json", sitemap_gzip),
    ] {
        for row in rows(file, "cases") {
            report.row(file, row["id"].as_str().unwrap_or("?"), play(&row));
        }
    }
    crate::accept::play(&mut report);
    report.finish();
}

fn same(expected: &Value, got: &Value) -> Result<(), String> {
    if expected == got {
        Ok(())
    } else {
        Err(format!("expected {expected}, got {got}"))
    }
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
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

fn sitemap_document(row: &Value) -> Result<(), String> {
    let uri = text(row, "sitemap_url")
        .parse()
        .map_err(|e| format!("{e}"))?;
    let mut reader = SitemapReader::new(&uri);
    if let Some(origin) = row["named_by"].as_str() {
        reader = reader.named_by(&origin.parse().map_err(|e| format!("{e}"))?);
    }
    let (own, foreign, summary) = read(reader, text(row, "body").as_bytes());
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

fn sitemap_gzip(row: &Value) -> Result<(), String> {
    const LIMIT: usize = 64 * 1024;
    let expected = text(row, "expect");
    let mut body = b"<urlset><url><loc>https://site.example/a</loc></url></urlset>".to_vec();
    if expected == "error_too_large" {
        // A row that says so has a body beyond the limit; which limit is the reader's to choose.
        body.splice(0..0, std::iter::repeat_n(b' ', LIMIT));
    }
    let layers = row["gzip_layers_on_the_wire"].as_u64().unwrap_or(0);
    // The client removes the layer that Content-Encoding names.
    let left = layers.saturating_sub(u64::from(row["content_encoding"] == "gzip"));
    for _ in 0..left {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&body).map_err(|e| e.to_string())?;
        body = encoder.finish().map_err(|e| e.to_string())?;
    }
    let uri = text(row, "url").parse().map_err(|e| format!("{e}"))?;
    let reader = SitemapReader::new(&uri).limits(Limits::default().bytes(LIMIT as u64));
    let (own, _, summary) = read(reader, &body);
    let got = match summary {
        Err(SitemapError::TooLarge { .. }) => "error_too_large",
        Ok(summary) if own == ["https://site.example/a"] && summary.gunzipped => "gunzip_once",
        Ok(_) if own == ["https://site.example/a"] => "parse",
        _ => "nothing read",
    };
    same(&row["expect"], &json!(got))
}

/// A site of the responses that the row lists; every other URL answers 404.
fn discover(row: &Value) -> Result<(), String> {
    let site = &row["site"];
    let start: Uri = text(site, "start").parse().map_err(|e| format!("{e}"))?;
    let token = "ExampleBot".parse().map_err(|e| format!("{e}"))?;
    let probes = row["max_probes"].as_u64().unwrap_or(0);
    let mut plan = Plan::new(&start)
        .map_err(|e| e.to_string())?
        .token(token)
        .max_probes(u8::try_from(probes).unwrap_or(u8::MAX));
    for want in row["want"].as_array().into_iter().flatten() {
        plan = plan.want(match want.as_str() {
            Some("api") => Want::Api,
            Some("llms") => Want::Llms,
            Some("sitemap") => Want::Sitemap,
            other => return Err(format!("unknown want {other:?}")),
        });
    }
    while let Some(request) = plan.next_request() {
        let response = &site["responses"][request.uri.to_string()];
        let uri = match response["final_url"].as_str() {
            Some(uri) => uri.parse().map_err(|e| format!("{e}"))?,
            None => request.uri.clone(),
        };
        let status = response["status"].as_u64().unwrap_or(404);
        plan.response(PlannedResponse {
            uri: &uri,
            status: u16::try_from(status)
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok())
                .ok_or("no status")?,
            headers: &headers(&response["headers"])?,
            body: text(response, "body").as_bytes(),
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

/// A field's value is one line, or a list of lines.
fn headers(fields: &Value) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields.as_object().into_iter().flatten() {
        let name: HeaderName = name.parse().map_err(|e| format!("{e}"))?;
        let lines = match value {
            Value::Array(lines) => lines.as_slice(),
            line => std::slice::from_ref(line),
        };
        for line in lines {
            let line = line.as_str().unwrap_or_default();
            let value = HeaderValue::from_bytes(line.as_bytes()).map_err(|e| format!("{e}"))?;
            headers.append(name.clone(), value);
        }
    }
    Ok(headers)
}
