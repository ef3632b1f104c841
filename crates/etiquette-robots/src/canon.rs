//! One form for all spellings of a path, so that rules and URLs compare byte by byte (RFC 9309, 2.2.2).
//!
//! It is the percent-encoded form: unreserved characters raw, all that a URI must not contain raw encoded, hex digits in
//! upper case. Reserved characters stay as they are written, because `%2F` is no path separator; so does a `%` that
//! starts no escape. How specific a rule is follows from its length in this form.
//!
//! In a URL, `*` and `$` have no meaning, so they are spelled `%2A` and `%24`. A raw `*` therefore never comes from a
//! URL, and the end of a URL can be marked with a raw `$`: a rule that ends in `$` is then a plain comparison.

/// Whether RFC 3986 reserves `byte` as a delimiter; `%` is added because it must never be decoded either.
const fn keeps_its_escape(byte: u8) -> bool {
    matches!(
        byte,
        b':' | b'/'
            | b'?'
            | b'#'
            | b'['
            | b']'
            | b'@'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b'%'
    )
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Bytes that stand for themselves in a rule and in a URL, wherever they are.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        table[byte] = is_unreserved(value)
            || keeps_its_escape(value) && !matches!(value, b'%' | b'*' | b'$' | b'#');
        byte += 1;
    }
    table
};

fn is_plain(byte: u8) -> bool {
    PLAIN[usize::from(byte)]
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

fn push_escape(out: &mut impl Extend<u8>, byte: u8) {
    out.extend([
        b'%',
        HEX[usize::from(byte >> 4)],
        HEX[usize::from(byte & 15)],
    ]);
}

fn hex(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}

/// Handles the `%` at the start of `rest` and returns how many bytes it took.
fn escape(rest: &[u8], out: &mut impl Extend<u8>) -> usize {
    let decoded = match *rest {
        [_, high, low, ..] => hex(high).zip(hex(low)).map(|(h, l)| h << 4 | l),
        _ => None,
    };
    match decoded {
        Some(byte) if is_unreserved(byte) => {
            out.extend([byte]);
            3
        }
        Some(byte) => {
            push_escape(out, byte);
            3
        }
        None => {
            out.extend([b'%']);
            1
        }
    }
}

/// Whether the rule `text` is in canonical form already and has no wildcard, as nearly all are.
pub(crate) fn is_plain_rule(text: &[u8]) -> bool {
    let text = text.strip_suffix(b"$").unwrap_or(text);
    text.iter().all(|&byte| is_plain(byte))
}

/// Appends the canonical form of the rule `text`: `*` stays a wildcard, and a `$` at the very end stays the end mark.
pub(crate) fn rule(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'%' => {
                at += escape(&text[at..], out);
                continue;
            }
            b'*' => out.push(byte),
            b'$' if at + 1 == text.len() => out.push(byte),
            _ if is_plain(byte) => out.push(byte),
            _ => push_escape(out, byte),
        }
        at += 1;
    }
}

/// What rules are compared with: a path and query in canonical form, with `$` at its end.
///
/// Up to 256 bytes lie on the stack.
pub(crate) struct Target {
    near: [u8; Self::NEAR],
    far: Vec<u8>,
    length: usize,
    letters: u32,
}

impl Target {
    const NEAR: usize = 256;

    /// Reads `path_and_query` up to a fragment, if any; one that does not start with `/` gets it.
    pub(crate) fn new(path_and_query: &[u8]) -> Self {
        let mut target = Self {
            near: [0; Self::NEAR],
            far: Vec::new(),
            length: 0,
            letters: 0,
        };
        // Most URLs are canonical as they are.
        if path_and_query.first() == Some(&b'/')
            && path_and_query.len() < Self::NEAR
            && path_and_query.iter().all(|&byte| is_plain(byte))
        {
            target.length = path_and_query.len() + 1;
            target.near[..path_and_query.len()].copy_from_slice(path_and_query);
            target.near[path_and_query.len()] = b'$';
            target.letters = letters(target.bytes());
            return target;
        }
        if path_and_query.first() != Some(&b'/') {
            target.push(b'/');
        }
        let mut at = 0;
        while let Some(&byte) = path_and_query.get(at) {
            match byte {
                b'#' => break,
                b'%' => {
                    at += escape(&path_and_query[at..], &mut target);
                    continue;
                }
                _ if is_plain(byte) => target.push(byte),
                _ => push_escape(&mut target, byte),
            }
            at += 1;
        }
        target.push(b'$');
        target
    }

