use http::HeaderValue;

use super::judge::weight_of;
use super::media_type::MediaType;

/// How many bytes of a body are looked at.
pub const SNIFF_LIMIT: usize = 512;

/// Whether a body that starts with `bytes` may be one of the types in `accept`. Only the first 512 count.
///
/// Nothing that was asked for is refused on a guess: text is taken for any textual type, XML of an unknown vocabulary
/// for any XML. An empty body fits whatever was asked for.
#[must_use]
pub fn sniff(accept: &HeaderValue, bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(SNIFF_LIMIT)];
    bytes.trim_ascii().is_empty()
        || candidates(bytes).iter().any(|candidate| {
            MediaType::read(candidate, true)
                .and_then(|candidate| weight_of(accept, &candidate))
                .is_some_and(|weight| weight > 0)
        })
}

const FEED_XML: &[&str] = &["application/xml", "text/xml"];
const HTML: &[&str] = &["text/html"];
const XHTML: &[&str] = &[
    "application/xhtml+xml",
    "text/html",
    "application/xml",
    "text/xml",
];
const XML: &[&str] = &[
    "application/xml",
    "text/xml",
    "application/atom+xml",
    "application/rss+xml",
    "application/rdf+xml",
    "application/xhtml+xml",
    "image/svg+xml",
];
const JSON: &[&str] = &[
    "application/json",
    "application/feed+json",
    "application/problem+json",
    "application/linkset+json",
    "application/ld+json",
    "application/vnd.oai.openapi+json",
];
const TEXT: &[&str] = &[
    "text/plain",
    "text/markdown",
    "text/csv",
    "text/css",
    "text/calendar",
    "text/javascript",
    "application/yaml",
    "application/javascript",
    "application/linkset",
    "application/vnd.oai.openapi",
];

/// Magic numbers of what a client that asks for text does not want.
const MAGIC: &[(&[u8], &[&str])] = &[
    (b"%PDF-", &["application/pdf"]),
    (b"\x89PNG\r\n\x1a\n", &["image/png"]),
    (b"\xff\xd8\xff", &["image/jpeg"]),
    (b"GIF8", &["image/gif"]),
    (b"\x1f\x8b", &["application/gzip", "application/x-gzip"]),
    (b"PK\x03\x04", &["application/zip"]),
    (b"OggS", &["audio/ogg", "video/ogg", "application/ogg"]),
    (b"ID3", &["audio/mpeg"]),
];

/// The types that a body may have.
fn candidates(bytes: &[u8]) -> Vec<&'static str> {
    for (magic, types) in MAGIC {
        if bytes.starts_with(magic) {
            return types.to_vec();
        }
    }
    // UTF-16 of either order: read every second byte, which is enough for markup.
    let narrow: Vec<u8> = match bytes {
        [0xff, 0xfe, rest @ ..] => rest.iter().step_by(2).copied().collect(),
        [0xfe, 0xff, rest @ ..] => rest.iter().skip(1).step_by(2).copied().collect(),
        [0xef, 0xbb, 0xbf, rest @ ..] => rest.to_vec(),
        _ => bytes.to_vec(),
    };
    let text = narrow.trim_ascii_start().to_ascii_lowercase();
    match text.first() {
        Some(b'<') => markup(&text),
        Some(b'{') => JSON.to_vec(),
        // A JSON array, or markdown that starts with a link.
        Some(b'[') => [JSON, TEXT].concat(),
        _ if is_binary(&text) => vec!["application/octet-stream"],
        _ => TEXT.to_vec(),
    }
}

