//! References as pages write them, made absolute.
//!
//! # Flow
//! A reference (`href`, the target of a `Link` field, a `<loc>`) and the URI of the document that holds it become an
//! absolute `http` or `https` [`Uri`] without fragment and without user name or password, or a [`BadReference`] that
//! says why not. Nothing is fetched and nothing panics.
//!
//! # Scope
//! The rules are those of the URL Standard for `http` and `https` (the standard that browsers and site operators test
//! against), not those of RFC 3986: white space around a reference is dropped and tabs and line ends inside it are
//! removed, `\` counts as `/`, `http:path` is relative when the base is `http`, dot segments may be percent-encoded,
//! ports that are the default vanish, hosts are lower-cased and IPv4 and IPv6 addresses written in their one form.
//! Bytes that may not stand in a path or query are percent-encoded; a query is encoded in the document's own
//! encoding, as browsers do.
//!
//! # Why not the `url` crate
//! It is correct, and our tests hold this module against it, but it brings 46 crates, nearly all of them for the
//! mapping tables of international host names, and its type is not the one that requests carry. The rules for the two
//! schemes a crawler follows fit in this folder. International host names are the one place where we do less: see
//! [`BadReference::Host`].
//!
//! # Non-goals
//! Schemes other than `http` and `https`, fragments, and serialising anything but an [`Uri`].

mod host;

use std::fmt;

use encoding_rs::{Encoding, UTF_8};
use http::Uri;

/// References longer than this many bytes are refused: 16 KiB, eight times what common servers accept as a request
/// target.
pub const MAX_REFERENCE: usize = 16 * 1024;

/// Why a reference leads to nothing that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadReference {
    /// Another scheme than `http` or `https`: `mailto:`, `javascript:`, `data:` and the rest.
    Scheme,
    /// The host is empty or holds characters that no host may hold.
    ///
    /// Also an international host name outside the letters that need no mapping tables (composed Latin, Greek and
    /// Cyrillic letters, kana, Han and Hangul syllables): leaving a link out is safe, asking a wrong host is not.
    Host,
    /// The port is no number up to 65,535.
    Port,
    /// Longer than [`MAX_REFERENCE`] before or after encoding.
    TooLong,
    /// The base has no `http` or `https` scheme or no host, so nothing can be relative to it.
    Base,
}

impl fmt::Display for BadReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "the scheme is neither http nor https",
            Self::Host => "the host is not valid or not supported",
            Self::Port => "the port is not valid",
            Self::TooLong => "the reference is too long",
            Self::Base => "the base is no absolute http or https uri",
        })
    }
}

impl std::error::Error for BadReference {}

/// Makes `reference` absolute, relative to `base`, the URI of the document after redirects.
///
/// # Errors
/// A [`BadReference`]; an empty reference is no error but `base` itself.
///
/// ```
/// use etiquette_discovery::reference::resolve;
///
/// let base = "https://www.example.com/blog/".parse().unwrap();
/// assert_eq!(resolve(&base, " feed.xml#top ").unwrap(), "https://www.example.com/blog/feed.xml");
/// assert_eq!(resolve(&base, "//cdn.example/ä b").unwrap(), "https://cdn.example/%C3%A4%20b");
/// assert!(resolve(&base, "mailto:ops@example.com").is_err());
/// ```
pub fn resolve(base: &Uri, reference: &str) -> Result<Uri, BadReference> {
    resolve_in(base, reference, UTF_8)
}

/// As [`resolve`], for a document in `encoding`: the query is written in it, the rest always in UTF-8.
pub(crate) fn resolve_in(
    base: &Uri,
    reference: &str,
    encoding: &'static Encoding,
) -> Result<Uri, BadReference> {
    if reference.len() > MAX_REFERENCE {
        return Err(BadReference::TooLong);
    }
    let base = Base::of(base).ok_or(BadReference::Base)?;
    let cleaned = clean(reference);
    let written = absolute(&base, &cleaned, encoding)?;
    if written.len() > MAX_REFERENCE {
        return Err(BadReference::TooLong);
    }
    // What is left to go wrong is a host that the URL Standard allows and http does not.
    Uri::try_from(written).map_err(|_| BadReference::Host)
}

/// The parts of a base that references take over.
struct Base<'a> {
    scheme: &'static str,
    authority: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Base<'a> {
    fn of(uri: &'a Uri) -> Option<Self> {
        let scheme = web_scheme(uri.scheme_str()?)?;
        let authority = uri.authority()?.as_str();
        Some(Self {
            scheme,
            authority,
            path: uri.path(),
            query: uri.query(),
        })
    }
}

