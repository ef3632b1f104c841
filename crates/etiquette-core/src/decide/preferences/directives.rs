//! Robots directives of a page: X-Robots-Tag and `<meta name="robots">`, as Google documents them.

use std::collections::BTreeSet;
use std::fmt;

/// The rules in force for one client, in lower case; those with a value as `name:value`.
///
/// General rules and those for the client's own token add up. `none` stands as `nofollow` and `noindex`; what changes
/// nothing (`all`, `index`, `follow`) and what is unknown is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives(BTreeSet<String>);

/// Rules without a value. `noai` and `noimageai` are a convention of DeviantArt's.
const PLAIN: &[&str] = &[
    "noindex",
    "nofollow",
    "noarchive",
    "nocache",
    "nosnippet",
    "noimageindex",
    "notranslate",
    "indexifembedded",
    "noai",
    "noimageai",
];

impl Directives {
    /// Reads the lines of X-Robots-Tag for the client with this token. Lines are read one by one: a user-agent prefix
    /// holds to the next one or to the end of its line.
    #[must_use]
    pub fn from_header<'a>(lines: impl IntoIterator<Item = &'a [u8]>, token: &str) -> Self {
        let mut directives = Self::default();
        for line in lines {
            directives.add_line(&String::from_utf8_lossy(line), Some(token));
        }
        directives
    }

    /// Adds a `<meta name content>` element of the page, if it is for all robots or for the client with this token.
    pub fn add_meta(&mut self, name: &str, content: &str, token: &str) {
        let name = name.trim();
        if name.eq_ignore_ascii_case("robots") || name.eq_ignore_ascii_case(token) {
            self.add_line(content, None);
        }
    }

    /// Whether a rule such as `noindex` is in force.
    #[must_use]
    pub fn has(&self, rule: &str) -> bool {
        self.0.contains(rule)
    }

    /// The rules in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all rules of `other`.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Reads one line; with a token, parts may have user-agent prefixes.
    fn add_line(&mut self, line: &str, token: Option<&str>) {
        let mut ours = true;
        let mut parts = line.split(',').peekable();
        while let Some(part) = parts.next() {
            let mut rule = part.trim();
            if let (Some(token), Some((prefix, rest))) = (token, rule.split_once(':')) {
                let prefix = prefix.trim();
                if !is_valued(prefix) {
                    ours = prefix == "*" || prefix.eq_ignore_ascii_case(token);
                    rule = rest.trim();
                }
            }
            // The comma behind the weekday of a date belongs to the date.
            let date = match parts.peek() {
                Some(rest) if is_cut_date(rule) => Some(format!("{rule},{rest}")),
                _ => None,
            };
            if let Some(date) = &date {
                parts.next();
                rule = date.trim_end();
            }
            if ours {
                self.add(rule);
            }
        }
    }

    fn add(&mut self, rule: &str) {
        let (name, value) = match rule.split_once(':') {
            Some((name, value)) => (name.trim().to_ascii_lowercase(), Some(value.trim())),
            None => (rule.to_ascii_lowercase(), None),
        };
        let known = match (name.as_str(), value) {
            ("none", None) => {
                self.0.insert("noindex".to_owned());
                self.0.insert("nofollow".to_owned());
                return;
            }
            (plain, None) => PLAIN.contains(&plain),
            ("max-snippet" | "max-video-preview", Some(number)) => {
                number.parse::<i64>().is_ok_and(|number| number >= -1)
            }
            ("max-image-preview", Some(size)) => ["none", "standard", "large"]
                .iter()
                .any(|known| known.eq_ignore_ascii_case(size)),
            ("unavailable_after", Some(date)) => date.bytes().any(|byte| byte.is_ascii_digit()),
            _ => false,
        };
        if known {
            self.0.insert(match value {
                // A date is kept as written: lower case would be another notation.
                Some(date) if name == "unavailable_after" => format!("{name}:{date}"),
                Some(value) => format!("{name}:{}", value.to_ascii_lowercase()),
                None => name,
            });
        }
    }
}

/// Whether a colon behind `name` starts a value, so that `name` is no user-agent.
fn is_valued(name: &str) -> bool {
    [
        "max-snippet",
        "max-image-preview",
        "max-video-preview",
        "unavailable_after",
    ]
    .iter()
    .any(|valued| valued.eq_ignore_ascii_case(name))
}

/// Whether `rule` is `unavailable_after` with a weekday, which a comma and the date follow.
fn is_cut_date(rule: &str) -> bool {
    rule.split_once(':').is_some_and(|(name, value)| {
        let weekday = value.trim();
        name.trim().eq_ignore_ascii_case("unavailable_after")
            && weekday.len() >= 3
            && weekday.bytes().all(|byte| byte.is_ascii_alphabetic())
    })
}

impl fmt::Display for Directives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, rule) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            f.write_str(rule)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_values_together() {
        let read =
            |line: &str| Directives::from_header([line.as_bytes()], "ExampleBot").to_string();
        assert_eq!(
            read("examplebot: unavailable_after: Wed, 25 Jun 2025 15:00:00 GMT, noarchive"),
            "noarchive, unavailable_after:Wed, 25 Jun 2025 15:00:00 GMT"
        );
        assert_eq!(read("otherbot: max-snippet: 3, *: noindex"), "noindex");
        assert_eq!(read("unavailable_after: Wed"), "");
        assert_eq!(read("max-snippet: -2, max-image-preview: HUGE"), "");
    }
}
