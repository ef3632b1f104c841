//! The tokens of a source file, as far as its layout is concerned: names and punctuation with their lines.
//!
//! Comments are left out, and so is everything that is compiled for tests alone.

use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// A name, `::`, one character of punctuation, or [`LITERAL`].
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// Stands for each string, character and number.
pub(crate) const LITERAL: &str = "\"";

pub(crate) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Splits Rust source into tokens.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let bytes = source.as_bytes();
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    while at < bytes.len() {
        let start = at;
        let text = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| **byte != b'\n')
                    .count();
                None
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                at = end_of_block_comment(bytes, at);
                None
            }
            b'"' => {
                at = end_of_string(bytes, at);
                Some(LITERAL)
            }
            b'\'' => {
                at = end_of_quote(source, at);
                (bytes[at - 1] == b'\'').then_some(LITERAL)
            }
            byte if byte.is_ascii_digit() => {
                at = end_of_name(source, at);
                Some(LITERAL)
            }
            byte if byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii() => {
                at = end_of_name(source, at);
                match end_of_prefixed(bytes, start, at) {
                    Some(end) => {
                        at = end;
                        Some(LITERAL)
                    }
                    None => Some(&source[start..at]),
                }
            }
            b':' if bytes[at..].starts_with(b"::") => {
                at += 2;
                Some("::")
            }
            byte => {
                at += 1;
                (!byte.is_ascii_whitespace()).then(|| &source[start..at])
            }
        };
        tokens.extend(text.map(|text| Token { text, line }));
        line += bytes[start..at]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
    }
    tokens
}

fn end_of_block_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// The end of a string whose opening quote is at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The end of a character, or of a lifetime: only the former ends with a quote.
fn end_of_quote(source: &str, at: usize) -> usize {
    let rest = &source[at + 1..];
    if rest.starts_with('\\') {
        // The escaped character itself may be a quote.
        return at + 3 + rest[2..].find('\'').map_or(rest.len() - 2, |end| end + 1);
    }
    let mut characters = rest.chars();
    match (characters.next(), characters.next()) {
        (Some(character), Some('\'')) => at + 1 + character.len_utf8() + 1,
        _ => end_of_name(source, at + 1),
    }
}

fn end_of_name(source: &str, at: usize) -> usize {
    let length = source[at..].find(|c: char| !c.is_alphanumeric() && c != '_');
    length.map_or(source.len(), |length| at + length)
}

/// The end of a literal with a prefix, such as `b'x'`, `b"x"` and `r#"x"#`, if what ends at `at` is such a prefix.
fn end_of_prefixed(bytes: &[u8], start: usize, at: usize) -> Option<usize> {
    let raw = matches!(&bytes[start..at], b"r" | b"br" | b"cr");
    let plain = matches!(&bytes[start..at], b"b" | b"c");
    match bytes.get(at)? {
        b'"' if plain => Some(end_of_string(bytes, at)),
        b'\'' if plain => {
            let escaped = usize::from(bytes.get(at + 1) == Some(&b'\\'));
            let from = at + 2 + escaped;
            let end = bytes.get(from..)?.iter().position(|byte| *byte == b'\'')?;
            Some(from + end + 1)
        }
        b'"' | b'#' if raw => {
            let hashes = bytes[at..].iter().take_while(|byte| **byte == b'#').count();
            let from = at + hashes + 1;
            if bytes.get(from - 1) != Some(&b'"') {
                return None;
            }
            let end = format!("\"{}", "#".repeat(hashes));
            let rest = bytes.get(from..)?;
            let length = rest
                .windows(end.len())
                .position(|it| it == end.as_bytes())?;
            Some(from + length + end.len())
        }
        _ => None,
    }
}