fn is_binary(text: &[u8]) -> bool {
    text.iter()
        .any(|byte| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
}

/// The types of a text that starts with `<`, by its first element.
fn markup(text: &[u8]) -> Vec<&'static str> {
    let declared_xml = text.starts_with(b"<?xml");
    let mut rest = text;
    let name = loop {
        rest = rest.trim_ascii_start();
        let (skipped, end): (bool, &[u8]) = match rest {
            [b'<', b'?', ..] => (true, b"?>"),
            [b'<', b'!', b'-', b'-', ..] => (true, b"-->"),
            [b'<', b'!', ..] if rest.starts_with(b"<!doctype html") => break &b"html"[..],
            [b'<', b'!', ..] => (true, b">"),
            _ => (false, b""),
        };
        if !skipped {
            break element(rest);
        }
        match rest.windows(end.len()).position(|window| window == end) {
            Some(at) => rest = &rest[at + end.len()..],
            // Longer than what is looked at.
            None => break b"",
        }
    };
    let xml_feed = |own: &'static str| [&[own], FEED_XML].concat();
    let local = name.rsplit(|&byte| byte == b':').next().unwrap_or(name);
    match local {
        b"rss" => xml_feed("application/rss+xml"),
        b"feed" => xml_feed("application/atom+xml"),
        // RSS 1.0 is RDF and goes by either name.
        b"rdf" => [&["application/rdf+xml", "application/rss+xml"], FEED_XML].concat(),
        b"urlset" | b"sitemapindex" | b"opml" | b"opensearchdescription" => FEED_XML.to_vec(),
        b"svg" => xml_feed("image/svg+xml"),
        b"html" if declared_xml => XHTML.to_vec(),
        b"html" => [HTML, &["application/xhtml+xml"]].concat(),
        _ if declared_xml => XML.to_vec(),
        b"head" | b"body" | b"script" | b"title" | b"meta" | b"link" | b"style" | b"div" | b"p"
        | b"h1" | b"table" | b"a" | b"br" | b"img" | b"iframe" | b"center" | b"font" | b"span"
        | b"main" | b"header" | b"nav" => [HTML, &["text/markdown"]].concat(),
        _ => [HTML, XML, TEXT].concat(),
    }
}

/// The name of the element that `text` starts with.
fn element(text: &[u8]) -> &[u8] {
    let name = text.strip_prefix(b"<").unwrap_or_default();
    let end = name.iter().position(|byte| {
        !(byte.is_ascii_alphanumeric() || matches!(byte, b':' | b'-' | b'_' | b'.'))
    });
    &name[..end.unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::super::{Accept, Preset};
    use super::*;

    #[test]
    fn first_bytes() {
        let feed = Accept::preset(Preset::Feed);
        let page = Accept::preset(Preset::Page);
        let sitemap = Accept::preset(Preset::Sitemap);
        for (accept, bytes, fits) in [
            (
                &feed,
                &b"<?xml version='1.0'?>\n<!-- x --><rss version='2.0'>"[..],
                true,
            ),
            (
                &feed,
                b"\xef\xbb\xbf  <feed xmlns='http://www.w3.org/2005/Atom'>",
                true,
            ),
            (&feed, b"<rdf:RDF xmlns:rdf='x'>", true),
            (&feed, b"\xff\xfe<\0?\0x\0m\0l\0?\0>\0<\0r\0s\0s\0>\0", true),
            (
                &feed,
                b"{\"version\": \"https://jsonfeed.org/version/1.1\"",
                true,
            ),
            (&feed, b"<!DOCTYPE html><html>", false),
            (&feed, b"<p>Not found", false),
            (&feed, b"%PDF-1.7", false),
            (&feed, b"plain words", false),
            (&feed, b"", true),
            (&page, b"<!-- hello --><!doctype HTML>", true),
            (&page, b"\0\x01\x02", false),
            (
                &page,
                b"<!-- a comment that is longer than what is looked at",
                true,
            ),
            (&sitemap, b"\x1f\x8b\x08\0", true),
            (&sitemap, b"https://site.example/a\n", true),
            (&sitemap, b"<urlset>", true),
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(sniff(accept.header(), bytes), fits, "{shown}");
        }
    }

    #[test]
    fn what_lies_beyond_the_limit_does_not_count() {
        let mut bytes = vec![b' '; SNIFF_LIMIT];
        bytes.extend_from_slice(b"\0");
        assert!(sniff(Accept::preset(Preset::Page).header(), &bytes));
    }
}
