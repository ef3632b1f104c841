//! Bytes into records, line by line (RFC 9309, 2.2). Nothing here fails: what is no record is skipped.

use crate::key::Key;

/// One line that says something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// Counted from 1. CR, LF and CRLF end a line.
    pub(crate) number: u32,
    /// The name as written.
    pub(crate) name: &'a [u8],
    pub(crate) key: Key,
    /// What follows, white space around it and a comment removed.
    pub(crate) value: &'a [u8],
    /// Whether a colon stood between the two. Without one only short lines with a known name are records.
    pub(crate) colon: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// `bytes` without a UTF-8 byte order mark at their start.
pub(crate) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// The lines of `bytes` that fit into `most` bytes. A line that reaches beyond is left out whole: half a rule is
/// another rule.
pub(crate) fn cut(bytes: &[u8], most: usize) -> &[u8] {
    let Some(head) = bytes.get(..most).filter(|_| bytes.len() > most) else {
        return bytes;
    };
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if bytes.get(most).is_some_and(is_end) {
        return head;
    }
    let end = head.iter().rposition(is_end);
    &head[..end.map_or(0, |at| at + 1)]
}

/// The lines of a file, the empty ones and comments included.
#[derive(Debug, Clone)]
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    number: u32,
}

/// A line before it is understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawLine<'a> {
    pub(crate) number: u32,
    /// Without the comment and the line end.
    pub(crate) text: &'a [u8],
    pub(crate) has_comment: bool,
    /// Where in `text` the first colon is.
    colon: Option<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            number: 0,
        }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = RawLine<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawLine<'a>> {
        let bytes = self.rest;
        if bytes.is_empty() {
            return None;
        }
        self.number += 1;
        let mut colon = None;
        let mut at = 0;
        let mut end = None;
        // Up to the comment or the end of the line, then on to the end of the line.
        for &byte in bytes {
            match byte {
                b':' if colon.is_none() => colon = Some(at),
                b'#' | b'\n' | b'\r' => {
                    end = Some(byte);
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        let text = &bytes[..at];
        if end == Some(b'#') {
            let skipped = bytes[at..]
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'\r'));
            at = skipped.map_or(bytes.len(), |skipped| at + skipped);
        }
        self.rest = match &bytes[at..] {
            [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
            [] => &[],
        };
        Some(RawLine {
            number: self.number,
            text,
            has_comment: end == Some(b'#'),
            colon,
        })
    }
}

impl<'a> RawLine<'a> {
    /// The record on this line, if there is one.
    #[inline]
    pub(crate) fn record(&self) -> Option<Line<'a>> {
        let (name, value, colon) = match self.colon {
            Some(at) => (
                self.text[..at].trim_ascii(),
                self.text[at + 1..].trim_ascii(),
                true,
            ),
            None => {
                // Some forget the colon. Two words of which the first is a name we know are no prose.
                let text = self.text.trim_ascii();
                let at = text.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
                let value = text[at..].trim_ascii();
                if value.iter().any(|byte| matches!(byte, b' ' | b'\t')) {
                    return None;
                }
                (&text[..at], value, false)
            }
        };
        let key = Key::of(name);
        let known = !matches!(key, Key::Unknown | Key::Junk | Key::Extension);
        (known || colon && key != Key::Junk).then_some(Line {
            number: self.number,
            name,
            key,
            value,
            colon,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> Vec<(u32, Key, &str)> {
        Lines::new(text.as_bytes())
            .filter_map(|line| line.record())
            .map(|line| {
                (
                    line.number,
                    line.key,
                    std::str::from_utf8(line.value).unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn each_line_end_counts_once() {
        let text = "user-agent: a\rallow: /1\r\nallow: /2\n\nallow: /3\r\rallow: /4";
        assert_eq!(
            records(text),
            [
                (1, Key::UserAgent, "a"),
                (2, Key::Allow, "/1"),
                (3, Key::Allow, "/2"),
                (5, Key::Allow, "/3"),
                (7, Key::Allow, "/4"),
            ]
        );
    }

    #[test]
    fn comments_and_white_space_go() {
        assert_eq!(
            records("\t Disallow \t:\t /p#x : y\n# allow: /\nallow:#\nallow\t:/q\u{c}"),
            [
                (1, Key::Disallow, "/p"),
                (3, Key::Allow, ""),
                (4, Key::Allow, "/q")
            ]
        );
    }

    #[test]
    fn a_forgotten_colon_is_forgiven_for_names_we_know() {
        assert_eq!(
            records(
                "User-agent *\nDisallow /p\nhello world\nDisallow all of it\nDisallow\nUser agent a"
            ),
            [(1, Key::UserAgent, "*"), (2, Key::Disallow, "/p")]
        );
    }

    #[test]
    fn a_cut_leaves_whole_lines() {
        let text = b"allow: /1\r\nallow: /22";
        assert_eq!(cut(text, 100), text);
        assert_eq!(cut(text, 21), text);
        assert_eq!(cut(text, 20), b"allow: /1\r\n");
        assert_eq!(cut(text, 11), b"allow: /1\r\n");
        assert_eq!(cut(text, 10), b"allow: /1\r");
        assert_eq!(cut(text, 9), b"allow: /1");
        assert_eq!(cut(text, 8), b"");
    }
}
