//! What a User-Agent value says about who sends it.

use std::fmt;

use super::known::{self, KnownPurpose};
use super::syntax::{self, Word};

/// What a User-Agent value says about its sender, seen from one identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It has the identity's own token as a word and a link, and is well-formed.
    Ok,
    /// It has the own token, but no link, or is not well-formed, or is too long.
    Incomplete,
    /// It has the own token inside a browser's string.
    Hybrid,
    /// It is a browser's string.
    Disguise,
    /// It names another known agent.
    Impersonation,
    /// It names nobody.
    Unidentified,
    /// It has characters that no User-Agent should have: controls, or beyond ASCII.
    Malformed,
}

impl Verdict {
    /// The stable name of the verdict.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Incomplete => "incomplete",
            Self::Hybrid => "hybrid",
            Self::Disguise => "disguise",
            Self::Impersonation => "impersonation",
            Self::Unidentified => "unidentified",
            Self::Malformed => "malformed",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// Judges `value` for an agent that goes by one of `tokens`.
///
/// From the gravest to the mildest: a string with the own token, a browser's products and another agent's name is an
/// impersonation, because that is what filters will take it for.
pub(super) fn judge<'a>(
    value: &[u8],
    tokens: impl IntoIterator<Item = &'a str>,
    max_len: usize,
    renders: bool,
) -> Verdict {
    let text = match std::str::from_utf8(value) {
        Ok(text) if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) => text,
        _ => return Verdict::Malformed,
    };
    let own: Vec<&str> = tokens
        .into_iter()
        .filter(|token| names_itself(text, token))
        .collect();
    if names_known_agent(text, &own) {
        return Verdict::Impersonation;
    }
    let browser = claims_browser(text);
    if own.is_empty() {
        return if browser {
            Verdict::Disguise
        } else {
            Verdict::Unidentified
        };
    }
    if browser && !renders {
        return Verdict::Hybrid;
    }
    if syntax::link_start(text).is_none() || !syntax::is_user_agent(text) || text.len() > max_len {
        return Verdict::Incomplete;
    }
    Verdict::Ok
}

/// Whether `token` stands in `text` as a word of its own, byte for byte, and not only in a link.
fn names_itself(text: &str, token: &str) -> bool {
    syntax::words(text)
        .filter(|word| !word.is_link())
        .any(|word| syntax::delimited(word.text, token).is_some())
}

/// Whether `text` would be taken for another known agent.
///
/// Without an own token any known name is a claim. Beside it a name in a comment is one only where it is written as an
/// agent's name (`Googlebot/2.1`) or likened to (`like Googlebot`): a comment may say what the agent is for.
pub(super) fn names_known_agent(text: &str, own: &[&str]) -> bool {
    let mut likened = false;
    for word in syntax::words(text) {
        let after_like = std::mem::replace(&mut likened, word.text.eq_ignore_ascii_case("like"));
        if word.is_link() || own.iter().any(|own| word.name().eq_ignore_ascii_case(own)) {
            continue;
        }
        let Some(agent) = known::named_by(word.text.trim_start_matches('+')) else {
            continue;
        };
        if agent.purpose == KnownPurpose::LibraryDefault {
            continue;
        }
        if own.is_empty() || !word.in_comment || word.has_version() || after_like {
            return true;
        }
    }
    false
}

/// Whether `text` claims to be a browser: by a browser's product, or by the platform that a browser would name.
///
/// `Mozilla/5.0` alone is no claim. Nor is a browser's name in a comment, unless it has a version.
pub(super) fn claims_browser(text: &str) -> bool {
    let as_mozilla = syntax::words(text)
        .next()
        .is_some_and(|word| is_mozilla(&word));
    let mut after_msie = false;
    for word in syntax::words(text) {
        if after_msie && word.text.starts_with(|first: char| first.is_ascii_digit()) {
            return true;
        }
        after_msie = word.text.eq_ignore_ascii_case("MSIE");
        if word.is_link() {
            continue;
        }
        if known::is_browser(word.name())
            && !is_mozilla(&word)
            && (!word.in_comment || word.has_version())
        {
            return true;
        }
        if as_mozilla && word.in_comment && is_platform(word.text) {
            return true;
        }
    }
    false
}

fn is_mozilla(word: &Word<'_>) -> bool {
    word.name().eq_ignore_ascii_case("Mozilla")
}

/// Whether `word` names a platform, as the comment behind a browser's `Mozilla/5.0` does.
fn is_platform(word: &str) -> bool {
    const PLATFORMS: &[&str] = &[
        "Windows",
        "Win64",
        "WOW64",
        "Macintosh",
        "X11",
        "Linux",
        "Android",
        "CrOS",
        "iPhone",
        "iPad",
        "iPod",
    ];
    PLATFORMS
        .iter()
        .any(|platform| platform.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> Verdict {
        judge(text.as_bytes(), ["ExampleBot"], 256, false)
    }

    const LINK: &str = "https://www.example.com/bot.html";

    #[test]
    fn a_comment_may_say_what_the_agent_is_for() {
        assert_eq!(
            verdict(&format!("ExampleBot/0.1 ({LINK}; reads Mastodon links)")),
            Verdict::Ok
        );
        assert_eq!(
            verdict(&format!("ExampleBot/0.1 ({LINK}; Googlebot/2.1)")),
            Verdict::Impersonation
        );
        assert_eq!(
            verdict(&format!("ExampleBot/0.1 ({LINK}; like Googlebot)")),
            Verdict::Impersonation
        );
        assert_eq!(
            verdict("ExampleBot/0.1 (https://www.example.com/googlebot)"),
            Verdict::Ok
        );
    }

    #[test]
    fn a_name_in_a_link_names_nobody() {
        assert_eq!(
            verdict("x/1 (https://www.example.com/ExampleBot)"),
            Verdict::Unidentified
        );
    }

    #[test]
    fn old_and_odd_browsers() {
        for text in [
            "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)",
            "Mozilla/5.0 (compatible; MSIE 9.0)",
            "Opera/9.80 (J2ME/MIDP) Presto/2.12",
            "chrome",
        ] {
            assert_eq!(verdict(text), Verdict::Disguise, "{text}");
        }
        assert_eq!(
            verdict("Mozilla/5.0 (compatible; x)"),
            Verdict::Unidentified
        );
    }

    #[test]
    fn rendering_is_declared() {
        let text = format!("Mozilla/5.0 (compatible; ExampleBot/0.1; {LINK}) Chrome/131.0.0.0");
        assert_eq!(verdict(&text), Verdict::Hybrid);
        assert_eq!(
            judge(text.as_bytes(), ["ExampleBot"], 256, true),
            Verdict::Ok
        );
    }

    #[test]
    fn odd_bytes() {
        assert_eq!(
            judge(b"\xff", ["ExampleBot"], 256, false),
            Verdict::Malformed
        );
        assert_eq!(verdict("ExampleBot/0.1\t(x)"), Verdict::Malformed);
        assert_eq!(verdict("  "), Verdict::Unidentified);
    }
}
