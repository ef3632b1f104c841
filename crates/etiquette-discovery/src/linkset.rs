//! Link sets (RFC 9264) and the API catalogs that are made of them (RFC 9727).
//!
//! # Flow
//! [`parse`] takes the body and its media type and gives the links, targets and anchors made absolute.
//!
//! # Scope
//! `application/linkset+json` and the text form `application/linkset`, which is a `Link` field with line ends.
//!
//! # Bounds
//! [`MAX_BYTES`] and [`MAX_LINKS`]; nesting is bounded by the JSON parser.
//!
//! # Non-goals
//! Reading the APIs that are listed.

use std::fmt;

use http::Uri;
use serde_json::Value;

use crate::link_header;
use crate::reference::resolve;
use crate::source::essence;

/// The longest body that is read: 1 MiB.
pub const MAX_BYTES: usize = 1024 * 1024;

/// Links beyond this many are not kept.
pub const MAX_LINKS: usize = 10_000;

/// A link of a link set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkSetLink {
    /// What the link is about; in an API catalog, the API.
    pub anchor: Option<Uri>,
    /// The relation, in lower case: `item`, `service-desc`, `service-doc`, `service-meta`, `status` and others.
    pub rel: String,
    /// Where it leads.
    pub target: Uri,
    /// The media type of the target.
    pub media_type: Option<String>,
}

/// The body is no link set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotALinkSet;

impl fmt::Display for NotALinkSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body is not a link set")
    }
}

impl std::error::Error for NotALinkSet {}

/// Reads the link set at `uri`, its address after redirects, with the value of its `Content-Type`.
///
/// # Errors
/// [`NotALinkSet`] for another type, another form, or more than [`MAX_BYTES`].
pub fn parse(uri: &Uri, content_type: &str, body: &[u8]) -> Result<Vec<LinkSetLink>, NotALinkSet> {
    if body.len() > MAX_BYTES {
        return Err(NotALinkSet);
    }
    match essence(content_type).as_str() {
        "application/linkset" => Ok(parse_text(uri, body)),
        "application/linkset+json" | "application/json" => parse_json(uri, body),
        _ => Err(NotALinkSet),
    }
}

fn parse_text(uri: &Uri, body: &[u8]) -> Vec<LinkSetLink> {
    let mut links = Vec::new();
    for link in link_header::parse([body]) {
        let anchor = link
            .anchor
            .as_deref()
            .and_then(|anchor| resolve(uri, anchor).ok());
        let Ok(target) = resolve(uri, &link.target) else {
            continue;
        };
        for rel in link.rel.split_ascii_whitespace() {
            links.push(LinkSetLink {
                anchor: anchor.clone(),
                rel: rel.to_owned(),
                target: target.clone(),
                media_type: link.media_type.clone(),
            });
        }
    }
    links.truncate(MAX_LINKS);
    links
}

fn parse_json(uri: &Uri, body: &[u8]) -> Result<Vec<LinkSetLink>, NotALinkSet> {
    let document: Value = serde_json::from_slice(body).map_err(|_| NotALinkSet)?;
    let contexts = document["linkset"].as_array().ok_or(NotALinkSet)?;
    let links = contexts
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|context| {
            let anchor = context
                .get("anchor")
                .and_then(Value::as_str)
                .and_then(|anchor| resolve(uri, anchor).ok());
            context
                .iter()
                .filter(|(rel, _)| *rel != "anchor")
                .flat_map(move |(rel, targets)| {
                    let anchor = anchor.clone();
                    targets
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(move |target| {
                            Some(LinkSetLink {
                                anchor: anchor.clone(),
                                rel: rel.to_ascii_lowercase(),
                                target: resolve(uri, target["href"].as_str()?).ok()?,
                                media_type: target["type"].as_str().map(str::to_owned),
                            })
                        })
                })
        })
        .take(MAX_LINKS)
        .collect();
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str =
        "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";

    fn read(content_type: &str, body: &str) -> Result<Vec<LinkSetLink>, NotALinkSet> {
        let uri = "https://www.example.com/.well-known/api-catalog"
            .parse()
            .unwrap();
        parse(&uri, content_type, body.as_bytes())
    }

    #[test]
    fn both_forms_say_the_same() {
        let json = read(
            JSON,
            r#"{"linkset": [{"anchor": "https://www.example.com/api", "service-desc":
                [{"href": "/openapi.json", "type": "application/vnd.oai.openapi+json"}]}, 17, {"item": "no list"}]}"#,
        );
        let text = read(
            "application/linkset",
            "</openapi.json>; rel=\"service-desc\"\n ; type=\"application/vnd.oai.openapi+json\"\n ; anchor=\"/api\"\n",
        );
        assert_eq!(json, text);
        let links = json.unwrap();
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].target, "https://www.example.com/openapi.json");
        assert_eq!(
            links[0].anchor.as_ref().unwrap(),
            "https://www.example.com/api"
        );
    }

    #[test]
    fn what_is_no_link_set() {
        assert_eq!(read("text/html", "<html>"), Err(NotALinkSet));
        assert_eq!(read(JSON, "{}"), Err(NotALinkSet));
        assert_eq!(read(JSON, "{\"linkset\": 5}"), Err(NotALinkSet));
        assert_eq!(read(JSON, &"[".repeat(100_000)), Err(NotALinkSet));
        assert_eq!(read(JSON, &" ".repeat(MAX_BYTES + 1)), Err(NotALinkSet));
        assert_eq!(read(JSON, "{\"linkset\": []}"), Ok(Vec::new()));
    }
}
