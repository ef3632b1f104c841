//! URL references as pages and servers write them, made absolute (feature `url`).
//!
//! # Flow
//! A reference (`href`, the target of a `Link` field, a `Location`, a `<loc>`, what a person types) and the URI of the
//! document that holds it become an absolute `http` or `https` [`Uri`] without fragment and without user name or password,
//! or a [`BadReference`] that says why not. [`BaseUrl`] reads the base once for many references, [`resolve`] is for one.
//! Nothing is fetched and nothing panics.
//!
//! # Scope
//! The rules are those of the URL Standard for `http` and `https` (the standard that browsers and site operators test
//! against), not those of RFC 3986: white space around a reference is dropped and tabs and line ends inside it are
//! removed, `\` counts as `/`, `http:path` is relative when the base is `http`, dot segments may be percent-encoded,
//! ports that are the default vanish, hosts are lower-cased, international names become ASCII (UTS 46), and IPv4 and IPv6
//! addresses are written in their one form. Bytes that may not stand in a path or query are percent-encoded; a query is
//! encoded in the document's own encoding, as browsers do, if [`BaseUrl::resolve_with`] is told it.
//!
//! The `url` crate reads; this module adds the limits, and the two places where that crate leaves the standard.
//!
//! # Non-goals
//! Schemes other than `http` and `https`, fragments. Where this feature is off, `etiquette_robots::resolve` makes the plain
//! references of robots.txt absolute by RFC 3986.

use std::borrow::Cow;
use std::fmt;

use http::Uri;
use url::{ParseError, Url};

/// References longer than this many bytes are refused: 16 KiB, eight times what common servers accept as a request
/// target.
pub const MAX_REFERENCE: usize = 16 * 1024;

/// The longest name that the DNS can hold, and its trailing dot.
const MAX_HOST: usize = 253 + 1;

/// Why a reference leads to nothing that can be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadReference {
    /// Another scheme than `http` or `https`: `mailto:`, `javascript:`, `data:` and the rest.
    Scheme,
    /// The host is empty, too long, or holds characters that no host may hold.
    Host,
    /// The port is no number up to 65,535.
    Port,
    /// Longer than [`MAX_REFERENCE`] before or after encoding.
    TooLong,
    /// The base has no `http` or `https` scheme or no host, so nothing can be relative to it.
    Base,
}

impl fmt::Display for BadReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "the scheme is neither http nor https",
            Self::Host => "the host is not valid",
            Self::Port => "the port is not valid",
            Self::TooLong => "the reference is too long",
            Self::Base => "the base is no absolute http or https URI",
        })
    }
}

impl std::error::Error for BadReference {}

/// Makes `reference` absolute, relative to `base`, the URI of the document after redirects.
///
/// # Errors
/// A [`BadReference`]; an empty reference is no error but `base` itself.
///
/// ```
/// use etiquette_core::vocabulary::reference::resolve;
///
/// let base = "https://www.example.com/blog/".parse().unwrap();
/// assert_eq!(resolve(&base, " feed.xml#top ").unwrap(), "https://www.example.com/blog/feed.xml");
/// assert_eq!(resolve(&base, "//cdn.example/ä b").unwrap(), "https://cdn.example/%C3%A4%20b");
/// assert!(resolve(&base, "mailto:ops@example.com").is_err());
/// ```
pub fn resolve(base: &Uri, reference: &str) -> Result<Uri, BadReference> {
    BaseUrl::new(base)?.resolve(reference)
}

/// Reads an absolute `http` or `https` URL as a person types it or a configuration has it.
///
/// # Errors
/// A [`BadReference`]: [`BadReference::Base`] where it is relative.
///
/// ```
/// use etiquette_core::vocabulary::reference::absolute;
///
/// assert_eq!(absolute("HTTP://Bücher.example:80/x/../ü").unwrap(), "http://xn--bcher-kva.example/%C3%BC");
/// ```
pub fn absolute(url: &str) -> Result<Uri, BadReference> {
    if url.len() > MAX_REFERENCE {
        return Err(BadReference::TooLong);
    }
    requestable(Url::parse(url).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => BadReference::Base,
        error => bad(error),
    })?)
}

