//! What a site offers machines: kinds, where they were found, in which order to prefer them.

use std::collections::HashSet;
use std::fmt;

use etiquette_robots::Robots;
use http::{HeaderMap, Uri, header};

use crate::html::Page;
use crate::link_header;
use crate::reference::resolve;

/// Sitemap lines beyond this many are left out: Google's own bound for a site is 500.
const MAX_SITEMAPS: usize = 500;

/// What a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SourceKind {
    /// An OpenAPI description, or another machine-readable description of an API that does not say which (RFC 8631).
    OpenApi,
    /// A list of APIs (RFC 9727).
    ApiCatalog,
    /// A machine-readable description of an API in another format than JSON or YAML (RFC 8631, `service-desc`).
    ServiceDesc,
    /// Documentation of an API for people (RFC 8631, `service-doc`).
    ServiceDoc,
    /// An Atom feed.
    FeedAtom,
    /// An RSS feed.
    FeedRss,
    /// An RDF feed (RSS 1.0).
    FeedRdf,
    /// A JSON Feed.
    FeedJson,
    /// A feed that does not say of which kind.
    FeedUnknown,
    /// A sitemap, or an index of them.
    Sitemap,
    /// A site's own summary for language models.
    LlmsTxt,
    /// The page as Markdown.
    Markdown,
    /// JSON that does not say what it is.
    Json,
    /// A description of a search form.
    OpenSearch,
}

impl SourceKind {
    /// The name that `--json` output and test vectors use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenApi => "openapi",
            Self::ApiCatalog => "api_catalog",
            Self::ServiceDesc => "service_desc",
            Self::ServiceDoc => "service_doc",
            Self::FeedAtom => "feed_atom",
            Self::FeedRss => "feed_rss",
            Self::FeedRdf => "feed_rdf",
            Self::FeedJson => "feed_json",
            Self::FeedUnknown => "feed_unknown",
            Self::Sitemap => "sitemap",
            Self::LlmsTxt => "llms_txt",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::OpenSearch => "opensearch",
        }
    }

    /// Its place in the order of preference: an API tells exactly what was asked for, a feed what is new, a sitemap what
    /// there is, a text the same as the page without its markup.
    #[must_use]
    pub fn group(self) -> SourceGroup {
        match self {
            Self::OpenApi | Self::ApiCatalog | Self::ServiceDesc | Self::ServiceDoc => {
                SourceGroup::Api
            }
            Self::FeedAtom | Self::FeedRss | Self::FeedRdf | Self::FeedJson | Self::FeedUnknown => {
                SourceGroup::Feed
            }
            Self::Sitemap => SourceGroup::Sitemap,
            Self::LlmsTxt | Self::Markdown => SourceGroup::Text,
            Self::Json => SourceGroup::Unclassified,
            Self::OpenSearch => SourceGroup::Search,
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Kinds that serve the same end, most useful first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[expect(missing_docs, reason = "SourceKind::group says which kinds these are")]
pub enum SourceGroup {
    Api,
    Feed,
    Sitemap,
    Text,
    Unclassified,
    Search,
}

/// How a source was found, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Via {
    /// A `Link` field of the start page.
    LinkHeader,
    /// A `<link>` of the start page.
    HtmlLink,
    /// A Sitemap line of robots.txt.
    Robots,
    /// A probe of a well-known address.
    WellKnown,
}

impl Via {
    /// The name that `--json` output and test vectors use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LinkHeader => "link_header",
            Self::HtmlLink => "html_link",
            Self::Robots => "robots",
            Self::WellKnown => "well_known",
        }
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Something that a site offers machines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// What it is, as far as the link tells.
    pub kind: SourceKind,
    /// Where it is, without a fragment.
    pub uri: Uri,
    /// How it was found.
    pub via: Via,
    /// Whether it lies outside the origin whose robots.txt was read. Its own robots.txt decides whether it may be asked
    /// for; the layers of `tower-etiquette` see to that.
    pub cross_origin: bool,
    /// The title that the link gives it.
    pub title: Option<String>,
}

