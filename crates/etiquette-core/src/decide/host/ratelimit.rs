//! The RateLimit field (draft-ietf-httpapi-ratelimit-headers): a client that has nothing left stops until the window ends.
//!
//! The field is a list of items with parameters (RFC 9651): `"default";r=0;t=20`. Only r (left) and t (seconds to the
//! next window) matter here. What does not parse is skipped: the field is advice, and a pause is never shortened by it.

use std::time::Duration;

use http::HeaderMap;

/// How long the longest exhausted quota still runs, if one is exhausted.
pub(super) fn exhausted_for(headers: &HeaderMap) -> Option<Duration> {
    headers
        .get_all("ratelimit")
        .iter()
        .flat_map(|line| members(line.as_bytes()))
        .filter_map(exhausted)
        .max()
        .map(Duration::from_secs)
        .filter(|wait| !wait.is_zero())
}

/// The members of a list: commas and semicolons inside quoted strings do not separate.
fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    split_outside_quotes(line, b',')
}

/// The seconds that a member says remain, where it has r=0.
fn exhausted(member: &[u8]) -> Option<u64> {
    let (mut left, mut seconds) = (None, None);
    for parameter in split_outside_quotes(member, b';').skip(1) {
        let parameter = parameter.trim_ascii();
        if let Some(value) = parameter.strip_prefix(b"r=") {
            left = integer(value);
        } else if let Some(value) = parameter.strip_prefix(b"t=") {
            seconds = integer(value);
        }
    }
    (left? == 0).then_some(seconds?)
}

/// An sf-integer that is not negative: at most 15 digits (RFC 9651, 3.3.1).
fn integer(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 15 {
        return None;
    }
    text.iter().try_fold(0, |sum: u64, byte| {
        byte.is_ascii_digit()
            .then(|| sum * 10 + u64::from(byte - b'0'))
    })
}

fn split_outside_quotes(text: &[u8], at: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |byte| {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            false
        } else {
            quoted = *byte == b'"';
            *byte == at
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(lines: &[&'static str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("ratelimit", line.parse().unwrap());
        }
        exhausted_for(&headers).map(|wait| wait.as_secs())
    }

    #[test]
    fn only_an_exhausted_quota_stops() {
        assert_eq!(seconds(&["\"d\";r=0;t=20"]), Some(20));
        assert_eq!(seconds(&["\"d\";r=1;t=20"]), None);
        assert_eq!(seconds(&["\"d\";r=0"]), None);
        assert_eq!(seconds(&["\"d\"; t=20; r=0"]), Some(20));
        assert_eq!(
            seconds(&["\"a\";r=0;t=5, \"b\";r=0;t=9", "\"c\";r=3;t=99"]),
            Some(9)
        );
    }

    #[test]
    fn quoted_separators_do_not_separate() {
        assert_eq!(seconds(&["\"x;r=0;t=9\";r=4;t=20"]), None);
        assert_eq!(seconds(&["\"a,\\\"b;r=0\";r=0;t=3"]), Some(3));
        assert_eq!(seconds(&["\"unclosed;r=0;t=9"]), None);
    }

    #[test]
    fn numbers_out_of_range_are_no_numbers() {
        assert_eq!(seconds(&["\"d\";r=0;t=9999999999999999"]), None);
        assert_eq!(seconds(&["\"d\";r=0;t=-5"]), None);
    }
}
