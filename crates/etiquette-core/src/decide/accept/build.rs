use std::error::Error;
use std::fmt;

use http::HeaderValue;

use super::media_type::MediaType;

/// What a client asks for: media ranges by preference. Made by [`Accept::builder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept(HeaderValue);

/// Types that belong together, with their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// Atom, RSS, JSON Feed, RDF, and the generic names that servers give them.
    Feed,
    /// Sitemaps: XML, gzip, and plain text.
    Sitemap,
    /// HTML pages.
    Page,
    /// Markdown, or else HTML.
    Markdown,
    /// JSON and its problem documents (RFC 9457).
    Api,
    /// An API catalog (RFC 9727).
    ApiCatalog,
    /// An OpenAPI description.
    OpenApi,
    /// robots.txt.
    Robots,
    /// llms.txt.
    LlmsTxt,
}

impl Preset {
    /// The types with their weights in thousandths.
    fn types(self) -> &'static [(&'static str, u16)] {
        match self {
            Self::Feed => &[
                ("application/atom+xml", 1000),
                ("application/rss+xml", 1000),
                ("application/feed+json", 900),
                ("application/rdf+xml", 800),
                ("application/xml", 700),
                ("text/xml", 700),
            ],
            Self::Sitemap => &[
                ("application/xml", 1000),
                ("text/xml", 1000),
                ("application/gzip", 900),
                ("application/x-gzip", 900),
                ("text/plain", 500),
            ],
            Self::Page => &[("text/html", 1000), ("application/xhtml+xml", 900)],
            // Servers that negotiate want markdown strictly above HTML.
            Self::Markdown => &[("text/markdown", 1000), ("text/html", 800)],
            Self::Api => &[
                ("application/json", 1000),
                ("application/problem+json", 900),
            ],
            Self::ApiCatalog => &[
                ("application/linkset+json", 1000),
                ("application/linkset", 900),
            ],
            Self::OpenApi => &[
                ("application/vnd.oai.openapi+json", 1000),
                ("application/vnd.oai.openapi", 900),
                ("application/json", 800),
                ("application/yaml", 800),
            ],
            Self::Robots => &[("text/plain", 1000)],
            Self::LlmsTxt => &[("text/markdown", 1000), ("text/plain", 900)],
        }
    }
}

/// Collects media ranges for an [`Accept`].
#[derive(Clone, Debug, Default)]
#[must_use = "an Accept is made by `build`"]
pub struct AcceptBuilder {
    ranges: Vec<(String, u16)>,
}

/// Why no [`Accept`] was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidAccept {
    /// Nothing is asked for.
    Empty,
    /// Not a media range; `q` is a weight and no parameter.
    BadMediaType(String),
    /// A weight above 1000.
    BadWeight(u16),
}

impl InvalidAccept {
    /// A short stable name of the error.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::BadMediaType(_) => "bad_media_type",
            Self::BadWeight(_) => "bad_weight",
        }
    }
}

impl fmt::Display for InvalidAccept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no media type is asked for"),
            Self::BadMediaType(text) => write!(f, "{text:?} is no media range"),
            Self::BadWeight(weight) => write!(f, "the weight {weight} is above 1000 thousandths"),
        }
    }
}

impl Error for InvalidAccept {}

impl Accept {
    /// Starts with nothing.
    pub fn builder() -> AcceptBuilder {
        AcceptBuilder::default()
    }

    /// The types of one preset.
    #[must_use]
    pub fn preset(preset: Preset) -> Self {
        Self::builder()
            .preset(preset)
            .build()
            .expect("presets have valid types and weights")
    }

    /// Anything: `*/*`.
    #[must_use]
    pub fn any() -> Self {
        Self(HeaderValue::from_static("*/*"))
    }

