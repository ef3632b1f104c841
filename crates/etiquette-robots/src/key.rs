//! What the name of a record means, misspellings included.
//!
//! Case never counts. `user-agent`, `sitemap` and `crawl-delay` may lack their hyphen or have a space or `_` for it, and
//! `disallow` may be misspelled by a letter, because the safe reading of such a line is to obey it (RFC 9309, 2.2.1
//! leaves leniency to the parser). `allow` is never guessed.

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    UserAgent,
    Allow,
    Disallow,
    Sitemap,
    CrawlDelay,
    /// Describes the group it stands in: Request-rate, Content-Signal, Content-Usage, Visit-time.
    Extension,
    /// Anything else that looks like a name.
    Unknown,
    /// No name at all: prose, markup.
    Junk,
}

impl Key {
    /// Reads the text before the colon, white space around it removed.
    pub(crate) fn of(name: &[u8]) -> Self {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        match name.len() {
            8 if is("disallow") => Self::Disallow,
            5 if is("allow") => Self::Allow,
            10 if is("user-agent") => Self::UserAgent,
            7 if is("sitemap") => Self::Sitemap,
            11 if is("crawl-delay") => Self::CrawlDelay,
            12 if is("request-rate") => Self::Extension,
            14 if is("content-signal") => Self::Extension,
            13 if is("content-usage") => Self::Extension,
            10 if is("visit-time") => Self::Extension,
            _ => Self::of_unusual(name),
        }
    }

    fn of_unusual(name: &[u8]) -> Self {
        let Some(first) = name.first().filter(|byte| byte.is_ascii_alphabetic()) else {
            return Self::Junk;
        };
        if let Some(folded) = Folded::new(name) {
            match folded.bytes() {
                b"useragent" | b"useragents" => return Self::UserAgent,
                b"sitemap" | b"sitemaps" => return Self::Sitemap,
                b"crawldelay" => return Self::CrawlDelay,
                other if first.eq_ignore_ascii_case(&b'd') && is_like_disallow(other) => {
                    return Self::Disallow;
                }
                _ => {}
            }
        }
        let named = name.len() <= 64
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if named { Self::Unknown } else { Self::Junk }
    }

    /// How the name is spelled by the book, for keys that have one spelling.
    pub(crate) const fn by_the_book(self) -> Option<&'static str> {
        match self {
            Self::UserAgent => Some("User-agent"),
            Self::Allow => Some("Allow"),
            Self::Disallow => Some("Disallow"),
            Self::Sitemap => Some("Sitemap"),
            Self::CrawlDelay => Some("Crawl-delay"),
            Self::Extension | Self::Unknown | Self::Junk => None,
        }
    }
}

/// A short name in lower case without hyphens, underscores and spaces.
struct Folded {
    bytes: [u8; Self::MOST],
    length: usize,
}

impl Folded {
    const MOST: usize = 12;

    fn new(name: &[u8]) -> Option<Self> {
        let mut folded = Self {
            bytes: [0; Self::MOST],
            length: 0,
        };
        for byte in name {
            if matches!(byte, b'-' | b'_' | b' ' | b'\t') {
                continue;
            }
            *folded.bytes.get_mut(folded.length)? = byte.to_ascii_lowercase();
            folded.length += 1;
        }
        Some(folded)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Whether `word` is `disallow` with doubled letters single or single ones doubled, and one more letter missing, added,
/// wrong or swapped with its neighbour; or `disallow` with an ending of up to two letters.
fn is_like_disallow(word: &[u8]) -> bool {
    if let Some(ending) = word.strip_prefix(b"disallow") {
        return ending.len() <= 2 && ending.iter().all(u8::is_ascii_alphabetic);
    }
    let mut single = [0; Folded::MOST];
    let mut length = 0;
    for &byte in word {
        if length == 0 || single[length - 1] != byte {
            single[length] = byte;
            length += 1;
        }
    }
    within_one_edit(&single[..length], b"disalow")
}

fn within_one_edit(word: &[u8], model: &[u8]) -> bool {
    let start = word.iter().zip(model).take_while(|(a, b)| a == b).count();
    let (word, model) = (&word[start..], &model[start..]);
    match (word, model) {
        ([], [] | [_]) | ([_], []) => true,
        ([_, w @ ..], [_, m @ ..]) => {
            w == m
                || w == model
                || word == m
                || matches!((word, model), ([a, b, w @ ..], [c, d, m @ ..]) if a == d && b == c && w == m)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obeys_misspelled_disallow() {
        for name in [
            "dissallow",
            "dissalow",
            "disalow",
            "diasllow",
            "disallaw",
            "disalllow",
            "dsallow",
            "Disallowed",
            "Disallows",
            "dis-allow",
            "disllow",
            "disallw",
            "dissallw",
        ] {
            assert_eq!(Key::of(name.as_bytes()), Key::Disallow, "{name}");
        }
        for name in [
            "alow",
            "allows",
            "display",
            "disable",
            "disallowance",
            "d",
            "noindex",
        ] {
            assert_eq!(Key::of(name.as_bytes()), Key::Unknown, "{name}");
        }
    }

    #[test]
    fn separators_do_not_matter() {
        for name in [
            "user-agent",
            "USER_AGENT",
            "user agent",
            "useragent",
            "User-Agents",
        ] {
            assert_eq!(Key::of(name.as_bytes()), Key::UserAgent, "{name}");
        }
        assert_eq!(Key::of(b"crawl delay"), Key::CrawlDelay);
        assert_eq!(Key::of(b"Site-map"), Key::Sitemap);
    }

    #[test]
    fn prose_and_markup_are_no_names() {
        for name in [
            "",
            "<a href=\"http",
            "please note",
            "\u{feff}Disallow",
            "- disallow",
        ] {
            assert_eq!(Key::of(name.as_bytes()), Key::Junk, "{name}");
        }
    }
}