fn web_scheme(scheme: &str) -> Option<&'static str> {
    ["https", "http"]
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(scheme))
}

/// Without C0 controls and spaces around it, without tabs and line ends in it, without its fragment.
fn clean(reference: &str) -> std::borrow::Cow<'_, str> {
    let trimmed = reference.trim_matches(|c: char| c <= ' ');
    let trimmed = trimmed
        .split_once('#')
        .map_or(trimmed, |(before, _)| before);
    if trimmed.contains(['\t', '\n', '\r']) {
        trimmed.replace(['\t', '\n', '\r'], "").into()
    } else {
        trimmed.into()
    }
}

fn absolute(
    base: &Base<'_>,
    reference: &str,
    encoding: &'static Encoding,
) -> Result<String, BadReference> {
    let (scheme, rest) = match split_scheme(reference) {
        Some((scheme, rest)) => (Some(web_scheme(scheme).ok_or(BadReference::Scheme)?), rest),
        None => (None, reference),
    };
    let after_slashes = rest.trim_start_matches(['/', '\\']);
    let slashes = rest.len() - after_slashes.len();

    // `https:path` keeps the base's host when the scheme is the base's own, and names a host when it is not.
    let other_scheme = scheme.filter(|scheme| *scheme != base.scheme);
    let mut out = String::with_capacity(base.authority.len() + reference.len() + 24);
    if other_scheme.is_some() || slashes >= 2 {
        let scheme = other_scheme.unwrap_or(base.scheme);
        out.push_str(scheme);
        out.push_str("://");
        let end = after_slashes
            .find(['/', '\\', '?'])
            .unwrap_or(after_slashes.len());
        let (authority, rest) = after_slashes.split_at(end);
        write_authority(&mut out, scheme, authority)?;
        let (path, query) = split_query(rest);
        write_path(&mut out, &[path]);
        write_query(&mut out, query, encoding);
        return Ok(out);
    }

    out.push_str(base.scheme);
    out.push_str("://");
    write_authority(&mut out, base.scheme, base.authority)?;
    let (path, query) = split_query(rest);
    if path.is_empty() {
        write_path(&mut out, &[base.path]);
        // The base's query is encoded already.
        write_query(
            &mut out,
            query.or(base.query),
            if query.is_some() { encoding } else { UTF_8 },
        );
    } else {
        let directory = if slashes > 0 {
            ""
        } else {
            let end = base.path.rfind('/').map_or(0, |slash| slash + 1);
            &base.path[..end]
        };
        write_path(&mut out, &[directory, path]);
        write_query(&mut out, query, encoding);
    }
    Ok(out)
}

/// `scheme:` in front, if what stands before the first colon is one.
fn split_scheme(reference: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = reference.split_once(':')?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    valid.then_some((scheme, rest))
}

fn split_query(rest: &str) -> (&str, Option<&str>) {
    match rest.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (rest, None),
    }
}

/// Host and port without user name and password: a page cannot hand us credentials.
fn write_authority(out: &mut String, scheme: &str, authority: &str) -> Result<(), BadReference> {
    let host_port = authority.rsplit('@').next().unwrap_or(authority);
    let port_at = match host_port.rfind(':') {
        // A colon inside the brackets of an IPv6 address is no port.
        Some(colon) if host_port[colon..].contains(']') => None,
        other => other,
    };
    let (host, port) = match port_at {
        Some(colon) => (&host_port[..colon], &host_port[colon + 1..]),
        None => (host_port, ""),
    };
    host::write(out, host)?;
    if port.is_empty() {
        return Ok(());
    }
    if !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(BadReference::Port);
    }
    let port: u16 = port.trim_start_matches('0').parse().or_else(|_| {
        if port.bytes().all(|b| b == b'0') {
            Ok(0)
        } else {
            Err(BadReference::Port)
        }
    })?;
    if port != if scheme == "https" { 443 } else { 80 } {
        out.push(':');
        out.push_str(&port.to_string());
    }
    Ok(())
}

/// Writes the path that the parts make together, dot segments removed and bytes encoded.
fn write_path(out: &mut String, parts: &[&str]) {
    let root = out.len();
    let is_slash = |c: char| c == '/' || c == '\\';
    let last = parts.len() - 1;
    // `directory` parts end in a slash, so each part is a whole number of segments but for the last one.
    for (at, part) in parts.iter().enumerate() {
        let part = part.strip_prefix(is_slash).unwrap_or(part);
        let whole = if at < last {
            part.strip_suffix(is_slash)
        } else {
            Some(part)
        };
        let Some(whole) = whole else { continue };
        let mut segments = whole.split(is_slash).peekable();
        while let Some(segment) = segments.next() {
            let ends = at == last && segments.peek().is_none();
            match dots(segment) {
                2 => {
                    let parent = out[root..].rfind('/').map_or(root, |slash| root + slash);
                    out.truncate(parent);
                    if ends {
                        out.push('/');
                    }
                }
                1 => {
                    if ends {
                        out.push('/');
                    }
                }
                _ => {
                    out.push('/');
                    encode(out, segment.as_bytes(), in_path);
                }
            }
        }
    }
    if out.len() == root {
        out.push('/');
    }
}