/// The sitemaps that a robots.txt names; `uri` is where it was read.
///
/// Relative values are resolved, although sitemaps.org wants them absolute: sites do write them. Other hosts are allowed
/// (sitemaps.org, "Sitemaps & Cross Submits") and flagged.
#[must_use]
pub fn from_robots(uri: &Uri, robots: &Robots) -> Vec<Source> {
    robots
        .sitemaps()
        .filter(|(value, _)| !value.trim().is_empty())
        .filter_map(|(value, _)| resolve(uri, &value).ok())
        .take(MAX_SITEMAPS)
        .map(|sitemap| Source {
            cross_origin: !same_origin(uri, &sitemap),
            kind: SourceKind::Sitemap,
            uri: sitemap,
            via: Via::Robots,
            title: None,
        })
        .collect()
}

/// What the `Link` fields of a response tell about the resource at `uri`, its address after redirects.
///
/// A link with an anchor is about another resource (RFC 8288, 3.2) and is left out, unless the anchor is the resource
/// itself.
#[must_use]
pub fn from_link_header(uri: &Uri, headers: &HeaderMap) -> Vec<Source> {
    let lines = headers
        .get_all(header::LINK)
        .iter()
        .map(|line| line.as_bytes());
    link_header::parse(lines)
        .into_iter()
        .filter(|link| {
            link.anchor
                .as_deref()
                .is_none_or(|anchor| resolve(uri, anchor).is_ok_and(|about| about == *uri))
        })
        .filter(|link| !link.target.is_empty())
        .filter_map(|link| {
            let target = resolve(uri, &link.target).ok()?;
            let kind = classify(&link.rel, link.media_type.as_deref(), &target)?;
            Some(Source {
                cross_origin: !same_origin(uri, &target),
                kind,
                uri: target,
                via: Via::LinkHeader,
                title: link.title,
            })
        })
        .collect()
}

/// What the `<link>` elements of a page tell; `uri` is its address after redirects.
#[must_use]
pub fn from_html(uri: &Uri, page: &Page) -> Vec<Source> {
    page.links()
        .iter()
        .filter_map(|link| {
            let kind = classify(&link.rel, link.media_type.as_deref(), &link.uri)?;
            Some(Source {
                cross_origin: !same_origin(uri, &link.uri),
                kind,
                uri: link.uri.clone(),
                via: Via::HtmlLink,
                title: link.title.clone(),
            })
        })
        .collect()
}

/// Sorts sources by preference and leaves one of each address: group, then how it was found, then as they stand.
#[must_use]
pub fn ranked(mut sources: Vec<Source>) -> Vec<Source> {
    sources.sort_by_key(|source| (source.kind.group(), source.via));
    let mut known = HashSet::new();
    sources.retain(|source| known.insert(source.uri.clone()));
    sources
}

/// Whether scheme, host and port agree.
pub(crate) fn same_origin(one: &Uri, other: &Uri) -> bool {
    let port = |uri: &Uri| {
        uri.port_u16().unwrap_or(match uri.scheme_str() {
            Some("http") => 80,
            _ => 443,
        })
    };
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    one.scheme() == other.scheme() && host(one) == host(other) && port(one) == port(other)
}

/// What a link leads to, by its relations, its type and, for llms.txt, its address.
fn classify(rel: &str, media_type: Option<&str>, target: &Uri) -> Option<SourceKind> {
    let has = |token: &str| rel.split_ascii_whitespace().any(|one| one == token);
    // `alternate stylesheet` is another look of the page, whatever else is said.
    if has("stylesheet") {
        return None;
    }
    let essence = media_type.map(essence).unwrap_or_default();
    let essence = essence.as_str();
    if has("api-catalog") {
        return Some(SourceKind::ApiCatalog);
    }
    if has("service-desc") {
        let other = !essence.is_empty() && !is_openapi(essence) && !is_json_or_yaml(essence);
        return Some(if other {
            SourceKind::ServiceDesc
        } else {
            SourceKind::OpenApi
        });
    }
    if has("service-doc") {
        return Some(SourceKind::ServiceDoc);
    }
    if has("sitemap") {
        return Some(SourceKind::Sitemap);
    }
    if has("search") && essence == "application/opensearchdescription+xml" {
        return Some(SourceKind::OpenSearch);
    }
    if has("llms-txt") || has("llms") {
        return Some(SourceKind::LlmsTxt);
    }
    let alternate = has("alternate");
    let feed = has("feed");
    if (alternate || has("help") || has("describedby"))
        && matches!(essence, "" | "text/plain" | "text/markdown")
        && target.path().ends_with("/llms.txt")
    {
        return Some(SourceKind::LlmsTxt);
    }
    if alternate || feed {
        let kind = match essence {
            "application/atom+xml" => Some(SourceKind::FeedAtom),
            "application/rss+xml" => Some(SourceKind::FeedRss),
            "application/rdf+xml" => Some(SourceKind::FeedRdf),
            "application/feed+json" => Some(SourceKind::FeedJson),
            _ => None,
        };
        if kind.is_some() {
            return kind;
        }
    }
    if feed {
        return match essence {
            "application/json" => Some(SourceKind::FeedJson),
            "" | "application/xml" | "text/xml" => Some(SourceKind::FeedUnknown),
            _ => None,
        };
    }
    if !alternate {
        return None;
    }
    match essence {
        "text/markdown" | "text/x-markdown" => Some(SourceKind::Markdown),
        // JSON Feed has a type of its own; before it had one, `application/json` was for anything.
        "application/json" => Some(SourceKind::Json),
        _ if is_openapi(essence) => Some(SourceKind::OpenApi),
        _ => None,
    }
}

