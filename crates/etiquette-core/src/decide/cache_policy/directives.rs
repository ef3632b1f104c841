//! Cache-Control, of requests and of responses (RFC 9111, 5.2; RFC 5861; RFC 8246).
//!
//! Names are compared without case, values may be quoted, unknown directives are ignored. A lifetime that cannot be
//! read counts as zero: a response with invalid freshness is stale (RFC 9111, 4.2.1). Of two values of one directive
//! the first counts.

use std::time::Duration;

use http::header::{CACHE_CONTROL, HeaderMap, HeaderName, PRAGMA};

/// Longer lifetimes count as this (RFC 9111, 1.2.2).
const LONGEST: u64 = 1 << 31;

/// A directive that may be qualified by names of fields (RFC 9111, 5.2.2.4 and 5.2.2.7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Qualifiable {
    /// The directive is absent.
    #[default]
    Absent,
    /// It binds the whole response.
    Unqualified,
    /// It binds these fields only.
    Qualified(Vec<HeaderName>),
}

/// What a response says about its storing and reuse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResponseDirectives {
    /// `max-age`; unreadable values are zero.
    pub max_age: Option<Duration>,
    /// `s-maxage`; unreadable values are zero.
    pub s_maxage: Option<Duration>,
    /// `no-store`
    pub no_store: bool,
    /// `no-cache`
    pub no_cache: Qualifiable,
    /// `private`
    pub private: Qualifiable,
    /// `public`
    pub public: bool,
    /// `must-revalidate`
    pub must_revalidate: bool,
    /// `proxy-revalidate`
    pub proxy_revalidate: bool,
    /// `must-understand`
    pub must_understand: bool,
    /// `stale-while-revalidate` (RFC 5861, 3)
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error` (RFC 5861, 4)
    pub stale_if_error: Option<Duration>,
}

/// What a request says about the responses that it accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestDirectives {
    /// `max-age`; unreadable values are zero.
    pub max_age: Option<Duration>,
    /// `min-fresh`
    pub min_fresh: Option<Duration>,
    /// `max-stale`; without a value any staleness will do, which is [`Duration::MAX`].
    pub max_stale: Option<Duration>,
    /// `no-cache`, or `Pragma: no-cache` where there is no Cache-Control.
    pub no_cache: bool,
    /// `no-store`
    pub no_store: bool,
    /// `only-if-cached`
    pub only_if_cached: bool,
    /// `stale-if-error` (RFC 5861, 4)
    pub stale_if_error: Option<Duration>,
}

impl ResponseDirectives {
    /// Reads all lines of Cache-Control.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        each(headers, &CACHE_CONTROL, |name, value| {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if is("max-age") {
                found.max_age.get_or_insert(value.lifetime());
            } else if is("s-maxage") {
                found.s_maxage.get_or_insert(value.lifetime());
            } else if is("no-store") {
                found.no_store = true;
            } else if is("no-cache") {
                found.no_cache.widen(&value);
            } else if is("private") {
                found.private.widen(&value);
            } else if is("public") {
                found.public = true;
            } else if is("must-revalidate") {
                found.must_revalidate = true;
            } else if is("proxy-revalidate") {
                found.proxy_revalidate = true;
            } else if is("must-understand") {
                found.must_understand = true;
            } else if is("stale-while-revalidate") {
                found.stale_while_revalidate.get_or_insert(value.lifetime());
            } else if is("stale-if-error") {
                found.stale_if_error.get_or_insert(value.lifetime());
            }
        });
        found
    }

    /// Whether the response forbids its use once it is stale, whatever goes wrong (RFC 9111, 4.2.4).
    #[must_use]
    pub fn never_stale(&self, shared: bool) -> bool {
        self.must_revalidate
            || self.no_cache == Qualifiable::Unqualified
            || (shared && (self.proxy_revalidate || self.s_maxage.is_some()))
    }
}

impl RequestDirectives {
    /// Reads all lines of Cache-Control, and Pragma where there is none.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut found = Self::default();
        if !headers.contains_key(CACHE_CONTROL) {
            each(headers, &PRAGMA, |name, _| {
                found.no_cache |= name.eq_ignore_ascii_case(b"no-cache");
            });
            return found;
        }
        each(headers, &CACHE_CONTROL, |name, value| {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            if is("max-age") {
                found.max_age.get_or_insert(value.lifetime());
            } else if is("min-fresh") {
                // An unreadable min-fresh is obeyed by a request to the origin.
                let wanted = value.seconds().unwrap_or(Duration::MAX);
                found.min_fresh.get_or_insert(wanted);
            } else if is("max-stale") {
                let limit = match value {
                    Value::None => Some(Duration::MAX),
                    ref given => given.seconds(),
                };
                found.max_stale = found.max_stale.or(limit);
            } else if is("no-cache") {
                found.no_cache = true;
            } else if is("no-store") {
                found.no_store = true;
            } else if is("only-if-cached") {
                found.only_if_cached = true;
            } else if is("stale-if-error") {
                found.stale_if_error = found.stale_if_error.or(value.seconds());
            }
        });
        found
    }
}

impl Qualifiable {
    /// Adds one occurrence of the directive.
    fn widen(&mut self, value: &Value<'_>) {
        let text = match value {
            Value::None | Value::Broken => {
                *self = Self::Unqualified;
                return;
            }
            Value::Text(text) => text,
        };
        let mut names = match std::mem::take(self) {
            Self::Unqualified => {
                *self = Self::Unqualified;
                return;
            }
            Self::Qualified(names) => names,
            Self::Absent => Vec::new(),
        };
        for name in text.split(|&c| c == b',').map(<[u8]>::trim_ascii) {
            if name.is_empty() {
                continue;
            }
            let Ok(name) = HeaderName::from_bytes(name) else {
                *self = Self::Unqualified;
                return;
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        *self = if names.is_empty() {
            Self::Unqualified
        } else {
            Self::Qualified(names)
        };
    }
}

/// The value of a directive.
enum Value<'a> {
    None,
    Text(std::borrow::Cow<'a, [u8]>),
    /// There is an `=`, but what follows is neither a token nor a quoted string.
    Broken,
}

impl Value<'_> {
    fn seconds(&self) -> Option<Duration> {
        let Self::Text(text) = self else { return None };
        seconds(text)
    }

    /// A lifetime that cannot be read is over.
    fn lifetime(&self) -> Duration {
        self.seconds().unwrap_or(Duration::ZERO)
    }
}

/// Delta-seconds (RFC 9111, 1.2.2): digits and nothing else, large values cut.
pub(super) fn seconds(digits: &[u8]) -> Option<Duration> {
    if digits.is_empty() {
        return None;
    }
    let mut sum = 0_u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        sum = (sum * 10 + u64::from(digit - b'0')).min(LONGEST);
    }
    Some(Duration::from_secs(sum))
}

/// Hands every directive in the lines of `field` to `take`.
fn each(headers: &HeaderMap, field: &HeaderName, mut take: impl FnMut(&[u8], Value<'_>)) {
    for line in headers.get_all(field) {
        for member in members(line.as_bytes()) {
            let member = member.trim_ascii();
            let end = member
                .iter()
                .position(|&c| !is_token(c))
                .unwrap_or(member.len());
            let (name, rest) = member.split_at(end);
            if !name.is_empty() {
                take(name, value(rest));
            }
        }
    }
}

/// What follows a directive's name.
fn value(rest: &[u8]) -> Value<'_> {
    let Some(text) = rest.strip_prefix(b"=") else {
        // White space before the equals sign is no value, and no value is not what was meant.
        return if rest.contains(&b'=') {
            Value::Broken
        } else {
            Value::None
        };
    };
    if let Some(quoted) = text.strip_prefix(b"\"") {
        let Some(inner) = quoted.strip_suffix(b"\"") else {
            return Value::Broken;
        };
        if !inner.contains(&b'\\') {
            return Value::Text(inner.into());
        }
        let mut plain = Vec::with_capacity(inner.len());
        let mut escaped = false;
        for &c in inner {
            if c == b'\\' && !escaped {
                escaped = true;
            } else {
                plain.push(c);
                escaped = false;
            }
        }
        return Value::Text(plain.into());
    }
    if !text.is_empty() && text.iter().all(|&c| is_token(c)) {
        Value::Text(text.into())
    } else {
        Value::Broken
    }
}

/// The members of a comma-separated list; commas in quoted strings do not separate.
pub(super) fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let list = rest?;
        let (mut quoted, mut escaped) = (false, false);
        let end = list.iter().position(|&c| {
            if escaped {
                escaped = false;
            } else if quoted && c == b'\\' {
                escaped = true;
            } else if c == b'"' {
                quoted = !quoted;
            } else if c == b',' && !quoted {
                return true;
            }
            false
        });
        match end {
            Some(end) => {
                rest = Some(&list[end + 1..]);
                Some(&list[..end])
            }
            None => {
                rest = None;
                Some(list)
            }
        }
    })
}

/// Token characters (RFC 9110, 5.6.2).
fn is_token(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        lines
            .iter()
            .map(|line| (CACHE_CONTROL, line.parse().unwrap()))
            .collect()
    }

    fn response(lines: &[&str]) -> ResponseDirectives {
        ResponseDirectives::of(&headers(lines))
    }

    #[test]
    fn lifetimes() {
        for (line, expected) in [
            ("max-age=60", 60),
            ("MaX-aGe=60", 60),
            ("max-age=\"60\"", 60),
            ("max-age=0060", 60),
            ("foo, max-age=60", 60),
            ("max-age=60, max-age=1", 60),
            ("max-age=99999999999999999999999", LONGEST),
            ("extension=\"max-age=3600\", max-age=1", 1),
            ("extension=\"a\\\", max-age=3600\", max-age=1", 1),
            ("max-age='60'", 0),
            ("max-age=-60", 0),
            ("max-age =60", 0),
            ("max-age= 60", 0),
            ("max-age=60.0", 0),
            ("max-age=60a", 0),
            ("max-age", 0),
            ("max-age=", 0),
            ("max-age=\"60", 0),
        ] {
            let found = response(&[line]).max_age;
            assert_eq!(found, Some(Duration::from_secs(expected)), "{line}");
        }
        assert_eq!(
            response(&["s-maxage=5", "max-age=1"])
                .s_maxage
                .unwrap()
                .as_secs(),
            5
        );
    }

    #[test]
    fn qualified_directives() {
        assert_eq!(response(&["No-CaChE"]).no_cache, Qualifiable::Unqualified);
        let fields = |names: &[&'static str]| {
            Qualifiable::Qualified(names.iter().map(|n| HeaderName::from_static(n)).collect())
        };
        assert_eq!(
            response(&["no-cache=\"a, B\""]).no_cache,
            fields(&["a", "b"])
        );
        assert_eq!(
            response(&["no-cache=a", "no-cache=b"]).no_cache,
            fields(&["a", "b"])
        );
        assert_eq!(
            response(&["no-cache=a, no-cache"]).no_cache,
            Qualifiable::Unqualified
        );
        assert_eq!(
            response(&["private=\"\""]).private,
            Qualifiable::Unqualified
        );
        assert_eq!(
            response(&["private=\"a b\""]).private,
            Qualifiable::Unqualified
        );
        assert!(response(&["no-store;x"]).no_store);
    }

    #[test]
    fn requests() {
        let of = |line: &str| RequestDirectives::of(&headers(&[line]));
        assert_eq!(of("max-stale").max_stale, Some(Duration::MAX));
        assert_eq!(of("max-stale=x").max_stale, None);
        assert_eq!(of("min-fresh=x").min_fresh, Some(Duration::MAX));
        assert!(of("nothing, only-if-cached").only_if_cached);
        let mut pragma: HeaderMap = [(PRAGMA, "x, No-Cache".parse().unwrap())]
            .into_iter()
            .collect();
        assert!(RequestDirectives::of(&pragma).no_cache);
        pragma.insert(CACHE_CONTROL, "max-age=5".parse().unwrap());
        assert!(!RequestDirectives::of(&pragma).no_cache);
    }
}
