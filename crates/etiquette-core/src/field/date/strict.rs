//! HTTP dates read strictly: for the ages and lifetimes of a cache (RFC 9111, 4.2).
//!
//! The three forms are accepted with names in any case, and nothing else: a cache that guesses what `UTC` or a
//! two-digit year may have meant serves a response beyond the life that its origin gave it.

use std::time::{Duration, SystemTime};

use super::calendar::{DayName, day_name, instant, month_by_name, two_digit_year};

/// The parts of a date before they are turned into an instant.
struct Civil<'a> {
    year: &'a [u8],
    month: &'a [u8],
    day: &'a [u8],
    time: &'a [u8],
}

/// Reads an IMF-fixdate, an RFC 850 date or an asctime date. `now` decides the century of an RFC 850 year: a date that
/// would lie more than 50 years ahead belongs to the past.
#[must_use]
pub fn parse_strict(value: &[u8], now: SystemTime) -> Option<SystemTime> {
    imf(value)
        .or_else(|| asctime(value))
        .and_then(|civil| civil.instant(None))
        .or_else(|| rfc850(value).and_then(|civil| civil.instant(Some(now))))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf(v: &[u8]) -> Option<Civil<'_>> {
    let shape = v.len() == 29
        && is_day(&v[..3], DayName::Short)
        && &v[3..5] == b", "
        && v[7] == b' '
        && v[11] == b' '
        && v[16] == b' '
        && v[25..].eq_ignore_ascii_case(b" GMT");
    shape.then(|| Civil {
        day: &v[5..7],
        month: &v[8..11],
        year: &v[12..16],
        time: &v[17..25],
    })
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(v: &[u8]) -> Option<Civil<'_>> {
    let shape = v.len() == 24
        && is_day(&v[..3], DayName::Short)
        && v[3] == b' '
        && v[7] == b' '
        && v[10] == b' '
        && v[19] == b' ';
    shape.then(|| Civil {
        month: &v[4..7],
        day: if v[8] == b' ' { &v[9..10] } else { &v[8..10] },
        time: &v[11..19],
        year: &v[20..24],
    })
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(v: &[u8]) -> Option<Civil<'_>> {
    let comma = v.iter().position(|&c| c == b',')?;
    let (day, v) = (&v[..comma], &v[comma..]);
    let shape = is_day(day, DayName::Long)
        && v.len() == 24
        && &v[..2] == b", "
        && v[4] == b'-'
        && v[8] == b'-'
        && v[11] == b' '
        && v[20..].eq_ignore_ascii_case(b" GMT");
    shape.then(|| Civil {
        day: &v[2..4],
        month: &v[5..8],
        year: &v[9..11],
        time: &v[12..20],
    })
}

fn is_day(name: &[u8], form: DayName) -> bool {
    std::str::from_utf8(name).ok().and_then(day_name) == Some(form)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0_i64, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + i64::from(digit - b'0'))
    })
}

impl Civil<'_> {
    /// The instant; with `now`, the year has two digits and its century is chosen.
    fn instant(&self, now: Option<SystemTime>) -> Option<SystemTime> {
        let year = number(self.year)?;
        let day = number(self.day)?;
        let month = month_by_name(std::str::from_utf8(self.month).ok()?)?;
        let t = self.time;
        if t[2] != b':' || t[5] != b':' {
            return None;
        }
        let (hour, minute, second) = (number(&t[..2])?, number(&t[3..5])?, number(&t[6..])?);
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let clock = hour * 3600 + minute * 60 + second;
        let seconds = match now {
            None => instant(year, month, day, clock)?,
            Some(now) => two_digit_year(year, month, day, clock, seconds_of(now))?,
        };
        Some(from_epoch(seconds))
    }
}

/// The seconds from 1970 to a time, negative before it.
fn seconds_of(time: SystemTime) -> i64 {
    let whole = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(before) => -whole(before.duration()),
    }
}

fn from_epoch(seconds: i64) -> SystemTime {
    let span = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 {
        SystemTime::UNIX_EPOCH
            .checked_sub(span)
            .unwrap_or(SystemTime::UNIX_EPOCH)
    } else {
        SystemTime::UNIX_EPOCH + span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<i64> {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_780_000_000);
        let instant = parse_strict(text.as_bytes(), now)?;
        Some(match instant.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_secs()).unwrap(),
            Err(before) => -i64::try_from(before.duration().as_secs()).unwrap(),
        })
    }

    #[test]
    fn three_forms_in_any_case() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "SUN, 06 nov 1994 08:49:37 gMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            // The name of the day is not checked against the date.
            "Mon, 06 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Wed, 31 Dec 1969 23:59:59 GMT"), Some(-1));
        assert_eq!(seconds("Tue, 29 Feb 2000 00:00:00 GMT"), Some(951_782_400));
        assert_eq!(
            seconds("Thursday, 18-Aug-50 02:01:18 GMT"),
            Some(2_544_400_878)
        );
    }

    #[test]
    fn nothing_else() {
        for text in [
            "",
            "0",
            "Thu, 18 Aug 2050 02:01:18 UTC",
            "Thu, 18 Aug 2050 02:01:18 AEST",
            "Thu, 18 Aug 50 02:01:18 GMT",
            "Thu 18 Aug 2050 02:01:18 GMT",
            "Thu, 18  Aug  2050 02:01:18 GMT",
            "Thu, 18-Aug-2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 02.01.18 GMT",
            "Thu, 18 Aug 2050 2:01:18 GMT",
            "Thu, 29 Feb 2100 00:00:00 GMT",
            "Thu, 00 Aug 2050 02:01:18 GMT",
            "Thu, 18 Aug 2050 24:01:18 GMT",
            "Sunday, 06-Nov-9x 08:49:37 GMT",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
