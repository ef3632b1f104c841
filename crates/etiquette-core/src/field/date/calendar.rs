//! The Gregorian calendar, and the names of days, months and zones, for every reading of a date.

/// The names of the days of a week.
const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// The names of the months.
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];

/// How the name of a day is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayName {
    /// `Sun`
    Short,
    /// `Sunday`
    Long,
}

/// Whether `word` is the name of a day, in any case. Which day it is does not matter: a wrong one spoils no date.
pub(super) fn day_name(word: &str) -> Option<DayName> {
    DAYS.iter().find_map(|day| {
        if word.eq_ignore_ascii_case(day) {
            Some(DayName::Long)
        } else if word.eq_ignore_ascii_case(&day[..3]) {
            Some(DayName::Short)
        } else {
            None
        }
    })
}

/// The number of the month with this name of three letters, in any case; from 1.
#[must_use]
pub fn month_by_name(word: &str) -> Option<i64> {
    let at = MONTHS
        .iter()
        .position(|month| word.eq_ignore_ascii_case(month))?;
    i64::try_from(at + 1).ok()
}

/// How many seconds a zone that RFC 5322, 4.3 names is ahead of GMT; a name that is none of them tells nothing.
#[must_use]
pub fn zone_by_name(name: &str) -> Option<i64> {
    let hours = match name.to_ascii_uppercase().as_str() {
        "GMT" | "UTC" | "UT" | "Z" => 0,
        "EDT" => -4,
        "EST" | "CDT" => -5,
        "CST" | "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        _ => return None,
    };
    Some(hours * 3_600)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` where the month has no such day.
#[must_use]
pub fn checked_days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=length).contains(&day).then(|| days(year, month, day))
}

/// The seconds from 1970 to a second of a day, if there is such a day.
pub(super) fn instant(year: i64, month: i64, day: i64, seconds: i64) -> Option<i64> {
    Some(checked_days(year, month, day)? * 86_400 + seconds)
}

/// The latest year with these last digits that is no more than 50 years ahead (RFC 9110, 5.6.7).
pub(super) fn two_digit_year(
    digits: i64,
    month: i64,
    day: i64,
    seconds: i64,
    present: i64,
) -> Option<i64> {
    let (this_year, this_month, this_day) = civil(present.div_euclid(86_400));
    let limit = days(this_year + 50, this_month, this_day) * 86_400 + present.rem_euclid(86_400);
    let century = this_year - this_year.rem_euclid(100);
    [century + 100, century, century - 100]
        .into_iter()
        .filter_map(|century| instant(century + digits, month, day, seconds))
        .find(|at| *at <= limit)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, counted in years that begin in March. Month 13 is the next January.
#[must_use]
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 12 {
        (year + 1, month - 12)
    } else {
        (year, month)
    };
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The inverse of [`days`].
pub(super) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_civil_are_inverse() {
        for day in (-1_000_000..4_000_000).step_by(37) {
            let (year, month, of_month) = civil(day);
            assert_eq!(days(year, month, of_month), day);
        }
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
    }
}
