//! For which hosts a sitemap may speak.

use http::Uri;

use crate::reference::BaseUrl;

/// What becomes of one location.
pub(super) enum Judged<'a> {
    /// Of a host that the sitemap may speak for, absolute and in its one form.
    Own(&'a str),
    /// Of another host.
    Foreign(&'a str),
    /// No usable URI.
    Unusable,
}

/// The sitemap's own host and the host whose robots.txt named it.
///
/// Hosts are compared with their port; http and https are one host on their default ports, as everywhere in this
/// project, because sites that moved to https often list both.
#[derive(Clone, Debug)]
pub(super) struct SitemapScope {
    base: Option<BaseUrl>,
    hosts: Vec<(String, Option<u16>)>,
    /// How locations of these hosts begin in their one form.
    prefixes: Vec<String>,
}

impl SitemapScope {
    pub(super) fn new(uri: &Uri) -> Self {
        let mut scope = Self {
            base: BaseUrl::new(uri).ok(),
            hosts: Vec::new(),
            prefixes: Vec::new(),
        };
        scope.add(uri);
        scope
    }

    /// Adds the host of an origin that named the sitemap.
    pub(super) fn add(&mut self, origin: &Uri) {
        let Some((host, port)) = host_and_port(origin) else {
            return;
        };
        let port_part = port.map(|port| format!(":{port}")).unwrap_or_default();
        for scheme in ["https", "http"] {
            self.prefixes.push(format!("{scheme}://{host}{port_part}/"));
        }
        self.hosts.push((host, port));
    }

    /// Judges a location; `resolved` is room for the form of one that needs resolving.
    pub(super) fn judge<'a>(&self, location: &'a str, resolved: &'a mut String) -> Judged<'a> {
        // Nearly every location of a real sitemap: this host, nothing to encode. Spares two allocations.
        for prefix in &self.prefixes {
            if let Some(path) = location.strip_prefix(prefix.as_str())
                && is_in_one_form(path)
            {
                return Judged::Own(location);
            }
        }
        let uri = self
            .base
            .as_ref()
            .and_then(|base| base.resolve(location).ok());
        let Some(uri) = uri else {
            return Judged::Unusable;
        };
        resolved.clear();
        resolved.push_str(&uri.to_string());
        if host_and_port(&uri).is_some_and(|host| self.hosts.contains(&host)) {
            Judged::Own(resolved)
        } else {
            Judged::Foreign(resolved)
        }
    }
}

fn host_and_port(uri: &Uri) -> Option<(String, Option<u16>)> {
    let host = uri.host()?.to_ascii_lowercase();
    let port = uri.port_u16().filter(|port| !matches!(port, 80 | 443));
    Some((host, port))
}

/// Whether resolving would change nothing: no byte to encode, no dot segment, no fragment.
fn is_in_one_form(path: &str) -> bool {
    // Without a branch for each byte; what needs a second look is rare.
    let bytes = path.as_bytes();
    let seen = bytes
        .iter()
        .fold(PLAIN, |seen, byte| seen | BYTES[usize::from(*byte)]);
    if seen & OTHER != 0 {
        return false;
    }
    // A dot in front of a segment may make it a dot segment.
    let dots = || {
        path.match_indices('.')
            .any(|(at, _)| at == 0 || bytes[at - 1] == b'/')
    };
    let encoded_dots = || {
        path.match_indices('%')
            .any(|(at, _)| matches!(bytes[at + 1..], [b'2', b'e' | b'E', ..]))
    };
    !(seen & DOT != 0 && dots() || seen & PERCENT != 0 && encoded_dots())
}

const PLAIN: u8 = 0;
const DOT: u8 = 1;
const PERCENT: u8 = 2;
const OTHER: u8 = 4;

const BYTES: [u8; 256] = {
    let mut bytes = [OTHER; 256];
    let mut at = 0u8;
    while at < 128 {
        bytes[at as usize] = match at {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => PLAIN,
            b'/' | b'-' | b'_' | b'~' | b'?' | b'=' | b'&' | b'+' | b',' | b':' | b';' | b'@' => {
                PLAIN
            }
            b'!' | b'$' | b'(' | b')' | b'*' => PLAIN,
            b'.' => DOT,
            b'%' => PERCENT,
            _ => OTHER,
        };
        at += 1;
    }
    bytes
};
