//! For which hosts a sitemap may speak.

use http::Uri;

use crate::reference::resolve;

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
pub(super) struct Scope {
    uri: Uri,
    hosts: Vec<(String, Option<u16>)>,
    /// How locations of these hosts begin in their one form.
    prefixes: Vec<String>,
}

impl Scope {
    pub(super) fn new(uri: &Uri) -> Self {
        let mut scope = Self {
            uri: uri.clone(),
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
                && is_in_one_form(path.as_bytes())
            {
                return Judged::Own(location);
            }
        }
        let Ok(uri) = resolve(&self.uri, location) else {
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

/// Whether resolving would change nothing: no octet to encode, no dot segment, no fragment.
fn is_in_one_form(path: &[u8]) -> bool {
    path.iter()
        .enumerate()
        .all(|(at, octet)| match OCTETS[usize::from(*octet)] {
            Octet::Plain => true,
            // A dot in front of a segment may make it a dot segment.
            Octet::Dot => at > 0 && path[at - 1] != b'/',
            Octet::Percent => !matches!(path[at + 1..], [b'2', b'e' | b'E', ..]),
            Octet::Other => false,
        })
}

#[derive(Clone, Copy)]
enum Octet {
    Plain,
    Dot,
    Percent,
    Other,
}

const OCTETS: [Octet; 256] = {
    let mut octets = [Octet::Other; 256];
    let mut at = 0u8;
    while at < 128 {
        octets[at as usize] = match at {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => Octet::Plain,
            b'/' | b'-' | b'_' | b'~' | b'?' | b'=' | b'&' | b'+' | b',' | b':' | b';' | b'@' => {
                Octet::Plain
            }
            b'!' | b'$' | b'(' | b')' | b'*' => Octet::Plain,
            b'.' => Octet::Dot,
            b'%' => Octet::Percent,
            _ => Octet::Other,
        };
        at += 1;
    }
    octets
};
