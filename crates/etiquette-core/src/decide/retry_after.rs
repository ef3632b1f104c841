//! Retry-After (RFC 9110, 10.2.3): how long a site asks to be left alone.
//!
//! **Flow**: the field's lines and the server's present go in; a wait from receipt comes out, or the statement that
//! there is none to be used. **Scope**: reading alone. What follows from it (a default pause when there is no usable
//! value, a refusal when the wait is too long) belongs to [`crate::decide::host`].
//!
//! Dates are measured on the server's own clock, Date + Age (RFC 9111, 4.2.3), so that neither a wrong local clock nor
//! a stored answer shortens or lengthens the wait. Whatever is read leniently is rounded up.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{AGE, DATE, RETRY_AFTER};

use crate::field::date;

/// What a response says about coming back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryAfter {
    /// Wait so long from the receipt of the response; zero for a date that has passed.
    Wait(Duration),
    /// The field is there, but has no value that could be used.
    Unusable,
    /// The field is absent.
    Absent,
}

impl RetryAfter {
    /// Reads the field of a response that was received at the wall time `now`.
    #[must_use]
    pub fn of(headers: &HeaderMap, now: SystemTime) -> Self {
        let mut lines = headers.get_all(RETRY_AFTER).iter().peekable();
        if lines.peek().is_none() {
            return Self::Absent;
        }
        let date = headers.get(DATE).map(|value| value.as_bytes());
        let age = headers.get(AGE).map(|value| value.as_bytes());
        Self::parse(
            lines.map(|value| value.as_bytes()),
            server_present(date, age, now),
        )
    }

    /// Reads the field's `lines`, each alone; the longest usable wait counts.
    ///
    /// `present` is the server's present in seconds from 1970.
    #[must_use]
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>, present: i64) -> Self {
        lines
            .into_iter()
            .map(|line| match wait(trim(line), present) {
                Some(wait) => Self::Wait(wait),
                None => Self::Unusable,
            })
            .reduce(Self::longer)
            .unwrap_or(Self::Absent)
    }

    /// The wait, if it is a usable one.
    #[must_use]
    pub fn wait(self) -> Option<Duration> {
        match self {
            Self::Wait(wait) => Some(wait),
            Self::Unusable | Self::Absent => None,
        }
    }

    fn longer(self, other: Self) -> Self {
        match (self.wait(), other.wait()) {
            (Some(one), Some(two)) => Self::Wait(one.max(two)),
            (Some(_), None) => self,
            _ => other,
        }
    }
}

/// The server's present in seconds from 1970: its Date plus the Age of a stored response, or `now` where the Date is
/// absent or unreadable.
fn server_present(date: Option<&[u8]>, age: Option<&[u8]>, now: SystemTime) -> i64 {
    let local = unix(now);
    match date.and_then(|date| date::parse(date, local)) {
        Some(date) => {
            let age = age.and_then(|age| delta_seconds(trim(age))).unwrap_or(0);
            date.saturating_add(i64::try_from(age).unwrap_or(i64::MAX))
        }
        None => local,
    }
}

fn wait(line: &[u8], present: i64) -> Option<Duration> {
    if let Some(seconds) = delta_seconds(line).or_else(|| fraction_up(line)) {
        return Some(Duration::from_secs(seconds));
    }
    if let Some(at) = date::parse(line, present) {
        let ahead = at.saturating_sub(present).max(0);
        return Some(Duration::from_secs(ahead.unsigned_abs()));
    }
    joined_lines(line)
}

/// 1*DIGIT has no upper bound: what is too large is the largest.
fn delta_seconds(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        byte.is_ascii_digit().then(|| {
            sum.saturating_mul(10)
                .saturating_add(u64::from(byte - b'0'))
        })
    })
}

/// Some servers send fractions of a second: rounded up.
fn fraction_up(text: &[u8]) -> Option<u64> {
    let dot = text.iter().position(|byte| *byte == b'.')?;
    let (whole, fraction) = (&text[..dot], &text[dot + 1..]);
    let whole = delta_seconds(whole)?;
    let up = delta_seconds(fraction)? > 0;
    Some(whole.saturating_add(u64::from(up)))
}

/// A proxy may join several lines with commas (RFC 9110, 5.3): numbers only, because a date has a comma of its own.
fn joined_lines(line: &[u8]) -> Option<Duration> {
    line.split(|byte| *byte == b',')
        .map(|part| delta_seconds(trim(part)))
        .try_fold(0, |longest, seconds| Some(seconds?.max(longest)))
        .map(Duration::from_secs)
}

fn trim(text: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = text.iter().position(|byte| !is_space(byte));
    let end = text.iter().rposition(|byte| !is_space(byte));
    match (start, end) {
        (Some(start), Some(end)) => &text[start..=end],
        _ => &[],
    }
}

fn unix(time: SystemTime) -> i64 {
    let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => seconds(since),
        Err(before) => -seconds(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> RetryAfter {
        RetryAfter::parse(lines.iter().map(|line| line.as_bytes()), 1_796_076_000)
    }

    #[test]
    fn numbers_saturate_and_round_up() {
        let seconds = |n| RetryAfter::Wait(Duration::from_secs(n));
        assert_eq!(read(&["120"]), seconds(120));
        assert_eq!(read(&[" 007\t"]), seconds(7));
        assert_eq!(read(&["99999999999999999999999"]), seconds(u64::MAX));
        assert_eq!(read(&["0.503"]), seconds(1));
        assert_eq!(read(&["2.000"]), seconds(2));
        assert_eq!(read(&["5 , 10"]), seconds(10));
    }

    #[test]
    fn the_longest_usable_line_counts() {
        assert_eq!(
            read(&["abc", "10", "5"]),
            RetryAfter::Wait(Duration::from_secs(10))
        );
        assert_eq!(read(&["abc", "-1"]), RetryAfter::Unusable);
        assert_eq!(read(&[]), RetryAfter::Absent);
    }

    #[test]
    fn what_is_no_value_is_unusable() {
        for text in [
            "", "  ", "soon", "+5", "1 0", "1e3", "0x10", ".", "5.", "30s", ",", "5,",
        ] {
            assert_eq!(read(&[text]), RetryAfter::Unusable, "{text:?}");
        }
    }

    #[test]
    fn dates_are_measured_on_the_servers_clock() {
        let mut headers = HeaderMap::new();
        headers.insert(
            RETRY_AFTER,
            "Mon, 30 Nov 2026 22:05:00 GMT".parse().unwrap(),
        );
        headers.insert(DATE, "Mon, 30 Nov 2026 22:00:00 GMT".parse().unwrap());
        let wrong = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let wait = |headers: &HeaderMap| RetryAfter::of(headers, wrong).wait().unwrap().as_secs();
        assert_eq!(wait(&headers), 300);
        headers.insert(AGE, "120".parse().unwrap());
        assert_eq!(wait(&headers), 180);
        headers.insert(AGE, "99999999999999999999".parse().unwrap());
        assert_eq!(wait(&headers), 0);
    }
}
