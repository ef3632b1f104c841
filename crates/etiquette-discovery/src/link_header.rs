//! `Link` fields (RFC 8288).
//!
//! # Flow
//! [`parse`] takes the lines of the field and gives each link with its target as written; resolving against the URI of
//! the response is [`from_link_header`](crate::from_link_header)'s business.
//!
//! # Scope
//! Lenient as RFC 8288, Appendix B.3 has it: what is no link is skipped up to the next comma. Of a parameter that comes
//! twice the first counts. `title*` (RFC 8187) comes before `title`.
//!
//! # Bounds
//! At most 64 KiB of a field and [`MAX_LINKS`] links are read; linear in their length.

use std::borrow::Cow;

use encoding_rs::Encoding;
use percent_encoding::percent_decode_str;

/// Links beyond this many in one response are not read.
pub const MAX_LINKS: usize = 256;

const MAX_BYTES: usize = 64 * 1024;

/// One link of a `Link` field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkValue {
    /// The target as written.
    pub target: String,
    /// The relations in lower case, separated by spaces; empty without any.
    pub rel: String,
    /// The resource that the link is about, as written; none means the response's own.
    pub anchor: Option<String>,
    /// The media type of the target, as written.
    pub media_type: Option<String>,
    /// The language of the target.
    pub hreflang: Option<String>,
    /// A name for people.
    pub title: Option<String>,
}

impl LinkValue {
    /// Whether this is one of its relations; `token` in lower case.
    #[must_use]
    pub fn has_rel(&self, token: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|one| one == token)
    }
}

/// Reads all lines of the field, in order. Bytes that are no UTF-8 are read as if they were Latin-1.
pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Vec<LinkValue> {
    let mut links = Vec::new();
    let mut left = MAX_BYTES;
    for line in lines {
        let line = &line[..line.len().min(left)];
        left -= line.len();
        let text = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
        };
        let mut rest = Scan(&text);
        while !rest.0.is_empty() && links.len() < MAX_LINKS {
            links.extend(rest.link());
        }
    }
    links
}

struct Scan<'a>(&'a str);

impl<'a> Scan<'a> {
    /// The next link, after which the scan stands behind its comma.
    fn link(&mut self) -> Option<LinkValue> {
        self.white_space();
        let Some(rest) = self.0.strip_prefix('<') else {
            self.skip_to(&[',']);
            self.comma();
            return None;
        };
        let Some((target, rest)) = rest.split_once('>') else {
            self.0 = "";
            return None;
        };
        self.0 = rest;
        let mut link = LinkValue {
            target: target.trim().to_owned(),
            ..LinkValue::default()
        };
        let mut seen_rel = false;
        let mut title_is_final = false;
        loop {
            self.skip_to(&[';', ',']);
            if self.comma() || self.0.is_empty() {
                return Some(link);
            }
            self.0 = &self.0[1..];
            let Some((name, value)) = self.parameter() else {
                continue;
            };
            match &*name.to_ascii_lowercase() {
                "rel" if !seen_rel => {
                    seen_rel = true;
                    link.rel = value.to_ascii_lowercase();
                }
                "anchor" if link.anchor.is_none() => link.anchor = Some(value.into_owned()),
                "type" if link.media_type.is_none() => link.media_type = Some(value.into_owned()),
                "hreflang" if link.hreflang.is_none() => link.hreflang = Some(value.into_owned()),
                "title*" if !title_is_final => {
                    if let Some(title) = extended(&value) {
                        link.title = Some(title);
                        title_is_final = true;
                    }
                }
                "title" if link.title.is_none() => link.title = Some(value.into_owned()),
                _ => {}
            }
        }
    }