/// How many dots a segment stands for when it stands for nothing else.
fn dots(segment: &str) -> usize {
    let mut rest = segment.as_bytes();
    let mut count = 0;
    while !rest.is_empty() {
        rest = match rest {
            [b'.', rest @ ..] => rest,
            [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return 0,
        };
        count += 1;
        if count > 2 {
            return 0;
        }
    }
    count
}

fn write_query(out: &mut String, query: Option<&str>, encoding: &'static Encoding) {
    let Some(query) = query else { return };
    out.push('?');
    if encoding.output_encoding() == UTF_8 || query.is_ascii() {
        encode(out, query.as_bytes(), in_query);
        return;
    }
    // Character by character, since a character that the encoding lacks becomes `%26%23…%3B`, ampersand included,
    // while an ampersand of the query stays one. (Whole-string encoding could not tell the two apart.)
    let mut buffer = [0; 4];
    for c in query.chars() {
        let (bytes, _, lacking) = encoding.encode(c.encode_utf8(&mut buffer));
        if lacking {
            out.push_str("%26%23");
            out.push_str(&u32::from(c).to_string());
            out.push_str("%3B");
        } else {
            encode(out, &bytes, in_query);
        }
    }
}

/// Whether the byte is percent-encoded in a path.
fn in_path(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'"' | b'#' | b'<' | b'>' | b'?' | b'^' | b'`' | b'{' | b'}'
    )
}

/// Whether the byte is percent-encoded in the query of an http URI.
fn in_query(byte: u8) -> bool {
    matches!(byte, b' ' | b'"' | b'#' | b'<' | b'>' | b'\'')
}

