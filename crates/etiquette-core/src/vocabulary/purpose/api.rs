//! An API that a site gave a key for: what it is, how its key is recognised, and the limits that the site documents.

use std::error::Error;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Uri};

use crate::Origin;

/// An API used under a key, as declared. Cloning is cheap.
///
/// robots.txt is for crawlers and is not asked about it; its own limit takes the place of the host's budget; identity,
/// pauses and Retry-After hold. All of that only for requests that it [covers](Api::covers).
///
/// ```
/// use std::num::NonZeroU32;
/// use std::time::Duration;
///
/// use etiquette_core::vocabulary::purpose::{Api, ApiKey, ApiLimit};
///
/// let an_hour = Duration::from_secs(3600);
/// let limit = ApiLimit::new(NonZeroU32::new(5_000).unwrap(), an_hour)
///     .burst(NonZeroU32::new(10).unwrap())
///     .max_in_flight(NonZeroU32::new(4).unwrap());
/// let api = Api::new(
///     "https://api.example/v1/",
///     ApiKey::header(http::header::AUTHORIZATION),
///     limit,
///     "https://api.example/docs/limits",
/// )?;
/// let mut headers = http::HeaderMap::new();
/// let url = "https://api.example/v1/things".parse().unwrap();
/// assert!(!api.covers(&url, &headers), "without its key the request is a crawl");
/// headers.insert("authorization", "Bearer k".parse().unwrap());
/// assert!(api.covers(&url, &headers));
/// # Ok::<(), etiquette_core::vocabulary::purpose::InvalidApi>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Api(Arc<Inner>);

#[derive(PartialEq)]
struct Inner {
    origin: Origin,
    prefix: String,
    key: ApiKey,
    limit: ApiLimit,
    documented_at: String,
}

/// Where a request to an API carries its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ApiKey {
    /// In this header.
    Header(HeaderName),
    /// In this field of the query.
    Query(String),
}

impl ApiKey {
    /// In the header `name`.
    #[must_use]
    pub fn header(name: HeaderName) -> Self {
        Self::Header(name)
    }

    /// In the query field `name`, spelled as in the URL.
    #[must_use]
    pub fn query(name: impl Into<String>) -> Self {
        Self::Query(name.into())
    }
}

/// The limit that the site documents for an API: a bucket of `burst` tokens that gains `requests` in each span of `per`,
/// and takes one for each start. So at most `burst` + `requests` × t / `per` requests start in any time t.
///
/// The bucket belongs to the API's prefix and key together. Requests to it take neither the delay nor the permits of the host,
/// and crawls no tokens; pauses hold both. After a 429 or 503 there is no burst until the full rate is back.
///
/// Where the hosts are shared with other processes through a store, whose budget has no buckets, such a request keeps the
/// stricter of the host's shared budget and its limit: the delay before it is at least `per` / `requests` to any other start
/// on the host, by any process, and there is no burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApiLimit {
    /// How many requests may start in `per`.
    pub requests: NonZeroU32,
    /// The span that `requests` are counted over.
    pub per: Duration,
    /// How many of them may start at once after idleness; 1 by default.
    pub burst: NonZeroU32,
    /// How many may be on their way at the same time; 1 by default.
    pub max_in_flight: NonZeroU32,
}

impl ApiLimit {
    /// `requests` in each span of `per`, evenly spaced, one at a time.
    #[must_use]
    pub fn new(requests: NonZeroU32, per: Duration) -> Self {
        Self {
            requests,
            per,
            burst: NonZeroU32::MIN,
            max_in_flight: NonZeroU32::MIN,
        }
    }

    /// Lets this many start without spacing after idleness.
    #[must_use]
    pub fn burst(mut self, requests: NonZeroU32) -> Self {
        self.burst = requests;
        self
    }

    /// Lets this many be on their way at the same time.
    #[must_use]
    pub fn max_in_flight(mut self, requests: NonZeroU32) -> Self {
        self.max_in_flight = requests;
        self
    }
}

/// Why a declaration is no API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidApi {
    /// The prefix is no absolute `http` or `https` URL, or has a query.
    Prefix,
    /// The name of the query field is empty.
    Key,
    /// There is no link to where the limits are documented.
    Documentation,
    /// The limit counts over a span of nothing.
    Limit,
}

impl fmt::Display for InvalidApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prefix => "the prefix is no absolute http or https URL without a query",
            Self::Key => "the query field of the key has no name",
            Self::Documentation => "there is no link to the documentation of its limits",
            Self::Limit => "the span over which its limit counts is zero",
        })
    }
}

impl Error for InvalidApi {}

impl Api {
    /// Declares the API under `prefix`, which is a whole host (`https://api.example`) or a part of it
    /// (`https://site.example/v1/`), with where it carries its key, its limit, and the link where the site documents
    /// that limit.
    ///
    /// # Errors
    /// [`InvalidApi`] names the part that is none.
    pub fn new(
        prefix: &str,
        key: ApiKey,
        limit: ApiLimit,
        documented_at: impl Into<String>,
    ) -> Result<Self, InvalidApi> {
        let url: Uri = prefix.parse().map_err(|_| InvalidApi::Prefix)?;
        let origin = Origin::of(&url).map_err(|_| InvalidApi::Prefix)?;
        if url.query().is_some() || has_dot_segment(url.path()) {
            return Err(InvalidApi::Prefix);
        }
        if matches!(&key, ApiKey::Query(name) if name.is_empty()) {
            return Err(InvalidApi::Key);
        }
        if limit.per.is_zero() {
            return Err(InvalidApi::Limit);
        }
        let documented_at = documented_at.into();
        let documentation = documented_at.parse::<Uri>();
        if !documentation.is_ok_and(|link| Origin::of(&link).is_ok()) {
            return Err(InvalidApi::Documentation);
        }
        Ok(Self(Arc::new(Inner {
            prefix: url.path().to_owned(),
            origin,
            key,
            limit,
            documented_at,
        })))
    }