/// What references are relative to: the URI of a document after redirects.
#[derive(Clone, Debug)]
pub struct BaseUrl(Url);

impl BaseUrl {
    /// The base `uri`.
    ///
    /// # Errors
    /// [`BadReference::Base`] when it is no absolute `http` or `https` URI.
    pub fn new(uri: &Uri) -> Result<Self, BadReference> {
        let url = Url::parse(&uri.to_string()).map_err(|_| BadReference::Base)?;
        is_web(&url).then_some(Self(url)).ok_or(BadReference::Base)
    }

    /// Makes `reference` absolute.
    ///
    /// # Errors
    /// A [`BadReference`]; an empty reference is no error but the base itself.
    pub fn resolve(&self, reference: &str) -> Result<Uri, BadReference> {
        self.join(reference, None)
    }

    /// As [`BaseUrl::resolve`], for a document whose encoding is not UTF-8: `encode` turns a query into its bytes.
    ///
    /// # Errors
    /// As [`BaseUrl::resolve`].
    pub fn resolve_with(
        &self,
        reference: &str,
        encode: &dyn Fn(&str) -> Cow<'_, [u8]>,
    ) -> Result<Uri, BadReference> {
        self.join(reference, Some(encode))
    }

    fn join(
        &self,
        reference: &str,
        encode: url::EncodingOverride<'_>,
    ) -> Result<Uri, BadReference> {
        if reference.len() > MAX_REFERENCE {
            return Err(BadReference::TooLong);
        }
        let reference = with_two_slashes(self.0.scheme(), reference);
        let parser = Url::options()
            .base_url(Some(&self.0))
            .encoding_override(encode);
        requestable(parser.parse(&reference).map_err(bad)?)
    }
}

/// The URL in the form that a request carries.
fn requestable(mut url: Url) -> Result<Uri, BadReference> {
    if !is_web(&url) {
        return Err(BadReference::Scheme);
    }
    // A page cannot hand us credentials. None of these fails on a URL with a host.
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    // The standard encodes it in a path, the crate does not.
    if url.path().contains('^') {
        let path = url.path().replace('^', "%5E");
        url.set_path(&path);
    }
    if url.as_str().len() > MAX_REFERENCE {
        return Err(BadReference::TooLong);
    }
    if url.host_str().is_none_or(|host| host.len() > MAX_HOST) {
        return Err(BadReference::Host);
    }
    // What is left to go wrong is a host that the URL Standard allows and http does not.
    Uri::try_from(String::from(url)).map_err(|_| BadReference::Host)
}

fn is_web(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https")
}

fn bad(error: ParseError) -> BadReference {
    match error {
        ParseError::InvalidPort => BadReference::Port,
        ParseError::Overflow => BadReference::TooLong,
        _ => BadReference::Host,
    }
}

