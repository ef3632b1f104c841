//! The name that a crawler looks up in robots.txt (RFC 9309, 2.2.1).

use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

/// A crawler's product token: letters, `_` and `-`, at least one of them (RFC 9309, 2.2.1).
///
/// Tokens are compared without regard to case, as robots.txt compares them; the spelling is kept for the User-Agent
/// and for messages. Cloning shares the text.
///
/// ```
/// use etiquette_robots::ProductToken;
///
/// let token: ProductToken = "ExampleBot".parse()?;
/// assert_eq!(token, "examplebot".parse()?);
/// assert!(token.appears_in("Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)"));
/// assert!("ExampleBot/0.1".parse::<ProductToken>().is_err());
/// # Ok::<(), etiquette_robots::InvalidToken>(())
/// ```
#[derive(Clone)]
pub struct ProductToken(Arc<str>);

impl ProductToken {
    /// The token as it was spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `user_agent` contains the token, without regard to case. RFC 9309, 2.2.1 asks for it, so that an
    /// operator finds in the log what robots.txt can name.
    #[must_use]
    pub fn appears_in(&self, user_agent: &str) -> bool {
        user_agent
            .as_bytes()
            .windows(self.0.len())
            .any(|part| part.eq_ignore_ascii_case(self.0.as_bytes()))
    }
}

/// Whether `byte` may stand in a product token.
pub(crate) const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b'-'
}

/// The longest product token at the start of `bytes`; empty where there is none.
pub(crate) fn leading_bytes(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| !is_token_byte(b));
    &bytes[..end.unwrap_or(bytes.len())]
}

/// The longest product token at the start of `text`, as a user-agent line is read: `Foobot` of `Foobot/2.1`.
/// Empty where `text` starts with something else.
#[must_use]
pub fn leading_token(text: &str) -> &str {
    &text[..leading_bytes(text.as_bytes()).len()]
}

impl TryFrom<&str> for ProductToken {
    type Error = InvalidToken;

    fn try_from(text: &str) -> Result<Self, InvalidToken> {
        match text
            .chars()
            .find(|c| !c.is_ascii() || !is_token_byte(*c as u8))
        {
            Some(found) => Err(InvalidToken::Character(found)),
            None if text.is_empty() => Err(InvalidToken::Empty),
            None => Ok(Self(text.into())),
        }
    }
}

impl FromStr for ProductToken {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        Self::try_from(text)
    }
}

impl PartialEq for ProductToken {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for ProductToken {}

impl Hash for ProductToken {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for byte in self.0.bytes() {
            state.write_u8(byte.to_ascii_lowercase());
        }
        state.write_u8(0xff);
    }
}

impl AsRef<str> for ProductToken {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProductToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ProductToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProductToken({})", self.0)
    }
}

/// Why a text is no product token.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidToken {
    /// There is nothing in it.
    Empty,
    /// It holds something other than letters, `_` and `-`. A version belongs into the User-Agent, not into the token.
    Character(char),
}

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a product token needs at least one letter"),
            Self::Character(found) => write!(
                f,
                "a product token has letters, `_` and `-` only, not {found:?}"
            ),
        }
    }
}

impl Error for InvalidToken {}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn one_name_in_any_case_is_one_key() {
        let mut seen = HashSet::new();
        for spelling in ["ExampleBot", "EXAMPLEBOT", "examplebot"] {
            seen.insert(ProductToken::try_from(spelling).unwrap());
        }
        assert_eq!(seen.len(), 1);
        assert!(seen.insert(ProductToken::try_from("Example-Bot").unwrap()));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(ProductToken::try_from(""), Err(InvalidToken::Empty));
        assert_eq!(
            ProductToken::try_from("Foobot/2.1"),
            Err(InvalidToken::Character('/'))
        );
    }

    #[test]
    fn a_user_agent_shorter_than_the_token_does_not_contain_it() {
        let token = ProductToken::try_from("ExampleBot").unwrap();
        assert!(!token.appears_in("Exa"));
        assert!(!token.appears_in(""));
    }
}
