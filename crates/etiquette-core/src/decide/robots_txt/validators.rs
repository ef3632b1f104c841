//! The validators of a copy, for a conditional request (RFC 9110, 13.1).

use http::{HeaderMap, HeaderValue, header};

/// What a conditional re-read carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// For `If-None-Match`.
    pub etag: Option<HeaderValue>,
    /// For `If-Modified-Since`.
    pub last_modified: Option<HeaderValue>,
}

impl Validators {
    /// The validators of a response.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        Self {
            etag: headers.get(header::ETAG).cloned(),
            last_modified: headers.get(header::LAST_MODIFIED).cloned(),
        }
    }

    /// Makes a request conditional (RFC 9110, 13.1).
    pub fn apply(&self, headers: &mut HeaderMap) {
        if let Some(etag) = &self.etag {
            headers.insert(header::IF_NONE_MATCH, etag.clone());
        }
        if let Some(date) = &self.last_modified {
            headers.insert(header::IF_MODIFIED_SINCE, date.clone());
        }
    }
}
