//! What the cache did with a request, as a fact and as `Cache-Status` (RFC 9211).

use http::StatusCode;
use http::header::HeaderValue;

/// Why a request went on towards the origin (RFC 9211, 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Forward {
    /// The cache does not handle such requests.
    Bypass,
    /// The method is not one that a stored response satisfies.
    Method,
    /// Nothing is stored for the URL.
    UriMiss,
    /// What is stored for the URL was selected by other request fields.
    VaryMiss,
    /// What is stored is stale.
    Stale,
    /// Only a part is stored.
    Partial,
    /// The request asked for it.
    Request,
}

impl Forward {
    /// The word of RFC 9211.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Stale => "stale",
            Self::Partial => "partial",
            Self::Request => "request",
        }
    }
}

/// What the cache did with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheStatus {
    /// Served from the store, without a request to the origin before.
    Hit {
        /// What is left of the response's life, in seconds; negative when it is stale.
        ttl: i64,
    },
    /// Served from the store after the origin validated it.
    Validated {
        /// Why the request was forwarded.
        forward: Forward,
        /// Another request of ours was forwarded, and this one collapsed with it.
        collapsed: bool,
    },
    /// A stale response served from the store, because the origin failed.
    StaleOnError {
        /// The status of the origin's response, if there was one.
        status: Option<StatusCode>,
        /// What is left of the response's life, in seconds: less than zero.
        ttl: i64,
    },
    /// Forwarded to the origin, whose response this is.
    Forwarded {
        /// Why the request was forwarded.
        forward: Forward,
        /// Whether the response is being stored.
        stored: bool,
        /// Another request of ours was forwarded, and this one collapsed with it.
        collapsed: bool,
    },
}

impl CacheStatus {
    /// The response of the origin to this very request.
    #[must_use]
    pub fn forwarded(forward: Forward, stored: bool) -> Self {
        Self::Forwarded {
            forward,
            stored,
            collapsed: false,
        }
    }

    /// Whether the body comes from the store.
    #[must_use]
    pub fn is_from_store(&self) -> bool {
        !matches!(self, Self::Forwarded { .. })
    }

    /// The member for `Cache-Status` of a cache called `name`, which is a token; `None` for a name of more than 30
    /// bytes.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<HeaderValue> {
        // On the stack: this is on the way of every response from the store.
        let mut room = [0_u8; 96];
        let left = {
            let mut text = &mut room[..];
            self.write(name, &mut text).ok()?;
            text.len()
        };
        HeaderValue::from_bytes(&room[..room.len() - left]).ok()
    }

    fn write(&self, name: &str, text: &mut impl std::io::Write) -> std::io::Result<()> {
        text.write_all(name.as_bytes())?;
        match *self {
            Self::Hit { ttl } => write!(text, "; hit; ttl={ttl}"),
            Self::Validated { forward, .. } => {
                write!(text, "; fwd={}; fwd-status=304", forward.as_str())
            }
            Self::StaleOnError { status, ttl } => match status {
                Some(status) => {
                    write!(
                        text,
                        "; fwd=stale; fwd-status={}; ttl={ttl}",
                        status.as_u16()
                    )
                }
                None => write!(text, "; fwd=stale; ttl={ttl}; detail=NO-ANSWER"),
            },
            Self::Forwarded {
                forward, stored, ..
            } => write!(
                text,
                "; fwd={}{}",
                forward.as_str(),
                if stored { "; stored" } else { "" }
            ),
        }?;
        if let Self::Validated {
            collapsed: true, ..
        }
        | Self::Forwarded {
            collapsed: true, ..
        } = self
        {
            text.write_all(b"; collapsed")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_structured_fields() {
        let of = |status: CacheStatus| status.member("x").unwrap();
        assert_eq!(of(CacheStatus::Hit { ttl: -3 }), "x; hit; ttl=-3");
        assert_eq!(
            of(CacheStatus::Forwarded {
                forward: Forward::UriMiss,
                stored: true,
                collapsed: true
            }),
            "x; fwd=uri-miss; stored; collapsed"
        );
        assert_eq!(
            of(CacheStatus::StaleOnError {
                status: Some(StatusCode::BAD_GATEWAY),
                ttl: -1
            }),
            "x; fwd=stale; fwd-status=502; ttl=-1"
        );
    }
}
