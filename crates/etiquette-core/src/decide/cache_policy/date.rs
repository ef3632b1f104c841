//! HTTP dates, read strictly (RFC 9110, 5.6.7).
//!
//! The three forms are accepted with names in any case, and nothing else: a cache that guesses what `UTC` or a
//! two-digit year may have meant serves a response beyond the life that its origin gave it.

use std::time::{Duration, SystemTime};

const MONTHS: [&[u8; 3]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

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
pub fn parse_http_date(value: &[u8], now: SystemTime) -> Option<SystemTime> {
    imf(value)
        .or_else(|| asctime(value))
        .and_then(|civil| civil.instant(None))
        .or_else(|| rfc850(value).and_then(|civil| civil.instant(Some(now))))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf(v: &[u8]) -> Option<Civil<'_>> {
    let shape = v.len() == 29
        && is_day(&v[..3], 3)
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
        && is_day(&v[..3], 3)
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
    let shape = is_day(day, usize::MAX)
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

/// Whether `name` is the name of a day, cut to `letters`. Which day it is does not matter.
fn is_day(name: &[u8], letters: usize) -> bool {
    DAYS.iter()
        .any(|day| name.eq_ignore_ascii_case(&day.as_bytes()[..letters.min(day.len())]))
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0_u32, |sum, digit| {
        digit
            .is_ascii_digit()
            .then(|| sum * 10 + u32::from(digit - b'0'))
    })
}

impl Civil<'_> {
    /// The instant; with `now`, the year has two digits and its century is chosen.
    fn instant(&self, now: Option<SystemTime>) -> Option<SystemTime> {
        let year = number(self.year)?;
        let day = number(self.day)?;
        let month = MONTHS
            .iter()
            .position(|name| self.month.eq_ignore_ascii_case(*name))?;
        let month = u32::try_from(month).ok()? + 1;
        let t = self.time;
        if t[2] != b':' || t[5] != b':' {
            return None;
        }
        let (hour, minute, second) = (number(&t[..2])?, number(&t[3..5])?, number(&t[6..])?);
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let clock = i64::from(hour * 3600 + minute * 60 + second);
        let at = |year: u32| {
            (day >= 1 && day <= days_in(month, year))
                .then(|| from_epoch(days_from_epoch(year, month, day) * 86_400 + clock))
        };
        let Some(now) = now else {
            return at(year);
        };
        let horizon = now + Duration::from_secs(50 * 365 * 86_400 + 12 * 86_400);
        match at(2_000 + year) {
            Some(instant) if instant <= horizon => Some(instant),
            _ => at(1_900 + year),
        }
    }
}

fn days_in(month: u32, year: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 31,
    }
}

/// Days from 1 January 1970 in the Gregorian calendar: counted in years that begin in March, so that the leap day is
/// the last of its year.
fn days_from_epoch(year: u32, month: u32, day: u32) -> i64 {
    let shifted = i64::from(year) - i64::from(month <= 2);
    let since_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * since_march + 2) / 5 + i64::from(day) - 1;
    shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468
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
        let instant = parse_http_date(text.as_bytes(), now)?;
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
