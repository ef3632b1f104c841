//! X-Robots-Tag, as far as a crawler needs it: may the links of this answer be followed?

use http::HeaderMap;

/// Whether `X-Robots-Tag` forbids the client named `token` to follow the links of an answer.
///
/// A field value is a list of rules; a name before a colon binds the rules after it to that client. A rule that itself
/// has a colon (`unavailable_after: …`) binds nobody.
pub(super) fn forbids_following(headers: &HeaderMap, token: &str) -> bool {
    headers
        .get_all("x-robots-tag")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value_forbids(value, token))
}

fn value_forbids(value: &str, token: &str) -> bool {
    let mut for_us = true;
    for part in value.split(',') {
        let rule = match part.split_once(':') {
            Some((name, rule)) => {
                let name = name.trim();
                let is_rule = [
                    "unavailable_after",
                    "max-snippet",
                    "max-image-preview",
                    "max-video-preview",
                ]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known));
                if is_rule {
                    continue;
                }
                for_us = name.eq_ignore_ascii_case(token) || name == "*";
                rule
            }
            None => part,
        };
        let rule = rule.trim();
        let said = rule.eq_ignore_ascii_case("nofollow") || rule.eq_ignore_ascii_case("none");
        if for_us && said {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_it_binds() {
        for (values, forbidden) in [
            (&[][..], false),
            (&["noindex"], false),
            (&["noindex, NoFollow"], true),
            (&["none"], true),
            (&["otherbot: nofollow"], false),
            (&["otherbot: noindex, nofollow"], false),
            (&["examplebot: nofollow"], true),
            (&["otherbot: noindex, ExampleBot: nofollow"], true),
            (&["noindex", "nofollow"], true),
            (&["otherbot: nofollow", "nofollow"], true),
            (&["unavailable_after: Tue, 01 Dec 2026 01:12:00 GMT"], false),
            (&["max-snippet: 5, nofollow"], true),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("x-robots-tag", value.parse().unwrap());
            }
            let found = forbids_following(&headers, "ExampleBot");
            assert_eq!(found, forbidden, "{values:?}");
        }
    }
}
