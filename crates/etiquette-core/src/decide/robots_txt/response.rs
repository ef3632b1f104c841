//! What one response to the request for /robots.txt means (RFC 9309, 2.3.1).

use http::{HeaderMap, StatusCode, header};

use super::failure::FetchFailure;
use super::policy::RobotsPolicy;

/// What a response to the request for /robots.txt means, by its status and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RobotsResponse {
    /// Parse the body and obey it, whatever its media type.
    Rules,
    /// The kept copy is good for another lifetime.
    NotModified,
    /// There is no robots.txt: nothing is forbidden (RFC 9309, 2.3.1.3).
    Unavailable,
    /// The site is closed by the switch for 401 and 403.
    Closed,
    /// Fetch this reference, relative to the URL of the request.
    Redirect(Vec<u8>),
    /// No outcome; closed until a later fetch.
    FetchFailure(FetchFailure),
}

impl RobotsResponse {
    /// Reads status and headers of a response.
    #[must_use]
    pub fn read(status: StatusCode, headers: &HeaderMap, policy: &RobotsPolicy) -> Self {
        match status.as_u16() {
            200..=299 if is_encoded(headers) => Self::FetchFailure(FetchFailure::ContentCoding),
            200..=299 => Self::Rules,
            304 => Self::NotModified,
            301 | 302 | 303 | 307 | 308 => match headers.get(header::LOCATION) {
                Some(location) => Self::Redirect(location.as_bytes().to_vec()),
                None => Self::FetchFailure(FetchFailure::Later(status)),
            },
            408 | 429 => Self::FetchFailure(FetchFailure::Later(status)),
            401 | 403 if policy.get_unauthorized_closes() => Self::Closed,
            400..=499 => Self::Unavailable,
            _ => Self::FetchFailure(FetchFailure::Status(status)),
        }
    }
}

/// The file was requested without a content coding; one that is used all the same is not undone here.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|line| line.as_bytes().split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}