    /// A parameter's name and value; the value is empty where there is none.
    fn parameter(&mut self) -> Option<(&'a str, Cow<'a, str>)> {
        self.white_space();
        let end = self
            .0
            .find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | ';' | ','))
            .unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(end);
        self.0 = rest;
        self.white_space();
        let Some(rest) = self.0.strip_prefix('=') else {
            return (!name.is_empty()).then_some((name, Cow::Borrowed("")));
        };
        self.0 = rest;
        self.white_space();
        let value = match self.0.strip_prefix('"') {
            Some(rest) => self.quoted(rest),
            None => {
                let end = self.0.find([';', ',']).unwrap_or(self.0.len());
                let (value, rest) = self.0.split_at(end);
                self.0 = rest;
                Cow::Borrowed(value.trim_end())
            }
        };
        (!name.is_empty()).then_some((name, value))
    }

    /// A quoted string, up to its closing quote or the end.
    fn quoted(&mut self, rest: &'a str) -> Cow<'a, str> {
        let Some(end) = rest.find(['"', '\\']) else {
            self.0 = "";
            return Cow::Borrowed(rest);
        };
        if rest[end..].starts_with('"') {
            self.0 = &rest[end + 1..];
            return Cow::Borrowed(&rest[..end]);
        }
        let mut value = String::new();
        let mut chars = rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => value.extend(chars.next()),
                _ => value.push(c),
            }
        }
        self.0 = chars.as_str();
        Cow::Owned(value)
    }

    fn white_space(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// Goes on to one of these, which are not inside quotes.
    fn skip_to(&mut self, stops: &[char]) {
        loop {
            let at = self
                .0
                .find(|c| c == '"' || stops.contains(&c))
                .unwrap_or(self.0.len());
            self.0 = &self.0[at..];
            let Some(rest) = self.0.strip_prefix('"') else {
                return;
            };
            self.quoted(rest);
        }
    }

    fn comma(&mut self) -> bool {
        match self.0.strip_prefix(',') {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }
}

/// `UTF-8'en'%e2%82%ac` (RFC 8187).
fn extended(value: &str) -> Option<String> {
    let mut parts = value.splitn(3, '\'');
    let encoding = Encoding::for_label(parts.next()?.as_bytes())?;
    let encoded = parts.nth(1)?;
    let is_pair = |after: &str| {
        let pair = after.as_bytes().get(..2);
        pair.is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit))
    };
    // The library lets a stray percent sign pass; here it spoils the value.
    if !encoded.split('%').skip(1).all(is_pair) {
        return None;
    }
    let bytes: Cow<'_, [u8]> = percent_decode_str(encoded).into();
    let (text, bad) = encoding.decode_without_bom_handling(&bytes);
    (!bad).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(line: &str) -> LinkValue {
        let mut links = parse([line.as_bytes()]);
        assert_eq!(links.len(), 1, "{line}");
        links.remove(0)
    }

    #[test]
    fn several_links_on_several_lines() {
        let links = parse([
            &b"</a>; rel=alternate; type=\"x/y\", <b,c;d>;rel=\"Next PREV\""[..],
            b",,  </e>",
        ]);
        let targets: Vec<_> = links.iter().map(|link| &*link.target).collect();
        assert_eq!(targets, ["/a", "b,c;d", "/e"]);
        assert!(links[1].has_rel("next") && links[1].has_rel("prev"));
        assert_eq!(links[2].rel, "");
    }

    #[test]
    fn quotes_hide_what_separates() {
        let link = one(r#"</a>; title="x, <y>; rel=\"z\""; REL = feed ; type=a/b;c"#);
        assert_eq!(link.title.as_deref(), Some(r#"x, <y>; rel="z""#));
        assert_eq!(link.rel, "feed");
        assert_eq!(link.media_type.as_deref(), Some("a/b"));
    }

    #[test]
    fn the_first_of_a_parameter_counts() {
        let link = one("</a>; rel=first; rel=second; anchor=\"#x\"; anchor=y");
        assert_eq!(link.rel, "first");
        assert_eq!(link.anchor.as_deref(), Some("#x"));
    }

    #[test]
    fn extended_titles_come_first() {
        let link = one("</a>; title=\"plain\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel");
        assert_eq!(link.title.as_deref(), Some("nächstes Kapitel"));
        assert_eq!(
            one("</a>; title=plain; title*=nothing").title.as_deref(),
            Some("plain")
        );
    }

    #[test]
    fn what_is_no_link_costs_itself_only() {
        let links = parse([&b"nonsense \"a, <b>\", <ok>; rel=x, <never closed"[..]]);
        let targets: Vec<_> = links.iter().map(|link| &*link.target).collect();
        assert_eq!(targets, ["ok"]);
    }

    #[test]
    fn no_more_than_the_bounds() {
        let line = "<a>,".repeat(100_000);
        assert_eq!(parse([line.as_bytes()]).len(), MAX_LINKS);
    }

    proptest! {
        #[test]
        fn nothing_panics(line in r#"[<>a";,=\\ '%*é-]{0,60}"#) {
            let _ = parse([line.as_bytes()]);
        }
    }
}
