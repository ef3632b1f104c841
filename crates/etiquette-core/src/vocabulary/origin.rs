//! Origins: the scope of a robots.txt file (RFC 9309, 2.3) and the unit that hosts are grouped from.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use http::Uri;
use http::uri::{Authority, Scheme};

/// The scheme, host and port of a URL (RFC 6454; RFC 9110, 4.3.1).
///
/// The host is lower-cased and has no trailing dot, a default port is removed and user information is dropped, so that
/// `HTTP://Bot@EXAMPLE.com.:80/x` and `http://example.com/` have the same origin. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(Arc<Parts>);

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Parts {
    host: Box<str>,
    port: u16,
    https: bool,
}

/// Why a URI has no origin that a polite client can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidOrigin {
    /// The URI is relative: without scheme and authority nobody can be asked for rules.
    Relative,
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The host is empty.
    EmptyHost,
    /// The Host field names another site than the URI: whose rules hold cannot be told.
    OtherHost,
}

impl fmt::Display for InvalidOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Relative => "the URI has no scheme and authority",
            Self::Scheme => "the scheme is neither http nor https",
            Self::EmptyHost => "the host is empty",
            Self::OtherHost => "the host field names another site than the URI",
        })
    }
}

impl std::error::Error for InvalidOrigin {}

impl Origin {
    /// The origin of an absolute `http` or `https` URI.
    ///
    /// # Errors
    /// [`InvalidOrigin`] when the URI is relative, of another scheme, or without a host.
    pub fn of(uri: &Uri) -> Result<Self, InvalidOrigin> {
        let (https, host, port) = parts(uri)?;
        Ok(Self(Arc::new(Parts {
            host: host.to_ascii_lowercase().into(),
            port,
            https,
        })))
    }

    /// Whether the value of a Host field (RFC 9110, 7.2) means this origin.
    #[must_use]
    pub fn is_host(&self, value: &[u8]) -> bool {
        let Ok(authority) = Authority::try_from(value) else {
            return false;
        };
        let host = authority.host();
        let host = host.strip_suffix('.').unwrap_or(host);
        let default = if self.0.https { 443 } else { 80 };
        host.eq_ignore_ascii_case(&self.0.host)
            && authority.port_u16().unwrap_or(default) == self.0.port
    }

    /// `"http"` or `"https"`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.0.https { "https" } else { "http" }
    }

    /// Whether the scheme is `https`.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.https
    }

    /// The host in lower case; an IPv6 literal keeps its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.0.host
    }

    /// The port, the scheme's default filled in.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// The port if it is not the scheme's default.
    #[must_use]
    pub fn explicit_port(&self) -> Option<u16> {
        let default = if self.0.https { 443 } else { 80 };
        (self.0.port != default).then_some(self.0.port)
    }

    /// The URI of `path_and_query`, which starts with a slash, at this origin; `None` where that is not a valid URI.
    #[must_use]
    pub fn uri(&self, path_and_query: &str) -> Option<Uri> {
        format!("{self}{path_and_query}").parse().ok()
    }
}

/// Whether it is `https`, the host as written without its trailing dot, and the port.
fn parts(uri: &Uri) -> Result<(bool, &str, u16), InvalidOrigin> {
    let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
        return Err(InvalidOrigin::Relative);
    };
    let https = if *scheme == Scheme::HTTPS {
        true
    } else if *scheme == Scheme::HTTP {
        false
    } else {
        return Err(InvalidOrigin::Scheme);
    };
    let host = authority.host();
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.is_empty() {
        return Err(InvalidOrigin::EmptyHost);
    }
    let port = authority.port_u16().unwrap_or(default_port(https));
    Ok((https, host, port))
}

fn default_port(https: bool) -> u16 {
    if https { 443 } else { 80 }
}

/// Appends the origin of `uri` in the spelling of [`Origin`]'s `Display`, without making one.
pub(crate) fn spell(uri: &Uri, text: &mut String) -> Result<(), InvalidOrigin> {
    let (https, host, port) = parts(uri)?;
    text.push_str(if https { "https://" } else { "http://" });
    let start = text.len();
    text.push_str(host);
    text[start..].make_ascii_lowercase();
    if port != default_port(https) {
        // A String takes whatever is written.
        let _ = write!(text, ":{port}");
    }
    Ok(())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host())?;
        match self.explicit_port() {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(uri: &str) -> Result<String, InvalidOrigin> {
        Origin::of(&uri.parse().unwrap()).map(|o| o.to_string())
    }

    #[test]
    fn one_spelling_for_each_origin() {
        for (uri, expected) in [
            ("HTTP://EXAMPLE.com:80/x", "http://example.com"),
            ("https://example.com.:443", "https://example.com"),
            ("http://user:pw@example.com/", "http://example.com"),
            ("http://example.com:8080/", "http://example.com:8080"),
            ("https://[2001:DB8::1]:443/", "https://[2001:db8::1]"),
            ("http://example.com:443/", "http://example.com:443"),
        ] {
            assert_eq!(origin(uri).unwrap(), expected, "{uri}");
            let mut spelt = String::new();
            spell(&uri.parse().unwrap(), &mut spelt).unwrap();
            assert_eq!(spelt, expected, "{uri}");
        }
    }

    #[test]
    fn a_host_field_means_one_origin() {
        let origin = Origin::of(&"https://example.com/".parse().unwrap()).unwrap();
        for value in ["example.com", "EXAMPLE.com.", "example.com:443"] {
            assert!(origin.is_host(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "other.example",
            "example.com:80",
            "example.com.evil.example",
            "a b",
        ] {
            assert!(!origin.is_host(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn what_has_no_origin() {
        assert_eq!(origin("/x"), Err(InvalidOrigin::Relative));
        assert_eq!(origin("example.com:80"), Err(InvalidOrigin::Relative));
        assert_eq!(origin("ftp://example.com/"), Err(InvalidOrigin::Scheme));
    }
}
