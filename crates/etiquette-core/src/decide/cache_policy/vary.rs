//! Vary: which request fields a stored response was selected by (RFC 9111, 4.1).
//!
//! Values are compared after a normalisation that does not change their meaning: lines are joined, white space around
//! commas is removed; Accept-Language and Accept-Encoding are also compared without case and without the order of
//! members of equal weight.

use http::header::{
    ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, COOKIE, HeaderMap, HeaderName,
    PROXY_AUTHORIZATION, VARY,
};

use super::directives::members;

/// The request fields that selected a stored response, with their normalised values.
///
/// Sorted by name. It is the identity of a variant: two responses for one URL replace each other when it is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Selecting(Vec<Field>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Field {
    name: Box<str>,
    /// `None`: the request did not have the field.
    value: Option<Box<[u8]>>,
}

/// More names in one Vary than any site needs count as `*`: such a response is not reused.
const MOST_FIELDS: usize = 64;

impl Selecting {
    /// The fields that Vary names in `response`, as `request` has them, and those of `always` that it has; `None` when
    /// Vary is `*`, or names something that is no field: the response then satisfies its own request only.
    #[must_use]
    pub fn of(request: &HeaderMap, response: &HeaderMap, always: &[HeaderName]) -> Option<Self> {
        let mut fields: Vec<Field> = always.iter().map(|name| Field::of(name, request)).collect();
        for line in response.get_all(VARY) {
            for name in line
                .as_bytes()
                .split(|&c| c == b',')
                .map(<[u8]>::trim_ascii)
            {
                if name.is_empty() {
                    continue;
                }
                if name == b"*" || fields.len() == MOST_FIELDS {
                    return None;
                }
                let name = HeaderName::from_bytes(name).ok()?;
                if !fields.iter().any(|field| *field.name == *name.as_str()) {
                    fields.push(Field::of(&name, request));
                }
            }
        }
        fields.sort_unstable();
        Some(Self(fields))
    }

    /// Puts together what [`Selecting::fields`] gave, for stores that keep it outside the process.
    #[must_use]
    pub fn from_fields(fields: impl IntoIterator<Item = (Box<str>, Option<Box<[u8]>>)>) -> Self {
        let mut fields: Vec<Field> = fields
            .into_iter()
            .map(|(name, value)| Field { name, value })
            .collect();
        fields.sort_unstable();
        Self(fields)
    }

    /// The names and normalised values, sorted.
    #[must_use]
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, Option<&[u8]>)> {
        self.0.iter().map(|f| (&*f.name, f.value.as_deref()))
    }

    /// Whether `request` selects the response that these fields belong to.
    #[must_use]
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.0.iter().all(
            |field| match (&field.value, normalised(&field.name, request)) {
                (None, None) => true,
                (Some(stored), Some(asked)) => **stored == *asked,
                _ => false,
            },
        )
    }

    /// Whether one of the values is a secret of the caller, which a store that outlives the process must not keep.
    #[must_use]
    pub fn holds_credentials(&self) -> bool {
        [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION]
            .iter()
            .any(|secret| {
                self.0
                    .iter()
                    .any(|f| *f.name == *secret.as_str() && f.value.is_some())
            })
    }

    /// The bytes that the fields occupy in memory, about.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.0
            .iter()
            .map(|f| 48 + f.name.len() + f.value.as_ref().map_or(0, |v| v.len()))
            .sum()
    }
}

impl Field {
    fn of(name: &HeaderName, request: &HeaderMap) -> Self {
        Self {
            name: name.as_str().into(),
            value: normalised(name.as_str(), request).map(Vec::into_boxed_slice),
        }
    }
}

/// The value of a request field, all lines joined, without white space around commas.
fn normalised(name: &str, request: &HeaderMap) -> Option<Vec<u8>> {
    let mut lines = request.get_all(name).iter().peekable();
    lines.peek()?;
    let by_weight = name == ACCEPT_LANGUAGE.as_str() || name == ACCEPT_ENCODING.as_str();
    let mut parts: Vec<Vec<u8>> = Vec::new();
    for line in lines {
        for member in members(line.as_bytes()).map(<[u8]>::trim_ascii) {
            let mut part = member.to_vec();
            if by_weight {
                part.retain(|c| !c.is_ascii_whitespace());
                part.make_ascii_lowercase();
            }
            parts.push(part);
        }
    }
    if by_weight {
        parts.retain(|part| !part.is_empty());
        // The weight is part of the member, so that sorting keeps it with its tag and forgets the order only.
        parts.sort_unstable();
        parts.dedup();
    }
    Some(parts.join(&b','))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(n, v)| {
                (
                    HeaderName::from_bytes(n.as_bytes()).unwrap(),
                    v.parse().unwrap(),
                )
            })
            .collect()
    }

    fn same(vary: &str, first: &[(&str, &str)], second: &[(&str, &str)]) -> bool {
        Selecting::of(&map(first), &map(&[("vary", vary)]), &[])
            .unwrap()
            .matches(&map(second))
    }

    #[test]
    fn values_that_mean_the_same_are_the_same() {
        assert!(same(
            "Foo",
            &[("foo", "1, 2")],
            &[("foo", "1"), ("foo", "2")]
        ));
        assert!(same("Foo", &[("foo", "1,2")], &[("foo", " 1, 2 ")]));
        assert!(!same("Foo", &[("foo", "1")], &[("foo", "2")]));
        assert!(!same("Foo", &[("foo", "a")], &[("foo", "A")]));
        assert!(!same("Foo", &[("foo", "")], &[]));
        assert!(!same(
            "Foo, Bar",
            &[("foo", "1")],
            &[("foo", "1"), ("bar", "1")]
        ));
        assert!(same(
            "Foo, Bar",
            &[("foo", "1")],
            &[("foo", "1"), ("baz", "1")]
        ));
        let lang = "Accept-Language";
        assert!(same(lang, &[(lang, "en, de")], &[(lang, " DE ,eN")]));
        assert!(same(lang, &[(lang, "en;q=0.5")], &[(lang, "en; q=0.5")]));
        assert!(!same(lang, &[(lang, "en, de")], &[(lang, "en, de;q=0.5")]));
    }

    #[test]
    fn a_star_is_never_selected() {
        for vary in ["*", ", *", "*, Foo", "Foo, *", "f oo"] {
            assert!(
                Selecting::of(&map(&[]), &map(&[("vary", vary)]), &[]).is_none(),
                "{vary}"
            );
        }
        let lines = map(&[("vary", ""), ("vary", "*")]);
        assert!(Selecting::of(&map(&[]), &lines, &[]).is_none());
    }

    #[test]
    fn credentials_are_seen() {
        let with = map(&[("cookie", "a=b")]);
        let vary = map(&[("vary", "Cookie")]);
        assert!(
            Selecting::of(&with, &vary, &[])
                .unwrap()
                .holds_credentials()
        );
        assert!(
            !Selecting::of(&map(&[]), &vary, &[])
                .unwrap()
                .holds_credentials()
        );
    }
}