    /// A rule in canonical form, taken for a URL of which only the start is known.
    pub(crate) fn of_rule(canonical: &[u8]) -> Self {
        Self {
            near: [0; Self::NEAR],
            far: canonical.to_vec(),
            length: 0,
            letters: u32::MAX,
        }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.letters |= letter(byte);
        if self.far.is_empty() {
            if let Some(slot) = self.near.get_mut(self.length) {
                *slot = byte;
                self.length += 1;
                return;
            }
            self.far.extend_from_slice(&self.near);
        }
        self.far.push(byte);
    }

    /// The canonical bytes, the `$` at the end included.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.far.is_empty() {
            &self.near[..self.length]
        } else {
            &self.far
        }
    }

    /// Which bytes occur, coarsely: see [`letters`].
    pub(crate) const fn letters(&self) -> u32 {
        self.letters
    }
}

impl Extend<u8> for Target {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        for byte in bytes {
            self.push(byte);
        }
    }
}

#[inline]
const fn letter(byte: u8) -> u32 {
    1 << (byte & 31)
}

/// The bytes of a rule as a set of 32 classes, wildcards left out. A rule can only match a URL whose set contains it.
pub(crate) fn letters(canonical: &[u8]) -> u32 {
    canonical
        .iter()
        .filter(|&&byte| byte != b'*')
        .fold(0, |set, &byte| set | letter(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rule(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        rule(text.as_bytes(), &mut out);
        out
    }

    #[test]
    fn equal_meanings_have_one_form() {
        for (a, b) in [
            ("/caf%c3%a9", "/café"),
            ("/%62%61z", "/baz"),
            ("/a%3cb", "/a<b"),
            ("/%2f", "/%2F"),
            ("/a%20b", "/a b"),
        ] {
            assert_eq!(of_rule(a), of_rule(b), "{a} {b}");
            assert_eq!(
                Target::new(a.as_bytes()).bytes(),
                Target::new(b.as_bytes()).bytes()
            );
        }
    }

    #[test]
    fn different_meanings_stay_apart() {
        for (a, b) in [("/%2F", "//"), ("/%3Fx", "/?x"), ("/%2541", "/%41")] {
            assert_ne!(of_rule(a), of_rule(b), "{a} {b}");
        }
    }

    #[test]
    fn specificity_counts_the_encoded_form() {
        assert_eq!(of_rule("/ツ").len(), 10);
        assert_eq!(of_rule("/%e3%83%84"), of_rule("/ツ"));
        assert_eq!(of_rule("/%61*$").len(), 4);
    }

    #[test]
    fn broken_escapes_are_kept() {
        assert_eq!(of_rule("/100%"), b"/100%");
        assert_eq!(of_rule("/%zz%4"), b"/%zz%4");
        assert_eq!(of_rule("/50%off"), b"/50%off");
    }

    #[test]
    fn the_end_of_a_url_is_marked() {
        assert_eq!(Target::new(b"").bytes(), b"/$");
        assert_eq!(Target::new(b"?a").bytes(), b"/?a$");
        assert_eq!(Target::new(b"/a#b").bytes(), b"/a$");
        assert_eq!(Target::new(b"/*$").bytes(), b"/%2A%24$");
    }

    #[test]
    fn a_long_url_is_the_same_as_a_short_one() {
        for length in 250..260 {
            let url = [b"/".repeat(length), b"%41".to_vec()].concat();
            let expected = [b"/".repeat(length), b"A$".to_vec()].concat();
            assert_eq!(Target::new(&url).bytes(), expected);
        }
    }

    #[test]
    fn plain_rules_are_recognised() {
        for text in ["", "/", "/a", "/a$", "/$"] {
            assert!(is_plain_rule(text.as_bytes()), "{text}");
            assert_eq!(of_rule(text), text.as_bytes());
        }
        for text in ["/%41", "/a$b", "/a%", "/$$", "/é", "/a b", "/a*"] {
            assert!(!is_plain_rule(text.as_bytes()), "{text}");
        }
    }
}