/// The index behind the bracket that closes the one at `open`.
pub(crate) fn behind_bracket(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Where a name at `at` stands right before something that `next` matches.
pub(crate) fn follows(tokens: &[Token<'_>], at: usize, next: &str) -> bool {
    tokens.get(at + 1).is_some_and(|token| token.text == next)
}

/// What is left of a file without items, fields and statements that are compiled for tests alone, and the names of the
/// modules in other files that are.
pub(crate) fn without_tests<'a>(tokens: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<&'a str>) {
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        if is_test_attribute(tokens, at) {
            let item = item_behind_attributes(tokens, at);
            let words: Vec<_> = tokens[item.clone()]
                .iter()
                .map(|token| token.text)
                .collect();
            if let [.., "mod", name, ";"] = words[..] {
                modules.push(name);
            }
            at = item.end;
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    (kept, modules)
}

/// `#[cfg(test)]`, `#[cfg(all(test, …))]` or `#[test]`.
fn is_test_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    let words: Vec<_> = tokens[at..]
        .iter()
        .take(7)
        .map(|token| token.text)
        .collect();
    matches!(
        words[..],
        ["#", "[", "cfg", "(", "test", ")", ..]
            | ["#", "[", "cfg", "(", "all", "(", "test", ..]
            | ["#", "[", "test", "]", ..]
    )
}

/// The item, field or statement whose attributes begin at `at`.
fn item_behind_attributes(tokens: &[Token<'_>], mut at: usize) -> Range<usize> {
    while tokens[at].text == "#" && follows(tokens, at, "[") {
        at = behind_bracket(tokens, at + 1);
    }
    let start = at;
    // The braces of these are not their end.
    let to_semicolon = tokens[start..]
        .iter()
        .map(|token| token.text)
        .find(|text| !matches!(*text, "pub" | "(" | "crate" | "super" | ")"))
        .is_some_and(|text| matches!(text, "use" | "const" | "static" | "let" | "type"));
    let mut keyword = to_semicolon;
    while at < tokens.len() {
        match tokens[at].text {
            "fn" | "impl" | "mod" | "struct" | "enum" | "trait" => keyword = true,
            ";" => return start..at + 1,
            // A field or an arm.
            "," if !keyword => return start..at + 1,
            ")" | "]" | "}" => return start..at,
            "{" if !to_semicolon => return start..behind_bracket(tokens, at),
            "(" | "[" | "{" => {
                at = behind_bracket(tokens, at);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    start..at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        let tokens = tokens(source);
        without_tests(&tokens).0.iter().map(|t| t.text).collect()
    }

    #[test]
    fn literals_comments_and_lifetimes_hide_nothing() {
        let source = r##"a /* b /* c */ "d */ 'e' '\'' '\\' b'\'' b'{' "f\"g" r#"h"i"# br"j" 'k: l<'m> 1.5 // n
            o::p r#type"##;
        let found = texts(source);
        let names: Vec<_> = found.into_iter().filter(|text| is_name(text)).collect();
        assert_eq!(names, ["a", "l", "o", "p", "r", "type"]);
        let lines: Vec<_> = tokens("a\n\"\n\n\"\nb").iter().map(|t| t.line).collect();
        assert_eq!(lines, [1, 2, 5]);
    }

    #[test]
    fn what_is_for_tests_alone_is_left_out() {
        for (source, left) in [
            ("#[cfg(test)] mod tests { fn a() {} } b", "b"),
            ("#[cfg(test)] #[path = \"x.rs\"] mod tests; b", "b"),
            ("#[cfg(test)] pub(super) use a::{b, c}; d", "d"),
            ("#[cfg(test)] fn a<T, U>(b: T) -> U { c } d", "d"),
            ("#[cfg(test)] const A: [u8; 2] = { [1, 2] }; d", "d"),
            ("x { #[cfg(test)] a: B, c: D }", "x { c : D }"),
            ("x { #[cfg(test)] a }", "x { }"),
            ("#[cfg(all(test, unix))] a!(); b", "b"),
        ] {
            assert_eq!(texts(source).join(" "), left, "{source}");
        }
        let tokens = tokens("#[cfg(test)] mod model; #[cfg(feature = \"x\")] mod y;");
        assert_eq!(without_tests(&tokens).1, ["model"]);
    }
}
