//! The grammar of User-Agent (RFC 9110, 10.1.5 and 5.6.5) and the words in it.

/// Whether `byte` may stand in an RFC 9110 token.
pub(super) fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether `text` is one `name` or `name/version`.
pub(super) fn is_product(text: &str) -> bool {
    let is_token = |part: &str| !part.is_empty() && part.bytes().all(is_tchar);
    match text.split_once('/') {
        Some((name, version)) => is_token(name) && is_token(version),
        None => is_token(text),
    }
}

/// Whether `text` is `product *( RWS ( product / comment ) )`. Linear, whatever the nesting.
pub(super) fn is_user_agent(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let mut first = true;
    loop {
        rest = if !first && rest.first() == Some(&b'(') {
            match comment_end(rest) {
                Some(end) => &rest[end..],
                None => return false,
            }
        } else {
            let end = rest
                .iter()
                .position(|&byte| matches!(byte, b' ' | b'\t'))
                .unwrap_or(rest.len());
            let Ok(word) = std::str::from_utf8(&rest[..end]) else {
                return false;
            };
            if !is_product(word) {
                return false;
            }
            &rest[end..]
        };
        first = false;
        if rest.is_empty() {
            return true;
        }
        let blanks = rest
            .iter()
            .take_while(|&&byte| matches!(byte, b' ' | b'\t'))
            .count();
        if blanks == 0 {
            return false;
        }
        rest = &rest[blanks..];
    }
}

/// Where the comment that opens at the start of `text` ends, nested comments and quoted pairs included.
fn comment_end(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quoted = false;
    for (at, &byte) in text.iter().enumerate() {
        if quoted {
            quoted = false;
            continue;
        }
        match byte {
            b'\\' => quoted = true,
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A word of a User-Agent value: what stands between blanks, parentheses, commas and semicolons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// The word as written.
    pub(super) text: &'a str,
    /// Whether it stands inside of a comment.
    pub(super) in_comment: bool,
}

impl<'a> Word<'a> {
    /// What stands before the first slash.
    pub(super) fn name(&self) -> &'a str {
        self.text.split('/').next().unwrap_or(self.text)
    }

    /// Whether something stands behind a slash.
    pub(super) fn has_version(&self) -> bool {
        self.text.len() > self.name().len() + 1
    }

    /// Whether it is a link.
    pub(super) fn is_link(&self) -> bool {
        link_start(self.text).is_some()
    }
}

/// The words of a value, in order. Works on any text, grammatical or not.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut depth = 0_usize;
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let (at, byte) = rest
                .bytes()
                .enumerate()
                .find(|(_, byte)| matches!(byte, b' ' | b'\t' | b'(' | b')' | b';' | b','))
                .unwrap_or((rest.len(), b' '));
            let word = Word {
                text: &rest[..at],
                in_comment: depth > 0,
            };
            let ended = rest.is_empty();
            rest = rest.get(at + 1..).unwrap_or("");
            match byte {
                b'(' => depth += 1,
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if !word.text.is_empty() {
                return Some(word);
            }
            if ended {
                return None;
            }
        }
    })
}

/// Where an `http` or `https` link with a host starts in `text`.
pub(super) fn link_start(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    ["http://", "https://"]
        .into_iter()
        .filter_map(|scheme| {
            lower.match_indices(scheme).find_map(|(at, _)| {
                let host = lower.as_bytes().get(at + scheme.len())?;
                (host.is_ascii_alphanumeric() || *host == b'[').then_some(at)
            })
        })
        .min()
}

/// The first link in `text`, up to what cannot belong to it.
pub(super) fn link(text: &str) -> Option<&str> {
    let link = &text[link_start(text)?..];
    let end = link.bytes().position(|byte| {
        byte.is_ascii_whitespace() || matches!(byte, b'(' | b')' | b';' | b',' | b'"' | b'<' | b'>')
    });
    Some(&link[..end.unwrap_or(link.len())])
}

/// Where `token` stands in `text` as a word of its own, byte for byte: the bytes beside it belong to no name.
pub(super) fn delimited(text: &str, token: &str) -> Option<usize> {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let bytes = text.as_bytes();
    text.match_indices(token).map(|(at, _)| at).find(|&at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + token.len());
        !before.is_some_and(in_name) && !after.is_some_and(in_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar() {
        for good in [
            "a",
            "a/1",
            "a/1 b/2",
            "a (x)",
            "a  (x (y) \\) z) b",
            "a\t(;,:\")",
        ] {
            assert!(is_user_agent(good), "{good}");
        }
        for bad in [
            "", " a", "a ", "(x)", "a(x)", "a (x", "a (x\\)", "a/", "a/1/2", "a; (x)", "a (x))",
        ] {
            assert!(!is_user_agent(bad), "{bad}");
        }
        let deep = format!("a {}{}", "(".repeat(100_000), ")".repeat(100_000));
        assert!(is_user_agent(&deep));
    }

    #[test]
    fn words_know_whether_they_stand_in_a_comment() {
        let found: Vec<_> = words("A/1 (b; c/2, (d)) e")
            .map(|word| (word.text, word.in_comment))
            .collect();
        assert_eq!(
            found,
            [
                ("A/1", false),
                ("b", true),
                ("c/2", true),
                ("d", true),
                ("e", false)
            ]
        );
    }

    #[test]
    fn links() {
        assert_eq!(
            link("A (+HTTPS://x.example/a; b)"),
            Some("HTTPS://x.example/a")
        );
        assert_eq!(link("A (https://; http://h)"), Some("http://h"));
        assert_eq!(link("A (+bot@example.com)"), None);
    }
}
