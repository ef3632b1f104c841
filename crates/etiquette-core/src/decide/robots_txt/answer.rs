//! What one response to the request for /robots.txt means (RFC 9309, 2.3.1).

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

use super::RobotsPolicy;
use super::record::FetchFailure;

/// What a response to the request for /robots.txt means, by its status and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Parse the body and obey it, whatever its media type.
    Rules,
    /// The kept copy is good for another life.
    NotModified,
    /// There is no robots.txt: nothing is forbidden (RFC 9309, 2.3.1.3).
    Unavailable,
    /// The site is closed by the switch for 401 and 403.
    Closed,
    /// Ask at this reference, relative to the URL that was asked.
    Redirect(Vec<u8>),
    /// No outcome; closed until a later try.
    FetchFailure(FetchFailure),
}

impl Answer {
    /// Reads status and headers of a response.
    #[must_use]
    pub fn read(status: StatusCode, headers: &HeaderMap, policy: &RobotsPolicy) -> Self {
        match status.as_u16() {
            200..=299 if is_coded(headers) => Self::FetchFailure(FetchFailure::Coded),
            200..=299 => Self::Rules,
            304 => Self::NotModified,
            301 | 302 | 303 | 307 | 308 => match headers.get(header::LOCATION) {
                Some(location) => Self::Redirect(location.as_bytes().to_vec()),
                None => Self::FetchFailure(FetchFailure::Later(status)),
            },
            408 | 429 => Self::FetchFailure(FetchFailure::Later(status)),
            401 | 403 if policy.unauthorized_closes => Self::Closed,
            400..=499 => Self::Unavailable,
            _ => Self::FetchFailure(FetchFailure::Status(status)),
        }
    }
}

/// The file was asked for without a content coding; what comes coded all the same cannot be read here.
fn is_coded(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .flat_map(|line| line.as_bytes().split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

/// The life of a copy: min(max-age − Age, the policy's longest), never under the floor.
pub(super) fn life(headers: &HeaderMap, policy: &RobotsPolicy) -> Duration {
    let age = headers
        .get(header::AGE)
        .and_then(|value| seconds(value.as_bytes()))
        .unwrap_or(0);
    let mut life = policy.max_life;
    for directive in headers
        .get_all(header::CACHE_CONTROL)
        .iter()
        .flat_map(|line| line.as_bytes().split(|&b| b == b','))
    {
        let (name, value) = match directive.iter().position(|&b| b == b'=') {
            Some(at) => (&directive[..at], &directive[at + 1..]),
            None => (directive, &[][..]),
        };
        let name = name.trim_ascii();
        if name.eq_ignore_ascii_case(b"max-age") {
            let value = value.trim_ascii();
            let value = value
                .strip_prefix(b"\"")
                .and_then(|v| v.strip_suffix(b"\""))
                .unwrap_or(value);
            // A max-age that cannot be read is stale already (RFC 9111, 4.2.1).
            let left = seconds(value).unwrap_or(0).saturating_sub(age);
            life = life.min(Duration::from_secs(left));
        } else if name.eq_ignore_ascii_case(b"no-store") || name.eq_ignore_ascii_case(b"no-cache") {
            life = Duration::ZERO;
        }
    }
    life.max(RobotsPolicy::FLOOR)
}

/// 1*DIGIT, saturating.
fn seconds(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0u64, |sum, &digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    }))
}
