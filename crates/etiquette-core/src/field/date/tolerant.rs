//! HTTP dates read tolerantly: for Retry-After and the Date beside it.
//!
//! The three forms of the RFC are read by its rules: a two-digit year is taken from the 50 years around the present,
//! second 60 is the next second, and a wrong day name does not spoil an unambiguous date. Near misses that are seen in
//! the wild (`UTC` or `+0000` for `GMT`, dashes, lower case, ISO 8601 with a zone) are read as meant, because a site that
//! asks for time is better understood than ignored. What leaves room for guessing is refused.

use super::calendar::{day_name, instant, month_by_name, two_digit_year, zone_by_name};

/// The seconds from 1970 to the instant that `value` names, negative before it.
///
/// `present` is the reference for two-digit years, in seconds from 1970.
#[must_use]
pub fn parse(value: &[u8], present: i64) -> Option<i64> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    // The longest that is understood is the RFC 850 form with "Wednesday"; far longer values are not read at all.
    if !text.is_ascii() || text.len() > 64 {
        return None;
    }
    let digits_first = text.as_bytes().iter().take(4).all(u8::is_ascii_digit);
    if digits_first && text.as_bytes().get(4) == Some(&b'-') {
        iso8601(text)
    } else {
        http_date(text, present)
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`, `Sun Nov  6 08:49:37 1994`.
fn http_date(text: &str, present: i64) -> Option<i64> {
    let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    if day_name(word).is_some() {
        word = words.next()?;
    }
    let (day, month, year, time, zone);
    if let Some(named) = month_by_name(word) {
        month = named;
        day = words.next()?;
        time = words.next()?;
        year = words.next()?;
        zone = None;
    } else {
        if word.contains('-') {
            let mut parts = word.split('-');
            day = parts.next()?;
            month = month_by_name(parts.next()?)?;
            year = parts.next()?;
            if parts.next().is_some() {
                return None;
            }
        } else {
            day = word;
            month = month_by_name(words.next()?)?;
            year = words.next()?;
        }
        time = words.next()?;
        zone = words.next();
    }
    if words.next().is_some() {
        return None;
    }
    let offset = match zone {
        Some(zone) => zone_offset(zone)?,
        None => 0,
    };
    let day = number(day, 1..=2)?;
    let seconds = time_of_day(time)? - offset;
    match year.len() {
        4 => instant(number(year, 4..=4)?, month, day, seconds),
        2 => two_digit_year(number(year, 2..=2)?, month, day, seconds, present),
        _ => None,
    }
}

/// `2026-11-30T22:01:00Z`, `2026-11-30T22:01:00.5+02:00`. Without a zone it would be a guess.
fn iso8601(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let mut parts = date.split('-');
    let year = number(parts.next()?, 4..=4)?;
    let month = number(parts.next()?, 2..=2)?;
    let day = number(parts.next()?, 2..=2)?;
    if parts.next().is_some() {
        return None;
    }
    let at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(at);
    let offset = match zone {
        "Z" | "z" => 0,
        zone => zone_offset(&zone.replacen(':', "", 1))?,
    };
    let (time, up) = match time.split_once('.') {
        // Rounded up: never earlier than meant.
        Some((time, fraction)) if is_digits(fraction) => {
            (time, i64::from(fraction.bytes().any(|digit| digit != b'0')))
        }
        Some(_) => return None,
        None => (time, 0),
    };
    instant(year, month, day, time_of_day(time)? - offset + up)
}

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    let (hour, minute, second) = (
        number(hour, 2..=2)?,
        number(minute, 2..=2)?,
        number(second, 2..=2)?,
    );
    (parts.next().is_none() && hour < 24 && minute < 60 && second <= 60)
        .then_some(hour * 3_600 + minute * 60 + second)
}

/// The seconds that the zone is ahead of GMT: numeric, or by its name.
fn zone_offset(zone: &str) -> Option<i64> {
    let Some(digits) = zone.strip_prefix(['+', '-']) else {
        return zone_by_name(zone);
    };
    let hhmm = number(digits, 4..=4)?;
    let (hours, minutes) = (hhmm / 100, hhmm % 100);
    let ahead = hours * 3_600 + minutes * 60;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    (hours < 24 && minutes < 60).then_some(sign * ahead)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str, length: std::ops::RangeInclusive<usize>) -> Option<i64> {
    (is_digits(text) && length.contains(&text.len())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::super::calendar::{civil, days};
    use super::*;

    /// 2026-11-30 22:00:00.
    const PRESENT: i64 = 1_796_076_000;

    #[test]
    fn the_three_forms_name_one_instant() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(parse(text.as_bytes(), PRESENT), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn two_digit_years_roll_with_the_present() {
        let year = |text: &str, present| civil(parse(text.as_bytes(), present).unwrap() / 86_400).0;
        assert_eq!(year("Monday, 30-Nov-76 22:00:00 GMT", PRESENT), 2076);
        assert_eq!(year("Monday, 30-Nov-76 22:00:01 GMT", PRESENT), 1976);
        let in_2095 = days(2095, 1, 1) * 86_400;
        assert_eq!(year("Monday, 30-Nov-05 22:00:00 GMT", in_2095), 2105);
        let in_1999 = days(1999, 12, 31) * 86_400;
        assert_eq!(year("Saturday, 01-Jan-00 00:00:00 GMT", in_1999), 2000);
    }

    #[test]
    fn guesses_are_refused() {
        for text in [
            "",
            "yesterday",
            "2026-11-30T22:01:00",
            "Mon, 30 Feb 2026 00:00:00 GMT",
            "Mon, 30 Nov 2026 22:01:00 XYZ",
            "Mon, 30 Nov 2026 22:01 GMT",
            "Mon, 30 Nov 026 22:01:00 GMT",
            "Foo, 30 Nov 2026 22:01:00 GMT",
            "Mon, 30 Nov 2026 22:01:00 GMT GMT",
            "Mon, 30 Nov 2026 2\u{663}:01:00 GMT",
        ] {
            assert_eq!(parse(text.as_bytes(), PRESENT), None, "{text}");
        }
    }
}
