//! What a response says about its host, in one word.

use http::StatusCode;

/// What a response, or the lack of one, says about its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// The page was served, or is unchanged: 2xx and 304.
    Success,
    /// Neither success nor complaint: 3xx, and 4xx that speak about the page alone.
    Neutral,
    /// The client sends too many requests: 429. Pauses and slows the host.
    Throttled,
    /// The host is overloaded or down for a while: 503. Pauses and slows the host.
    Unavailable,
    /// The host failed: other 5xx, or no response at all. The second in a row pauses and slows the host.
    Failed,
    /// The host refuses this client: 401, 403 and 451. Many in a row pause the host.
    Refused,
}

impl Signal {
    /// What a status means by itself.
    #[must_use]
    pub fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            304 => Self::Success,
            401 | 403 | 451 => Self::Refused,
            429 => Self::Throttled,
            503 => Self::Unavailable,
            200..=299 => Self::Success,
            500..=599 => Self::Failed,
            _ => Self::Neutral,
        }
    }
}
