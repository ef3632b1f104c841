//! What is worth a probe: where it is looked for, and what tells it from an error page.

use http::Uri;

use super::response::PlannedResponse;
use crate::sitemap::{SitemapError, SitemapReader};
use crate::source::{Source, SourceGroup, SourceKind};

/// What is worth a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Want {
    /// A list of APIs at `/.well-known/api-catalog` (RFC 9727).
    Api,
    /// `/llms.txt`.
    Llms,
    /// `/sitemap.xml`.
    Sitemap,
}

impl Want {
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Api => "/.well-known/api-catalog",
            Self::Llms => "/llms.txt",
            Self::Sitemap => "/sitemap.xml",
        }
    }

    pub(super) fn accept(self) -> &'static str {
        match self {
            Self::Api => "application/linkset+json, application/linkset;q=0.9",
            Self::Llms => "text/markdown, text/plain;q=0.9",
            Self::Sitemap => {
                "application/xml, text/xml, application/gzip;q=0.9, application/x-gzip;q=0.9, text/plain;q=0.5"
            }
        }
    }

    pub(super) fn kind(self) -> SourceKind {
        match self {
            Self::Api => SourceKind::ApiCatalog,
            Self::Llms => SourceKind::LlmsTxt,
            Self::Sitemap => SourceKind::Sitemap,
        }
    }

    pub(super) fn is_met_by(self, source: &Source) -> bool {
        match self {
            Self::Api => matches!(
                source.kind,
                SourceKind::OpenApi | SourceKind::ApiCatalog | SourceKind::ServiceDesc
            ),
            Self::Llms => source.kind == SourceKind::LlmsTxt,
            Self::Sitemap => source.kind.group() == SourceGroup::Sitemap,
        }
    }

    /// Whether the answer is what was looked for and no error page with status 200.
    pub(super) fn fits(self, uri: &Uri, response: &PlannedResponse<'_>) -> bool {
        let media_type = response.media_type();
        let body = response.body.trim_ascii_start();
        match self {
            Self::Api => match media_type.as_str() {
                "application/linkset+json" | "application/linkset" => true,
                "application/json" => body.starts_with(b"{") && contains(body, b"\"linkset\""),
                _ => false,
            },
            Self::Llms => {
                matches!(
                    media_type.as_str(),
                    "text/markdown" | "text/plain" | "text/x-markdown"
                ) && !body.starts_with(b"<")
            }
            Self::Sitemap => {
                let labelled = matches!(
                    media_type.as_str(),
                    "application/xml"
                        | "text/xml"
                        | "application/gzip"
                        | "application/x-gzip"
                        | "text/plain"
                ) || media_type.ends_with("+xml")
                    && media_type != "application/xhtml+xml";
                let mut reader = SitemapReader::new(uri);
                let read = reader.feed(response.body, |_| {}).and_then(|()| {
                    // What was read is only the beginning, which may be cut anywhere.
                    reader.finish(|_| {}).map(|_| ())
                });
                labelled && read != Err(SitemapError::NotASitemap)
            }
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
