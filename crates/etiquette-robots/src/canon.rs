//! One form for all spellings of a path, so that rules and URLs compare octet by octet (RFC 9309, 2.2.2).
//!
//! It is the percent-encoded form: unreserved characters raw, all that a URI must not contain raw encoded, hex digits in
//! upper case. Reserved characters stay as they are written, because `%2F` is no path separator; so does a `%` that
//! starts no escape. How specific a rule is follows from its length in this form.
//!
//! In a URL, `*` and `$` have no meaning, so they are spelled `%2A` and `%24`. A raw `*` therefore never comes from a
//! URL, and the end of a URL can be marked with a raw `$`: a rule that ends in `$` is then a plain comparison.

/// Whether RFC 3986 reserves `octet` as a delimiter; `%` is added because it must never be decoded either.
const fn keeps_its_escape(octet: u8) -> bool {
    matches!(
        octet,
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

const fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Octets that stand for themselves in a rule and in a URL, wherever they are.
static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut octet = 0;
    while octet < 256 {
        let value = octet as u8;
        table[octet] = is_unreserved(value)
            || keeps_its_escape(value) && !matches!(value, b'%' | b'*' | b'$' | b'#');
        octet += 1;
    }
    table
};

fn is_plain(octet: u8) -> bool {
    PLAIN[usize::from(octet)]
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

fn push_escape(out: &mut impl Extend<u8>, octet: u8) {
    out.extend([
        b'%',
        HEX[usize::from(octet >> 4)],
        HEX[usize::from(octet & 15)],
    ]);
}

fn hex(octet: u8) -> Option<u8> {
    (octet as char).to_digit(16).map(|digit| digit as u8)
}

/// Handles the `%` at the start of `rest` and returns how many octets it took.
fn escape(rest: &[u8], out: &mut impl Extend<u8>) -> usize {
    let decoded = match *rest {
        [_, high, low, ..] => hex(high).zip(hex(low)).map(|(h, l)| h << 4 | l),
        _ => None,
    };
    match decoded {
        Some(octet) if is_unreserved(octet) => {
            out.extend([octet]);
            3
        }
        Some(octet) => {
            push_escape(out, octet);
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
    text.iter().all(|&octet| is_plain(octet))
}

/// Appends the canonical form of the rule `text`: `*` stays a wildcard, and a `$` at the very end stays the end mark.
pub(crate) fn rule(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&octet) = text.get(at) {
        match octet {
            b'%' => {
                at += escape(&text[at..], out);
                continue;
            }
            b'*' => out.push(octet),
            b'$' if at + 1 == text.len() => out.push(octet),
            _ if is_plain(octet) => out.push(octet),
            _ => push_escape(out, octet),
        }
        at += 1;
    }
}

/// What rules are compared with: a path and query in canonical form, with `$` at its end.
///
/// Up to 256 octets lie on the stack.
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
            && path_and_query.iter().all(|&octet| is_plain(octet))
        {
            target.length = path_and_query.len() + 1;
            target.near[..path_and_query.len()].copy_from_slice(path_and_query);
            target.near[path_and_query.len()] = b'$';
            target.letters = letters(target.octets());
            return target;
        }
        if path_and_query.first() != Some(&b'/') {
            target.push(b'/');
        }
        let mut at = 0;
        while let Some(&octet) = path_and_query.get(at) {
            match octet {
                b'#' => break,
                b'%' => {
                    at += escape(&path_and_query[at..], &mut target);
                    continue;
                }
                _ if is_plain(octet) => target.push(octet),
                _ => push_escape(&mut target, octet),
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
    fn push(&mut self, octet: u8) {
        self.letters |= letter(octet);
        if self.far.is_empty() {
            if let Some(slot) = self.near.get_mut(self.length) {
                *slot = octet;
                self.length += 1;
                return;
            }
            self.far.extend_from_slice(&self.near);
        }
        self.far.push(octet);
    }

    /// The canonical octets, the `$` at the end included.
    pub(crate) fn octets(&self) -> &[u8] {
        if self.far.is_empty() {
            &self.near[..self.length]
        } else {
            &self.far
        }
    }

    /// Which octets occur, coarsely: see [`letters`].
    pub(crate) const fn letters(&self) -> u32 {
        self.letters
    }
}

impl Extend<u8> for Target {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, octets: I) {
        for octet in octets {
            self.push(octet);
        }
    }
}

#[inline]
const fn letter(octet: u8) -> u32 {
    1 << (octet & 31)
}

/// The octets of a rule as a set of 32 classes, wildcards left out. A rule can only match a URL whose set contains it.
pub(crate) fn letters(canonical: &[u8]) -> u32 {
    canonical
        .iter()
        .filter(|&&octet| octet != b'*')
        .fold(0, |set, &octet| set | letter(octet))
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
                Target::new(a.as_bytes()).octets(),
                Target::new(b.as_bytes()).octets()
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
        assert_eq!(Target::new(b"").octets(), b"/$");
        assert_eq!(Target::new(b"?a").octets(), b"/?a$");
        assert_eq!(Target::new(b"/a#b").octets(), b"/a$");
        assert_eq!(Target::new(b"/*$").octets(), b"/%2A%24$");
    }

    #[test]
    fn a_long_url_is_the_same_as_a_short_one() {
        for length in 250..260 {
            let url = [b"/".repeat(length), b"%41".to_vec()].concat();
            let expected = [b"/".repeat(length), b"A$".to_vec()].concat();
            assert_eq!(Target::new(&url).octets(), expected);
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