    /// The value of the Accept field.
    #[must_use]
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl AcceptBuilder {
    /// Asks for the types of a preset.
    pub fn preset(mut self, preset: Preset) -> Self {
        let types = preset.types().iter();
        self.ranges
            .extend(types.map(|(range, weight)| ((*range).to_owned(), *weight)));
        self
    }

    /// Asks for a type (`text/html`), a range (`text/*`) or a type with parameters, at a weight in thousandths from 0
    /// (not acceptable) to 1000.
    pub fn media_type(mut self, range: impl Into<String>, weight: u16) -> Self {
        self.ranges.push((range.into(), weight));
        self
    }

    /// Takes anything else at a weight in thousandths, 100 being usual: against the 406 of servers that know only one
    /// type and do not offer it under the name that was asked for.
    pub fn or_any(self, weight: u16) -> Self {
        self.media_type("*/*", weight)
    }

    /// Checks the ranges and orders them by weight; equal weights keep their order, and a range given twice stands once
    /// with its highest weight.
    ///
    /// # Errors
    /// [`InvalidAccept`] names the first range that is none.
    pub fn build(self) -> Result<Accept, InvalidAccept> {
        let mut ranges: Vec<(String, u16)> = Vec::with_capacity(self.ranges.len());
        for (text, weight) in self.ranges {
            let range = canonical(&text).ok_or(InvalidAccept::BadMediaType(text))?;
            if weight > 1000 {
                return Err(InvalidAccept::BadWeight(weight));
            }
            match ranges.iter_mut().find(|(known, _)| *known == range) {
                Some((_, known)) => *known = weight.max(*known),
                None => ranges.push((range, weight)),
            }
        }
        if ranges.is_empty() {
            return Err(InvalidAccept::Empty);
        }
        ranges.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        let mut value = String::new();
        for (range, weight) in ranges {
            if !value.is_empty() {
                value.push_str(", ");
            }
            value.push_str(&range);
            if weight < 1000 {
                value.push_str(";q=");
                value.push_str(&thousandths(weight));
            }
        }
        let value = HeaderValue::from_str(&value);
        Ok(Accept(
            value.map_err(|_| InvalidAccept::BadMediaType(String::new()))?,
        ))
    }
}

/// The range in lower case and without blanks; parameter values are kept as written.
fn canonical(text: &str) -> Option<String> {
    if !text.is_ascii() || text.bytes().any(|byte| byte.is_ascii_control()) {
        return None;
    }
    let range = MediaType::read(text, false)?;
    let mut canonical = format!("{}/{}", range.kind, range.subtype);
    for (name, value) in &range.parameters {
        if name == "q" {
            return None;
        }
        if super::media_type::is_token(value) {
            canonical.push_str(&format!(";{name}={value}"));
        } else {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            canonical.push_str(&format!(";{name}=\"{value}\""));
        }
    }
    Some(canonical)
}

/// A weight below 1 with at most three digits and no trailing zero (RFC 9110, 12.4.2).
fn thousandths(weight: u16) -> String {
    let text = format!("0.{weight:03}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters() {
        let build = |range: &str| {
            Accept::builder()
                .media_type(range, 1000)
                .build()
                .map(|accept| accept.header().to_str().unwrap().to_owned())
        };
        assert_eq!(
            build("Text/HTML; Level=\"1\"").unwrap(),
            "text/html;level=1"
        );
        assert_eq!(build("a/b;c=\"d;\\\"e\"").unwrap(), "a/b;c=\"d;\\\"e\"");
        for bad in ["a/b;q=0.5", "a/b;c", "*/b", "a/b;c=\"\u{e9}\""] {
            assert_eq!(build(bad).unwrap_err().kind(), "bad_media_type", "{bad}");
        }
    }

    #[test]
    fn weights() {
        let build = |weight| Accept::builder().or_any(weight).build();
        assert_eq!(build(0).unwrap().header(), "*/*;q=0");
        assert_eq!(build(1000).unwrap(), Accept::any());
        assert_eq!(build(1001).unwrap_err().kind(), "bad_weight");
    }
}
