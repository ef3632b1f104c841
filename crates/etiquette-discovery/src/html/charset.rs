//! Which encoding a page is in: byte order mark, field, page, guess, in this order.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far into the page a declaration is looked for, as browsers do.
const PRESCAN: usize = 1024;

pub(super) fn of(content_type: Option<&str>, body: &[u8]) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return encoding;
    }
    content_type
        .and_then(|value| after_charset(value.as_bytes()))
        .and_then(Encoding::for_label)
        .or_else(|| declared(&body[..body.len().min(PRESCAN)]))
        .unwrap_or_else(|| guess(body))
}

/// A query in the encoding of its page, to be percent-encoded.
pub(super) fn encode_query<'q>(encoding: &'static Encoding, query: &'q str) -> Cow<'q, [u8]> {
    if encoding.output_encoding() == UTF_8 || query.is_ascii() {
        return query.as_bytes().into();
    }
    // Character by character, since a character that the encoding lacks becomes `%26%23…%3B`, ampersand included,
    // while an ampersand of the query stays one. (Whole-string encoding could not tell the two apart.)
    let mut out = Vec::with_capacity(query.len());
    let mut buffer = [0; 4];
    for c in query.chars() {
        let (bytes, _, lacking) = encoding.encode(c.encode_utf8(&mut buffer));
        if lacking {
            out.extend_from_slice(format!("%26%23{}%3B", u32::from(c)).as_bytes());
        } else {
            out.extend_from_slice(&bytes);
        }
    }
    out.into()
}

/// The label in the first `<meta>` that names one.
fn declared(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = head;
    while let Some(open) = rest.iter().position(|b| *b == b'<') {
        rest = &rest[open + 1..];
        let is_meta = rest
            .get(..4)
            .is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
            && rest
                .get(4)
                .is_some_and(|b| b.is_ascii_whitespace() || *b == b'/');
        if !is_meta {
            continue;
        }
        let end = rest.iter().position(|b| *b == b'>').unwrap_or(rest.len());
        if let Some(encoding) = after_charset(&rest[..end]).and_then(Encoding::for_label) {
            // A declaration that could be read as ASCII is none of UTF-16.
            let wide = encoding == UTF_16LE || encoding == UTF_16BE;
            return Some(if wide { UTF_8 } else { encoding });
        }
    }
    None
}

/// The value after `charset=`, with or without quotes and white space.
fn after_charset(text: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"charset";
    let mut rest = text;
    loop {
        let at = rest
            .windows(NAME.len())
            .position(|w| w.eq_ignore_ascii_case(NAME))?;
        rest = &rest[at + NAME.len()..];
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        let value = value
            .strip_prefix(b"\"")
            .or_else(|| value.strip_prefix(b"'"))
            .unwrap_or(value);
        let end = value
            .iter()
            .position(|b| matches!(b, b'"' | b'\'' | b';' | b'>') || b.is_ascii_whitespace())
            .unwrap_or(value.len());
        return Some(&value[..end]);
    }
}

/// UTF-8 when it can be that, else what undeclared pages of the past mostly are.
fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        Ok(_) => UTF_8,
        // Cut inside a character.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}
