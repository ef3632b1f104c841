//! Media types and ranges as they stand in fields (RFC 9110, 8.3.1 and 12.5.1).

/// A media type or range in lower case, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MediaType {
    pub(super) kind: String,
    pub(super) subtype: String,
    /// Names in lower case, values as written but without quotes.
    pub(super) parameters: Vec<(String, String)>,
}

impl MediaType {
    /// Reads `type/subtype` and the parameters behind it. Parameters that are none are skipped if `lenient`, as
    /// recipients of Content-Type do; otherwise they make the whole unreadable.
    pub(super) fn read(text: &str, lenient: bool) -> Option<Self> {
        let mut parts = split_unquoted(text, b';');
        let essence = parts.next()?.trim_matches([' ', '\t']);
        let (kind, subtype) = essence.split_once('/')?;
        if !is_token(kind) || !is_token(subtype) || (kind == "*" && subtype != "*") {
            return None;
        }
        let mut parameters = Vec::new();
        for part in parts {
            let part = part.trim_matches([' ', '\t']);
            match parameter(part) {
                Some(parameter) => parameters.push(parameter),
                None if lenient || part.is_empty() => {}
                None => return None,
            }
        }
        Some(Self {
            kind: kind.to_ascii_lowercase(),
            subtype: subtype.to_ascii_lowercase(),
            parameters,
        })
    }

    /// How specifically this range matches `other`, the more the higher; `None` if it does not match.
    pub(super) fn matches(&self, other: &Self) -> Option<usize> {
        let specific = match (self.kind.as_str(), self.subtype.as_str()) {
            ("*", _) => 0,
            (kind, "*") if kind == other.kind => 1,
            (kind, subtype) if kind == other.kind && subtype == other.subtype => 2,
            _ => return None,
        };
        let has = |(name, value): &(String, String)| {
            other
                .parameters
                .iter()
                .any(|(n, v)| n == name && v.eq_ignore_ascii_case(value))
        };
        self.parameters
            .iter()
            .all(has)
            .then_some(specific + self.parameters.len())
    }
}

fn parameter(text: &str) -> Option<(String, String)> {
    let (name, value) = text.split_once('=')?;
    if !is_token(name) {
        return None;
    }
    let value = match value.strip_prefix('"') {
        Some(quoted) => unquote(quoted)?,
        None if is_token(value) => value.to_owned(),
        None => return None,
    };
    Some((name.to_ascii_lowercase(), value))
}

/// The content of a quoted string whose opening quote has been read.
fn unquote(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '"' => break characters.next().is_none().then_some(value),
            '\\' => value.push(characters.next()?),
            other => value.push(other),
        }
    }
}

pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Splits at `separator` outside of quoted strings.
pub(super) fn split_unquoted(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut quoted = false;
        let mut escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                _ if byte == separator && !quoted => {
                    rest = Some(&text[at + 1..]);
                    return Some(&text[..at]);
                }
                _ => {}
            }
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_types() {
        let read = MediaType::read("Text/HTML ; Charset=\"a;\\\"b\"", false).unwrap();
        assert_eq!(
            (read.kind.as_str(), read.subtype.as_str()),
            ("text", "html")
        );
        assert_eq!(read.parameters, [("charset".into(), "a;\"b".into())]);
        for bad in [
            "",
            "html",
            "text/",
            "/html",
            "*/html",
            "text/html, text/css",
            "te xt/html",
        ] {
            assert_eq!(MediaType::read(bad, true), None, "{bad}");
        }
        for odd in ["text/html; charset", "text/html; =x", "text/html; a=\"b"] {
            assert_eq!(MediaType::read(odd, false), None, "{odd}");
            assert!(MediaType::read(odd, true).is_some(), "{odd}");
        }
    }
}
