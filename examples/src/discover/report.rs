//! What is said about a site, for people and for programs.

use std::io::{self, Write};

use etiquette_discovery::SourceGroup;
use etiquette_discovery::plan::Findings;
use http::Uri;
use serde_json::{Value, json};

/// Writes one paragraph, or one line of JSON, for each site.
pub(super) struct Report<'a> {
    out: &'a mut (dyn Write + Send),
    json: bool,
}

impl<'a> Report<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send), json: bool) -> Self {
        Self { out, json }
    }

    /// What the site at `url` offers, and how many requests it cost to find it.
    pub(super) fn found(&mut self, url: &Uri, found: &Findings, requests: u64) -> io::Result<()> {
        if self.json {
            return writeln!(self.out, "{}", as_json(url, found, requests));
        }
        self.text(url, found, requests)
    }

    /// Why the site at `url` could not be asked.
    pub(super) fn failed(&mut self, url: &Uri, why: &str, requests: u64) -> io::Result<()> {
        if self.json {
            let line = json!({ "url": url.to_string(), "error": why, "requests": requests });
            return writeln!(self.out, "{line}");
        }
        writeln!(self.out, "{url}: {why} ({})", in_words(requests))
    }

    fn text(&mut self, url: &Uri, found: &Findings, requests: u64) -> io::Result<()> {
        let out = &mut *self.out;
        let status = found
            .start_status
            .map_or("not asked for".to_owned(), |status| status.to_string());
        writeln!(out, "{url}: {status}, {}", in_words(requests))?;
        if found.sources.is_empty() {
            writeln!(out, "  nothing for machines is announced")?;
        }
        for source in &found.sources {
            let title = source
                .title
                .as_deref()
                .map(|title| format!("  \"{title}\""))
                .unwrap_or_default();
            let elsewhere = if source.cross_origin {
                "  (another site)"
            } else {
                ""
            };
            writeln!(
                out,
                "  {:<12} {:<11} {}{title}{elsewhere}",
                source.kind.name(),
                source.via.name(),
                source.uri
            )?;
        }
        let best = found.sources.first().map(|source| source.kind.group());
        let advice = match best {
            Some(SourceGroup::Api) => "ask the API for what you need; leave the pages alone",
            Some(SourceGroup::Feed) => "poll the feed for what is new",
            Some(SourceGroup::Sitemap) => "let lastmod in the sitemap decide which pages to visit",
            Some(SourceGroup::Text) => "read the text in place of the pages",
            _ => return Ok(()),
        };
        writeln!(out, "  first: {advice}")
    }
}

fn as_json(url: &Uri, found: &Findings, requests: u64) -> Value {
    let sources: Vec<Value> = found
        .sources
        .iter()
        .map(|source| {
            json!({
                "kind": source.kind.name(),
                "url": source.uri.to_string(),
                "via": source.via.name(),
                "cross_origin": source.cross_origin,
                "title": source.title,
            })
        })
        .collect();
    json!({
        "url": url.to_string(),
        "status": found.start_status.map(|status| status.as_u16()),
        "requests": requests,
        "sources": sources,
    })
}

fn in_words(requests: u64) -> String {
    match requests {
        1 => "1 request".to_owned(),
        _ => format!("{requests} requests"),
    }
}