    /// The origin of the API.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// The path that the API is under.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.0.prefix
    }

    /// Where a request carries the key.
    #[must_use]
    pub fn key(&self) -> &ApiKey {
        &self.0.key
    }

    /// The limit that the site documents.
    #[must_use]
    pub fn limit(&self) -> ApiLimit {
        self.0.limit
    }

    /// Where the site documents it.
    #[must_use]
    pub fn documented_at(&self) -> &str {
        &self.0.documented_at
    }

    /// Whether a request is one to this API: within its prefix and with its key. Any other is a crawl.
    #[must_use]
    pub fn covers(&self, url: &Uri, headers: &HeaderMap) -> bool {
        Origin::of(url).is_ok_and(|origin| origin == self.0.origin)
            && self.has_path(url.path())
            && self.has_key(url, headers)
    }

    /// Whether `path` is the prefix or below it: `/v1` has `/v1` and `/v1/x` below it, not `/v10`.
    fn has_path(&self, path: &str) -> bool {
        let prefix = self.0.prefix.as_str();
        let Some(rest) = path.strip_prefix(prefix) else {
            return false;
        };
        let at_boundary = rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/');
        // A server would resolve `/v1/../about` to a page outside of the API.
        at_boundary && !has_dot_segment(path)
    }

    fn has_key(&self, url: &Uri, headers: &HeaderMap) -> bool {
        match &self.0.key {
            ApiKey::Header(name) => headers
                .get_all(name)
                .iter()
                .any(|value| !value.as_bytes().trim_ascii().is_empty()),
            ApiKey::Query(name) => url.query().is_some_and(|query| {
                query
                    .split('&')
                    .filter_map(|field| field.split_once('='))
                    .any(|(field, value)| field == name && !value.is_empty())
            }),
        }
    }
}

/// Whether a path has a `.` or `..` segment, encoded or not, with slashes of either kind.
fn has_dot_segment(path: &str) -> bool {
    if !path.contains('.') && !path.contains('%') {
        return false;
    }
    let lower = path.to_ascii_lowercase();
    let plain = lower
        .replace("%2e", ".")
        .replace("%2f", "/")
        .replace("%5c", "/")
        .replace('\\', "/");
    plain
        .split('/')
        .any(|segment| matches!(segment, "." | ".."))
}

/// Never shows a key: it has none, only where requests carry one.
impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("origin", &self.0.origin)
            .field("prefix", &self.0.prefix)
            .field("key", &self.0.key)
            .field("limit", &self.0.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(prefix: &str) -> Result<Api, InvalidApi> {
        let limit = ApiLimit::new(NonZeroU32::MIN, Duration::from_secs(1));
        Api::new(
            prefix,
            ApiKey::query("key"),
            limit,
            "https://api.example/docs",
        )
    }

    #[test]
    fn a_prefix_ends_at_a_segment() {
        for (prefix, url, covered) in [
            ("https://api.example", "https://api.example/?key=k", true),
            (
                "https://api.example",
                "https://API.example:443/a?key=k",
                true,
            ),
            ("https://api.example", "http://api.example/a?key=k", false),
            (
                "https://api.example/v1",
                "https://api.example/v1?key=k",
                true,
            ),
            (
                "https://api.example/v1",
                "https://api.example/v1/x?key=k",
                true,
            ),
            (
                "https://api.example/v1",
                "https://api.example/v10?key=k",
                false,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1/?key=k",
                true,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1?key=k",
                false,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1/../a?key=k",
                false,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1/%2E%2e%2Fa?key=k",
                false,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1/a..b?key=k",
                true,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1/x?key=",
                false,
            ),
            (
                "https://api.example/v1/",
                "https://api.example/v1/x?monkey=k",
                false,
            ),
        ] {
            let covers = api(prefix)
                .unwrap()
                .covers(&url.parse().unwrap(), &HeaderMap::new());
            assert_eq!(covers, covered, "{prefix} {url}");
        }
    }

    #[test]
    fn what_is_no_declaration() {
        for prefix in [
            "/v1",
            "ftp://api.example/",
            "https://api.example/?a",
            "https://a.example/b/../",
        ] {
            assert_eq!(api(prefix), Err(InvalidApi::Prefix), "{prefix}");
        }
        let limit = ApiLimit::new(NonZeroU32::MIN, Duration::from_secs(1));
        assert_eq!(
            Api::new(
                "https://a.example",
                ApiKey::query(""),
                limit,
                "https://a.example/"
            ),
            Err(InvalidApi::Key)
        );
        assert_eq!(
            Api::new(
                "https://a.example",
                ApiKey::query("k"),
                limit,
                "see the docs"
            ),
            Err(InvalidApi::Documentation)
        );
        let limit = ApiLimit::new(NonZeroU32::MIN, Duration::ZERO);
        assert_eq!(
            Api::new(
                "https://a.example",
                ApiKey::query("k"),
                limit,
                "https://a.example/"
            ),
            Err(InvalidApi::Limit)
        );
    }
}