fn encode(out: &mut String, bytes: &[u8], special: fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if byte.is_ascii_graphic() && !special(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(base: &str, reference: &str) -> Result<String, BadReference> {
        resolve(&base.parse().unwrap(), reference).map(|uri| uri.to_string())
    }

    /// What the `url` crate makes of it, in the form that a request carries, its two deviations from the standard set
    /// right: it takes `///host` for an empty host, and leaves `^` in a path as it is.
    fn oracle(base: &str, reference: &str) -> Option<String> {
        let base = url::Url::parse(base).ok()?;
        // The hash keeps a space before it from being at the end.
        let mut reference = format!("{}#", clean(reference));
        let (prefix, rest) = match split_scheme(&reference) {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case(base.scheme()) => {
                (&reference[..=scheme.len()], rest)
            }
            _ => ("", reference.as_str()),
        };
        let after = rest.trim_start_matches(['/', '\\']);
        if rest.len() - after.len() > 2 {
            reference = format!("{prefix}//{after}");
        }
        let mut url = base.join(&reference).ok()?;
        let path = url.path().replace('^', "%5E");
        url.set_path(&path);
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        url.set_fragment(None);
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
        url.as_str().parse::<Uri>().ok().map(|uri| uri.to_string())
    }

    const BASES: &[&str] = &[
        "https://www.example.com/",
        "https://www.example.com/a/b/c?d=e",
        "http://example.com:8080/a/",
        "http://example.com/a//b/../c",
    ];

    #[test]
    fn real_references_agree_with_the_standard() {
        let references = [
            "",
            " ",
            "x",
            "/x",
            "./x",
            "../x",
            "../../../x",
            "..",
            ".",
            "./",
            "../",
            "a/./b/../c/.",
            "a/..",
            "%2e%2E/x",
            "%2e",
            ".%2e/",
            "...",
            "//cdn.example/x",
            "//cdn.example",
            "///cdn.example/x",
            "\\\\cdn.example\\x",
            "/\\cdn.example",
            "\\x\\y",
            "a\\b",
            "?q",
            "?",
            "?q=a b'c\"<>`{}|^[]\\",
            "#f",
            "x?y#z",
            "x#y?z",
            "a b",
            "  a  b  ",
            "a\tb\nc\rd",
            "java\nscript:x",
            "ht\ntps://other.example/",
            "http:x",
            "https:x",
            "http:/blog/feed",
            "https:/blog/feed",
            "http://",
            "https://",
            "https:",
            "http:///x.example/y",
            "HTTPS://EXAMPLE.COM/A",
            "http://example.com:80/",
            "https://example.com:443/",
            "https://example.com:0443/",
            "https://example.com:/",
            "https://example.com:0/",
            "https://example.com:00/",
            "https://example.com:65535/",
            "https://example.com:65536/",
            "https://example.com:x/",
            "https://user:pw@example.com/",
            "https://a@b@example.com/x@y",
            "https://example.com./",
            "https://ex%61mple.com/",
            "https://exa mple.com/",
            "https://exa%20mple.com/",
            "https://example.com%2f.evil.example/",
            "https://[::1]/",
            "https://[::1]:8443/",
            "https://[2001:DB8::0:1]/",
            "https://[::ffff:1.2.3.4]/",
            "https://[::1/",
            "https://1.2.3.4/",
            "https://0x7f.1/",
            "https://017700000001/",
            "https://2130706433/",
            "https://256.1.1.1/",
            "https://1.2.3.4.5/",
            "https://1.2.3.4./",
            "https://1.2.3.08/",
            "https://4294967296/",
            "https://0x/",
            "https://a.0x1g/",
            "https://under_score.example/",
            "https://bücher.example/",
            "https://BÜCHER.example/",
            "https://пример.example/ä?ö",
            "https://例え。テスト/",
            "/ä/ö?ü=ß#é",
            "/%zz/%",
            "/a%2Fb",
            "mailto:a@b",
            "javascript:void(0)",
            "data:text/html,x",
            "tel:+1",
            "ftp://example.com/",
            "1http:x",
            "a:b",
            "./a:b",
            ":x",
            "/;p=1,2!$&'()*+",
            "/\u{1}\u{7f}",
            "/a|b^c`d{e}",
        ];
        for base in BASES {
            for reference in references {
                assert_eq!(
                    of(base, reference).ok(),
                    oracle(base, reference),
                    "{reference:?} at {base}"
                );
            }
        }
    }

    #[test]
    fn user_name_password_and_fragment_never_stay() {
        assert_eq!(
            of("https://u:p@www.example.com/x", "y#z").unwrap(),
            "https://www.example.com/y"
        );
    }

    #[test]
    fn a_reference_without_end_is_refused() {
        let long = "a".repeat(MAX_REFERENCE + 1);
        assert_eq!(of(BASES[0], &long), Err(BadReference::TooLong));
        let grows = "ä".repeat(MAX_REFERENCE / 2);
        assert_eq!(of(BASES[0], &grows), Err(BadReference::TooLong));
    }

    #[test]
    fn a_base_must_be_absolute() {
        let base = Uri::from_static("/x");
        assert_eq!(resolve(&base, "y"), Err(BadReference::Base));
    }

    #[test]
    fn the_query_is_in_the_encoding_of_the_document() {
        let base = "https://www.example.com/".parse().unwrap();
        let resolved = resolve_in(&base, "ä?q=ä&x=\u{4e00}", encoding_rs::WINDOWS_1252).unwrap();
        assert_eq!(
            resolved,
            "https://www.example.com/%C3%A4?q=%E4&x=%26%2319968%3B"
        );
    }

    #[test]
    fn each_plain_letter_of_a_host_is_what_the_tables_say() {
        let mut known = 0;
        for c in ('\u{80}'..='\u{FFFF}').filter(|c| !c.is_ascii()) {
            let reference = format!("https://a{c}b.example/");
            if let Ok(ours) = of(BASES[0], &reference) {
                assert_eq!(Some(ours), oracle(BASES[0], &reference), "{c:?}");
                known += 1;
            }
        }
        assert!(known > 30_000, "only {known} letters are known");
    }

    proptest! {
        /// Whatever we resolve is what the standard resolves; what only the standard resolves is a host we leave out.
        #[test]
        fn agrees_with_the_standard(
            base in proptest::sample::select(BASES),
            reference in r#"(http:|https:|HTTP:|)[/\\]{0,3}[a-z0-9:@.%/\\?#ä \[\]|"'<>^`{}_-]{0,24}"#,
        ) {
            match (of(base, &reference), oracle(base, &reference)) {
                (Ok(ours), theirs) => prop_assert_eq!(Some(ours), theirs),
                (Err(BadReference::Host), _) => {}
                (Err(_), theirs) => prop_assert_eq!(None, theirs),
            }
        }

        #[test]
        fn no_text_panics(base in proptest::sample::select(BASES), reference in ".{0,60}") {
            let _ = of(base, &reference);
        }
    }
}