fn is_openapi(essence: &str) -> bool {
    essence.starts_with("application/vnd.oai.openapi") || essence.starts_with("application/openapi")
}

fn is_json_or_yaml(essence: &str) -> bool {
    matches!(
        essence,
        "application/json"
            | "application/yaml"
            | "application/x-yaml"
            | "text/yaml"
            | "text/x-yaml"
    )
}

/// Type and subtype in lower case, without parameters.
pub(crate) fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(rel: &str, media_type: &str, target: &str) -> Option<SourceKind> {
        let target = format!("https://www.example.com{target}").parse().unwrap();
        classify(rel, (!media_type.is_empty()).then_some(media_type), &target)
    }

    #[test]
    fn kinds_by_relation_type_and_address() {
        for (rel, media_type, target, expected) in [
            ("api-catalog", "", "/a", Some(SourceKind::ApiCatalog)),
            (
                "service-desc",
                "application/openapi+json",
                "/a",
                Some(SourceKind::OpenApi),
            ),
            ("service-desc", "", "/a", Some(SourceKind::OpenApi)),
            (
                "service-desc",
                "application/wsdl+xml",
                "/a",
                Some(SourceKind::ServiceDesc),
            ),
            (
                "service-doc",
                "text/html",
                "/a",
                Some(SourceKind::ServiceDoc),
            ),
            (
                "alternate",
                "application/vnd.oai.openapi;version=3.1",
                "/a",
                Some(SourceKind::OpenApi),
            ),
            (
                "alternate",
                "application/feed+json",
                "/a",
                Some(SourceKind::FeedJson),
            ),
            ("feed", "application/json", "/a", Some(SourceKind::FeedJson)),
            ("feed", "text/xml", "/a", Some(SourceKind::FeedUnknown)),
            ("feed", "text/html", "/a", None),
            (
                "sitemap",
                "application/xml",
                "/a",
                Some(SourceKind::Sitemap),
            ),
            (
                "alternate",
                "text/markdown",
                "/llms.txt",
                Some(SourceKind::LlmsTxt),
            ),
            (
                "alternate",
                "text/markdown",
                "/a.md",
                Some(SourceKind::Markdown),
            ),
            ("help", "", "/docs/llms.txt", Some(SourceKind::LlmsTxt)),
            ("help", "", "/help", None),
            ("search", "text/html", "/a", None),
            ("alternate", "text/html", "/mobile", None),
            ("icon", "application/rss+xml", "/a", None),
            ("", "application/rss+xml", "/a", None),
        ] {
            assert_eq!(
                kind(rel, media_type, target),
                expected,
                "{rel} {media_type} {target}"
            );
        }
    }

    #[test]
    fn an_anchor_on_the_page_itself_changes_nothing() {
        let uri = "https://www.example.com/a".parse().unwrap();
        let mut headers = HeaderMap::new();
        let value = "</f>; rel=feed; anchor=\"/a#x\", </g>; rel=feed; anchor=\"/b\"";
        headers.insert(header::LINK, value.parse().unwrap());
        let sources = from_link_header(&uri, &headers);
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].uri, "https://www.example.com/f");
    }

    #[test]
    fn ports_and_schemes_make_origins() {
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        let one = uri("https://www.example.com/");
        assert!(same_origin(&one, &uri("https://WWW.example.com:443/x")));
        assert!(!same_origin(&one, &uri("http://www.example.com/")));
        assert!(!same_origin(&one, &uri("https://www.example.com:8443/")));
    }
}
