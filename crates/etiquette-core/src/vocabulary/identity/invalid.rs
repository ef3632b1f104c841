//! Why an identity was not made.

use std::error::Error;
use std::fmt;

/// Why [`Builder::build`](super::Builder::build) made no [`Identity`](super::Identity): the part and its fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidIdentity {
    /// The part that was given.
    pub field: Field,
    /// What is wrong with it.
    pub fault: Fault,
}

/// A part of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The token for crawls.
    Token,
    /// The token for pages that a person asked for.
    UserToken,
    /// The version.
    Version,
    /// The link to the description page.
    Url,
    /// The mail address of the operator.
    Contact,
    /// What the client is for.
    Purpose,
    /// The free comment.
    Comment,
    /// A further product.
    Product,
    /// The finished header value.
    UserAgent,
}

/// What is wrong with a part of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing was given.
    Empty,
    /// A control character: a line break would start another header, and a tab has no use here.
    ControlChar,
    /// A character outside ASCII: logs and filters would show and match it differently.
    NonAscii,
    /// A digit in a token: robots.txt tokens are letters, `_` and `-` (RFC 9309, 2.2.1).
    Digit,
    /// A character that the part may not have, or a token without any letter.
    IllegalChar,
    /// The name of a browser.
    LooksLikeBrowser,
    /// The name of another, known agent.
    ImpersonatesKnownAgent,
    /// One token contains the other, so that a filter for one would hit both.
    Overlaps,
    /// The link is neither `http` nor `https`.
    NotHttp,
    /// The link has user information: a secret would go to every site.
    Userinfo,
    /// The link names no host.
    NoHost,
    /// Not a mail address.
    NotAMailbox,
    /// A semicolon, which separates the parts of the comment.
    Separator,
    /// Not one `name` or `name/version`.
    NotAProduct,
    /// Longer than the limit.
    TooLong,
    /// The token is not in the string, byte for byte.
    TokenNotSubstring,
    /// The token is only a part of a longer word.
    TokenNotDelimited,
    /// The token has no `/version` behind it.
    NoVersion,
    /// There is no link.
    NoUrl,
    /// Not what RFC 9110, 10.1.5 allows.
    BadGrammar,
}

impl InvalidIdentity {
    pub(super) fn new(field: Field, fault: Fault) -> Self {
        Self { field, fault }
    }

    /// A short stable name of the error, such as `token_has_digit`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match (self.fault, self.field) {
            (Fault::Empty, Field::Version) => "empty_version",
            (Fault::Empty, Field::Url) => "empty_url",
            (Fault::Empty, Field::Token | Field::UserToken) => "empty_token",
            (Fault::Empty, _) => "empty",
            (Fault::ControlChar, _) => "control_char",
            (Fault::NonAscii, _) => "non_ascii",
            (Fault::Digit, _) => "token_has_digit",
            (Fault::IllegalChar, Field::Version) => "illegal_version_char",
            (Fault::IllegalChar, Field::Url) => "url_illegal_char",
            (Fault::IllegalChar, _) => "illegal_token_char",
            (Fault::LooksLikeBrowser, _) => "looks_like_browser",
            (Fault::ImpersonatesKnownAgent, _) => "impersonates_known_agent",
            (Fault::Overlaps, _) => "token_overlaps",
            (Fault::NotHttp, _) => "url_not_http",
            (Fault::Userinfo, _) => "url_has_userinfo",
            (Fault::NoHost, _) => "url_no_host",
            (Fault::NotAMailbox, _) => "bad_contact",
            (Fault::Separator, _) => "comment_has_separator",
            (Fault::NotAProduct, _) => "illegal_product",
            (Fault::TooLong, _) => "too_long",
            (Fault::TokenNotSubstring, _) => "token_not_substring",
            (Fault::TokenNotDelimited, _) => "token_not_delimited",
            (Fault::NoVersion, _) => "missing_version",
            (Fault::NoUrl, _) => "missing_url",
            (Fault::BadGrammar, _) => "bad_grammar",
        }
    }
}

impl fmt::Display for InvalidIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.field {
            Field::Token => "the token",
            Field::UserToken => "the user token",
            Field::Version => "the version",
            Field::Url => "the link",
            Field::Contact => "the contact",
            Field::Purpose => "the purpose",
            Field::Comment => "the comment",
            Field::Product => "the product",
            Field::UserAgent => "the user-agent string",
        })?;
        f.write_str(match self.fault {
            Fault::Empty => " is empty",
            Fault::ControlChar => " has a control character",
            Fault::NonAscii => " has a character outside ASCII",
            Fault::Digit => " has a digit, which robots.txt tokens may not have",
            Fault::IllegalChar => " has a character that it may not have",
            Fault::LooksLikeBrowser => " looks like a browser's",
            Fault::ImpersonatesKnownAgent => " is the name of another known agent",
            Fault::Overlaps => " contains the token for crawls or is contained in it",
            Fault::NotHttp => " is neither http nor https",
            Fault::Userinfo => " has user information, which would go to every site",
            Fault::NoHost => " names no host",
            Fault::NotAMailbox => " is no mail address",
            Fault::Separator => " has a semicolon, which separates the parts of the comment",
            Fault::NotAProduct => " is not one name or name/version",
            Fault::TooLong => " is too long",
            Fault::TokenNotSubstring => " does not have the token, byte for byte",
            Fault::TokenNotDelimited => " has the token only as a part of a longer word",
            Fault::NoVersion => " has no version behind the token",
            Fault::NoUrl => " has no link",
            Fault::BadGrammar => " is not what RFC 9110, 10.1.5 allows",
        })
    }
}

impl Error for InvalidIdentity {}
