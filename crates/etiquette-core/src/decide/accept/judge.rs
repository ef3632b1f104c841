use http::HeaderValue;

use super::media_type::{MediaType, split_unquoted};

/// Whether an answer's type is one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Acceptability {
    /// It is.
    Ok,
    /// It is not: the body need not be read.
    Refuse,
    /// The type says nothing; the first bytes may.
    Sniff,
}

impl Acceptability {
    /// The stable name.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refuse => "refuse",
            Self::Sniff => "sniff",
        }
    }
}

/// Compares the Content-Type of an answer with the Accept that was sent.
///
/// The most specific range that matches decides, and weight 0 refuses (RFC 9110, 12.5.1). A missing or unreadable
/// Content-Type says nothing, nor do `application/octet-stream` and `text/plain` where no range mentions them: servers
/// give them to files that they do not know.
#[must_use]
pub fn judge(accept: &HeaderValue, content_type: Option<&HeaderValue>) -> Acceptability {
    let Some(came) = content_type
        .and_then(|value| value.to_str().ok())
        .and_then(|text| MediaType::read(text, true))
    else {
        return Acceptability::Sniff;
    };
    match weight_of(accept, &came) {
        Some(0) => Acceptability::Refuse,
        Some(_) => Acceptability::Ok,
        None if says_nothing(&came) => Acceptability::Sniff,
        None => Acceptability::Refuse,
    }
}

fn says_nothing(came: &MediaType) -> bool {
    matches!(
        (came.kind.as_str(), came.subtype.as_str()),
        ("application", "octet-stream") | ("text", "plain")
    )
}

/// The weight in thousandths of the most specific range that matches; the highest of equally specific ones.
pub(super) fn weight_of(accept: &HeaderValue, came: &MediaType) -> Option<u16> {
    let accept = accept.to_str().ok()?;
    split_unquoted(accept, b',')
        .filter_map(|range| {
            let (range, weight) = range_and_weight(range)?;
            Some((range.matches(came)?, weight))
        })
        .max()
        .map(|(_, weight)| weight)
}

/// A range and its weight; what stands behind the weight is no part of the range.
fn range_and_weight(text: &str) -> Option<(MediaType, u16)> {
    let mut range = MediaType::read(text, true)?;
    let weight = range.parameters.iter().position(|(name, _)| name == "q");
    let Some(at) = weight else {
        return Some((range, 1000));
    };
    let weight = read_weight(&range.parameters[at].1)?;
    range.parameters.truncate(at);
    Some((range, weight))
}

/// Reads `0`, `0.5`, `1.000` as thousandths.
fn read_weight(text: &str) -> Option<u16> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    if rest.len() > 3 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u16 = format!("{rest:0<3}").parse().ok()?;
    match (whole, fraction) {
        ("0", fraction) => Some(fraction),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(accept: &str, content_type: &str) -> Acceptability {
        judge(
            &accept.parse().unwrap(),
            Some(&content_type.parse().unwrap()),
        )
    }

    #[test]
    fn what_a_range_mentions_is_not_sniffed() {
        assert_eq!(
            judged("text/html, text/plain;q=0", "text/plain"),
            Acceptability::Refuse
        );
        assert_eq!(judged("text/*", "text/plain"), Acceptability::Ok);
        assert_eq!(
            judged("text/html, */*;q=0.1", "application/octet-stream"),
            Acceptability::Ok
        );
        assert_eq!(judged("text/html", "text/plain"), Acceptability::Sniff);
    }

    #[test]
    fn odd_fields() {
        assert_eq!(judged("", "text/html"), Acceptability::Refuse);
        assert_eq!(judged("text/html;q=2", "text/html"), Acceptability::Refuse);
        assert_eq!(
            judged("text/html;q=1;ext=\"a,b\"", "text/html"),
            Acceptability::Ok
        );
        assert_eq!(
            judged("text/html", "text/html, text/html"),
            Acceptability::Sniff
        );
    }
}
