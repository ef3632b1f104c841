//! One line of JSON for each URL.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use super::frontier::Found;

/// What became of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Record {
    /// The URL that was asked for.
    pub url: String,
    /// What led to it.
    pub found: Found,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Where the answer came from.
    pub from: Option<From>,
    /// How long the request waited for its host, in milliseconds.
    pub waited_ms: u64,
    /// Whether the site does not want it in an index: `noindex` in X-Robots-Tag or in the page. It was read, and its
    /// content is not to be kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub noindex: bool,
    /// Why nothing was sent, or nothing more.
    pub refusal: Option<Refused>,
    /// A list says that it did not change since the last visit, so that the site was not asked. `status` and `from`
    /// are then those of the copy, if there is one that may be used.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// What went wrong on the way, if it was not a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum From {
    /// The site sent it.
    Network,
    /// The site confirmed the copy that is kept.
    Validated,
    /// The copy is fresh, the site was not asked.
    Cache,
}

/// Why a request was refused on this side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refused {
    /// The stable name of the cause.
    pub kind: String,
    /// The rule of robots.txt that forbids it, as it stands there.
    pub rule: Option<String>,
    /// The line of that rule.
    pub line: Option<u64>,
    /// When a new try is not refused for this reason, as a date of RFC 3339.
    pub retry_at: Option<String>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if let (Some(rule), Some(line)) = (&self.rule, self.line) {
            write!(f, ", line {line} of robots.txt: {rule}")?;
        }
        match &self.retry_at {
            Some(at) => write!(f, ", not before {at}"),
            None => Ok(()),
        }
    }
}

impl Record {
    /// A record of `url` without an outcome.
    pub(super) fn new(url: String, found: Found) -> Self {
        Self {
            url,
            found,
            status: None,
            from: None,
            waited_ms: 0,
            noindex: false,
            refusal: None,
            unchanged: false,
            error: None,
        }
    }
}

impl From {
    /// The word for people.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Validated => "validated",
            Self::Cache => "cache",
        }
    }
}

/// Whole milliseconds.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A date for machines: RFC 3339 in UTC, whole seconds. A fraction is rounded up, since coming back early is not
/// allowed.
pub(super) fn date(time: SystemTime) -> String {
    // The last second of the year 9999: neither format has a word for anything later.
    const LAST: u64 = 253_402_300_799;
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let since = since.unwrap_or_default();
    let seconds = since.as_secs() + u64::from(since.subsec_nanos() > 0);
    let up = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(LAST));
    // "Tue, 01 Dec 2026 01:12:00 GMT"
    let http = httpdate::fmt_http_date(up);
    let month = match &http[8..11] {
        "Jan" => 1,
        "Feb" => 2,
        "Mar" => 3,
        "Apr" => 4,
        "May" => 5,
        "Jun" => 6,
        "Jul" => 7,
        "Aug" => 8,
        "Sep" => 9,
        "Oct" => 10,
        "Nov" => 11,
        _ => 12,
    };
    format!(
        "{}-{month:02}-{}T{}Z",
        &http[12..16],
        &http[5..7],
        &http[17..25]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_programs_read() {
        let mut record = Record::new("http://a.test/".to_owned(), Found::Start);
        record.status = Some(200);
        record.from = Some(From::Validated);
        record.waited_ms = 500;
        assert_eq!(
            serde_json::to_string(&record).unwrap(),
            r#"{"url":"http://a.test/","found":"start","status":200,"from":"validated","waited_ms":500,"refusal":null}"#
        );
        let mut record = Record::new("http://a.test/x".to_owned(), Found::Link);
        record.refusal = Some(Refused {
            kind: "disallowed".to_owned(),
            rule: Some("/x".to_owned()),
            line: Some(2),
            retry_at: None,
        });
        assert_eq!(
            serde_json::to_string(&record).unwrap(),
            r#"{"url":"http://a.test/x","found":"link","status":null,"from":null,"waited_ms":0,"refusal":{"kind":"disallowed","rule":"/x","line":2,"retry_at":null}}"#
        );
        let mut record = Record::new("http://a.test/y".to_owned(), Found::Sitemap);
        record.unchanged = true;
        assert_eq!(
            serde_json::to_string(&record).unwrap(),
            r#"{"url":"http://a.test/y","found":"sitemap","status":null,"from":null,"waited_ms":0,"refusal":null,"unchanged":true}"#
        );
    }

    #[test]
    fn dates_are_rounded_up() {
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        assert_eq!(date(at(0)), "1970-01-01T00:00:00Z");
        assert_eq!(date(at(1)), "1970-01-01T00:00:01Z");
        assert_eq!(date(at(1_796_087_520_000)), "2026-12-01T01:12:00Z");
        let late = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50);
        assert_eq!(date(late), "9999-12-31T23:59:59Z");
    }
}
