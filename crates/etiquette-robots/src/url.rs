//! From a page's URL to its robots.txt and to the text that rules are compared with (RFC 9309, 2.2.2 and 2.3).

use std::borrow::Cow;

/// A URL with an authority, cut up.
struct Parts<'a> {
    scheme: &'static str,
    default_port: &'static str,
    /// Host and port, without user and password.
    host: &'a str,
    port: Option<&'a str>,
    /// Path, query and fragment, as they stand.
    rest: &'a str,
}

fn parts(url: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = url.trim_ascii().split_once(':')?;
    let (scheme, default_port) = if scheme.eq_ignore_ascii_case("https") {
        ("https", "443")
    } else if scheme.eq_ignore_ascii_case("http") {
        ("http", "80")
    } else if scheme.eq_ignore_ascii_case("ftp") {
        ("ftp", "21")
    } else {
        return None;
    };
    let rest = rest.strip_prefix("//")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host_and_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host_end = match host_and_port.strip_prefix('[') {
        Some(_) => host_and_port.find(']')? + 1,
        None => host_and_port.find(':').unwrap_or(host_and_port.len()),
    };
    let (host, port) = host_and_port.split_at(host_end);
    let port = match port.strip_prefix(':') {
        Some(port) => Some(port),
        None if port.is_empty() => None,
        None => return None,
    };
    let numeric = port.unwrap_or("").bytes().all(|b| b.is_ascii_digit());
    let host_is_clean = !host
        .chars()
        .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '\\' | '^'));
    (!host.is_empty() && numeric && host_is_clean).then_some(Parts {
        scheme,
        default_port,
        host,
        port: port.filter(|port| !port.is_empty()),
        rest,
    })
}

impl Parts<'_> {
    /// Scheme, host in lower case, and the port unless it is the scheme's own.
    fn origin(&self) -> String {
        let mut origin = format!("{}://{}", self.scheme, self.host.to_lowercase());
        if let Some(port) = self.port {
            let digits = port.trim_start_matches('0');
            if digits != self.default_port {
                origin.push(':');
                origin.push_str(if digits.is_empty() { "0" } else { digits });
            }
        }
        origin
    }
}

/// The URL of the robots.txt that holds for `url`: the top of the same scheme, host and port, without user, password,
/// query and fragment. `None` where there can be none, as for `mailto:` and for URLs without a host.
///
/// A host outside ASCII is lower-cased and otherwise left as it is.
///
/// ```
/// assert_eq!(
///     etiquette_robots::robots_url("https://Example.com:8443/a/b?c"),
///     Some("https://example.com:8443/robots.txt".to_owned())
/// );
/// ```
#[must_use]
pub fn robots_url(url: &str) -> Option<String> {
    parts(url).map(|parts| parts.origin() + "/robots.txt")
}

/// What rules are compared with: path and query of `url`, without the fragment, not percent-normalised.
/// `None` for URLs that have no robots.txt.
///
/// ```
/// use etiquette_robots::path_to_match;
///
/// assert_eq!(path_to_match("https://example.com/a?b#c").as_deref(), Some("/a?b"));
/// assert_eq!(path_to_match("https://example.com?b").as_deref(), Some("/?b"));
/// ```
#[must_use]
pub fn path_to_match(url: &str) -> Option<Cow<'_, str>> {
    let rest = parts(url)?.rest;
    let path = rest.split_once('#').map_or(rest, |(path, _)| path);
    Some(if path.starts_with('/') {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(format!("/{path}"))
    })
}

/// `reference` as an absolute HTTP URL, seen from `base` (RFC 3986, 5.2), without a fragment. `None` where it leads to
/// another scheme or nowhere.
#[must_use]
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference = reference.trim();
    let reference = reference.split_once('#').map_or(reference, |(url, _)| url);
    let base = parts(base)?;
    let scheme_end = reference
        .find([':', '/', '?'])
        .filter(|&at| reference[at..].starts_with(':'));
    let absolute = if let Some(at) = scheme_end {
        let scheme = &reference[..at];
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{}:{reference}", base.scheme)
    } else if reference.is_empty() {
        return None;
    } else {
        let path_end = base.rest.find(['?', '#']).unwrap_or(base.rest.len());
        let base_path = &base.rest[..path_end];
        let joined = if reference.starts_with('/') {
            reference.to_owned()
        } else if reference.starts_with('?') {
            format!("{base_path}{reference}")
        } else {
            let folder = base_path.rfind('/').map_or("/", |at| &base_path[..=at]);
            format!("{folder}{reference}")
        };
        let query = joined.find('?').unwrap_or(joined.len());
        base.origin() + &without_dot_segments(&joined[..query]) + &joined[query..]
    };
    parts(&absolute)?;
    Some(encoded(&absolute))
}

/// RFC 3986, 5.2.4, for a path that starts with `/`.
fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// `url` with the characters that a URI must not contain raw in percent-encoded form.
fn encoded(url: &str) -> String {
    let mut out = String::with_capacity(url.len());
    for c in url.chars() {
        if c.is_ascii_graphic()
            && !matches!(c, '<' | '>' | '"' | '\\' | '^' | '`' | '{' | '|' | '}')
        {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_robots_txt_for_each_scheme_host_and_port() {
        for (url, expected) in [
            (
                "HTTPS://WWW.Example.COM/a",
                Some("https://www.example.com/robots.txt"),
            ),
            (
                "http://example.com:080/",
                Some("http://example.com/robots.txt"),
            ),
            (
                "http://example.com:/",
                Some("http://example.com/robots.txt"),
            ),
            (
                "http://[2001:DB8::1]/",
                Some("http://[2001:db8::1]/robots.txt"),
            ),
            (
                "http://a:b@c@example.com?x",
                Some("http://example.com/robots.txt"),
            ),
            (
                "ftp://ftp.example.com/x",
                Some("ftp://ftp.example.com/robots.txt"),
            ),
            ("http:///a", None),
            ("http://:80/", None),
            ("http://example.com:x/", None),
            ("http://[::1/", None),
            ("http://[::1]x/", None),
            ("http://exa mple.com/", None),
            ("http:example.com", None),
            ("", None),
        ] {
            assert_eq!(robots_url(url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn references_resolve() {
        let base = "https://www.example.com/robots.txt";
        for (reference, expected) in [
            (
                "https://cdn.example.net/s.xml",
                Some("https://cdn.example.net/s.xml"),
            ),
            (
                "/s.xml?a=/../b",
                Some("https://www.example.com/s.xml?a=/../b"),
            ),
            ("s.xml", Some("https://www.example.com/s.xml")),
            ("../a/./b/../s.xml", Some("https://www.example.com/a/s.xml")),
            (
                "//cdn.example.net/s.xml",
                Some("https://cdn.example.net/s.xml"),
            ),
            (
                "/a b/ü.xml",
                Some("https://www.example.com/a%20b/%C3%BC.xml"),
            ),
            ("/a/..", Some("https://www.example.com/")),
            ("?x", Some("https://www.example.com/robots.txt?x")),
            ("ftp://example.com/s.xml", None),
            ("javascript:alert(1)", None),
            ("https://", None),
            ("", None),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), expected, "{reference}");
        }
    }
}
