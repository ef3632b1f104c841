//! Which form and which language a reader prefers.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_LANGUAGE};

use super::text::Language;

/// The language with the highest weight in Accept-Language (RFC 9110, 12.5.4); of equal ones the first. English where
/// nothing fits.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let mut best = (0, Language::English);
    for (range, weight) in preferences(headers, ACCEPT_LANGUAGE) {
        let primary = range.split('-').next().unwrap_or_default();
        let known = Language::ALL
            .into_iter()
            .find(|language| primary == language.tag() || primary == "*");
        if let Some(language) = known.filter(|_| weight > best.0) {
            best = (weight, language);
        }
    }
    best.1
}

/// Whether JSON is preferred to HTML.
pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    let weight = |wanted: [&str; 3]| {
        preferences(headers, ACCEPT)
            .filter_map(|(range, weight)| {
                let specific = wanted.iter().position(|name| *name == range)?;
                Some((std::cmp::Reverse(specific), weight))
            })
            .max()
            .map_or(0, |(_, weight)| weight)
    };
    let json = weight(["application/json", "application/*", "*/*"]);
    json > weight(["text/html", "text/*", "*/*"])
}

/// The members of a field in lower case, with their weights in thousandths.
fn preferences(headers: &HeaderMap, name: http::HeaderName) -> impl Iterator<Item = (String, u16)> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(|member| {
            let mut parts = member.split(';').map(str::trim);
            let range = parts.next()?.to_ascii_lowercase();
            let weight = parts
                .filter_map(|parameter| parameter.strip_prefix(['q', 'Q'])?.strip_prefix('='))
                .find_map(|weight| weight.parse::<f32>().ok())
                .unwrap_or(1.0);
            // Thousandths of a number between 0 and 1.
            Some((range, (weight.clamp(0.0, 1.0) * 1000.0) as u16))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn languages() {
        for (value, expected) in [
            ("de-AT, en;q=0.5", Language::German),
            ("nl, fr;q=0.4, en;q=0.3", Language::French),
            ("nl", Language::English),
            ("de;q=0, fr;q=0", Language::English),
            ("*", Language::English),
            ("fr;q=x, ;;", Language::French),
            ("de;Q=0.4, fr;q=0.6", Language::French),
        ] {
            assert_eq!(
                language(&headers(ACCEPT_LANGUAGE, value)),
                expected,
                "{value}"
            );
        }
        assert_eq!(language(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn forms() {
        for (value, json) in [
            ("application/json", true),
            ("text/html, application/json;q=0.9", false),
            ("*/*", false),
            ("application/json, */*;q=0.1", true),
        ] {
            assert_eq!(wants_json(&headers(ACCEPT, value)), json, "{value}");
        }
        assert!(!wants_json(&HeaderMap::new()));
    }
}