/// `///host` is `//host` by the standard, with the scheme of the base in front or without. The crate takes the host for
/// empty.
fn with_two_slashes<'a>(scheme: &str, reference: &'a str) -> Cow<'a, str> {
    let trimmed = reference.trim_matches(|c: char| c <= ' ');
    let trimmed: Cow<'a, str> = if trimmed.contains(['\t', '\n', '\r']) {
        trimmed.replace(['\t', '\n', '\r'], "").into()
    } else {
        trimmed.into()
    };
    let prefix = match trimmed.split_once(':') {
        Some((before, _)) if before.eq_ignore_ascii_case(scheme) => before.len() + 1,
        _ => 0,
    };
    let after = trimmed[prefix..].trim_start_matches(['/', '\\']);
    if trimmed.len() - prefix - after.len() > 2 {
        format!("{}//{after}", &trimmed[..prefix]).into()
    } else {
        trimmed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(base: &str, reference: &str) -> Result<String, BadReference> {
        resolve(&base.parse().unwrap(), reference).map(|uri| uri.to_string())
    }

    const BASES: &[&str] = &[
        "https://www.example.com/",
        "https://www.example.com/a/b/c?d=e",
        "http://example.com:8080/a/",
        "http://example.com/a//b/../c",
    ];

    #[test]
    fn real_references_agree_with_the_standard() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("reference_cases.json")).unwrap();
        let bases = file["bases"].as_array().unwrap();
        let cases = file["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 96);
        for case in cases {
            let reference = case[0].as_str().unwrap();
            for (base, expected) in bases.iter().zip(case[1].as_array().unwrap()) {
                assert_eq!(
                    of(base.as_str().unwrap(), reference).ok().as_deref(),
                    expected.as_str(),
                    "{reference:?} at {base}"
                );
            }
        }
    }

    #[test]
    fn user_name_password_and_fragment_never_stay() {
        assert_eq!(
            of("https://u:p@www.example.com/x", "y#z").unwrap(),
            "https://www.example.com/y"
        );
    }

    #[test]
    fn a_reference_without_end_is_refused() {
        let long = "a".repeat(MAX_REFERENCE + 1);
        assert_eq!(of(BASES[0], &long), Err(BadReference::TooLong));
        assert_eq!(
            absolute(&format!("http://h/{long}")),
            Err(BadReference::TooLong)
        );
        let grows = "ä".repeat(MAX_REFERENCE / 2);
        assert_eq!(of(BASES[0], &grows), Err(BadReference::TooLong));
        let host = format!("//{}example/", "a.".repeat(125));
        assert_eq!(of(BASES[0], &host), Err(BadReference::Host));
    }

    #[test]
    fn a_base_must_be_absolute() {
        let base = Uri::from_static("/x");
        assert_eq!(resolve(&base, "y"), Err(BadReference::Base));
        assert_eq!(absolute("www.example.com/y"), Err(BadReference::Base));
        assert_eq!(absolute("ftp://example.com/"), Err(BadReference::Scheme));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (reference, why) in [
            ("mailto:a@b", BadReference::Scheme),
            ("https://", BadReference::Host),
            ("https://exa mple.com/", BadReference::Host),
            ("https://example.com:x/", BadReference::Port),
            ("https://example.com:65536/", BadReference::Port),
        ] {
            assert_eq!(of("http://h/", reference), Err(why), "{reference}");
        }
    }

    #[test]
    fn each_plain_letter_of_a_host_has_one_form() {
        let mut known = 0;
        for c in ('\u{80}'..='\u{FFFF}').filter(|c| c.is_alphabetic()) {
            let reference = format!("https://a{c}b.example/");
            if let Ok(once) = of(BASES[0], &reference) {
                assert!(once.is_ascii(), "{c:?}");
                assert_eq!(of(BASES[0], &once).as_ref(), Ok(&once), "{c:?}");
                known += 1;
            }
        }
        assert!(known > 30_000, "only {known} letters are known");
    }

    #[test]
    fn international_names_are_mapped() {
        for (name, ascii) in [
            ("faß.example", "xn--fa-hia.example"),
            ("ﬁ.example", "fi.example"),
            ("Ⅷ.example", "viii.example"),
            ("δοκιμή.example", "xn--jxalpdlp.example"),
            ("مثال.example", "xn--mgbh0fb.example"),
        ] {
            let url = absolute(&format!("http://{name}/")).unwrap();
            assert_eq!(url.host(), Some(ascii), "{name}");
        }
    }

    proptest! {
        /// What was resolved stays as it is when it is resolved again, whatever the base.
        #[test]
        fn a_resolved_reference_is_in_its_one_form(
            base in proptest::sample::select(BASES),
            reference in r#"(http:|https:|HTTP:|)[/\\]{0,3}[a-z0-9:@.%/\\?#ä \[\]|"'<>^`{}_-]{0,24}"#,
        ) {
            if let Ok(once) = of(base, &reference) {
                prop_assert_eq!(of("https://other.example/x", &once), Ok(once.clone()));
                prop_assert_eq!(absolute(&once).map(|uri| uri.to_string()), Ok(once));
            }
        }

        #[test]
        fn no_text_panics(base in proptest::sample::select(BASES), reference in ".{0,60}") {
            let _ = of(base, &reference);
            let _ = absolute(&reference);
        }
    }
}
