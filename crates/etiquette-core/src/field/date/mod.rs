//! HTTP dates (RFC 9110, 5.6.7): two readings and one writing.
//!
//! | function | for | reads |
//! | --- | --- | --- |
//! | [`parse`] | Retry-After | the three forms and what is meant by near misses: a site that asks for time is understood |
//! | [`parse_strict`] | the ages of a cache | the three forms alone: no response lives beyond what its origin gave it |
//! | [`format()`] | all that is written | |
//!
//! # Why not `httpdate` for reading
//! It writes here. Its reading takes a two-digit year from 70 on for 19xx whatever the present, and refuses second 60, a
//! wrong day of the week and names in another case, all of which RFC 9110 or servers have otherwise; the tests show each of
//! them. A date that is not read ends a pause too early.

mod calendar;
mod strict;
mod tolerant;

pub use calendar::{checked_days, days, month_by_name, zone_by_name};
pub use strict::parse_strict;
pub use tolerant::parse;

use std::time::{Duration, SystemTime};

/// A wall time in the form that is sent, to the second; what lies outside of the years 1970 to 9999 as their end.
#[must_use]
pub fn format(at: SystemTime) -> String {
    // The library panics beyond them.
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    httpdate::fmt_http_date(at.clamp(SystemTime::UNIX_EPOCH, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_written_is_read() {
        for seconds in [0, 784_111_777, 253_402_300_799] {
            let text = format(at(seconds));
            assert_eq!(parse(text.as_bytes(), 0), i64::try_from(seconds).ok());
            assert_eq!(parse_strict(text.as_bytes(), at(0)), Some(at(seconds)));
        }
        assert_eq!(format(at(253_402_300_800)), "Fri, 31 Dec 9999 23:59:59 GMT");
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(format(before), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    /// Why dates are not read by the library that writes them.
    #[test]
    fn where_the_library_reads_otherwise() {
        let library = |text: &str| httpdate::parse_http_date(text).ok();
        let in_2026 = at(1_796_076_000);
        let strict = |text: &str| parse_strict(text.as_bytes(), in_2026);

        // RFC 9110, 5.6.7: a year that appears to be more than 50 years ahead is past.
        let rolls = "Friday, 01-Jan-71 00:00:00 GMT";
        assert_eq!(library(rolls), Some(at(31_536_000)));
        assert_eq!(strict(rolls), Some(at(3_187_296_000)));
        // Whatever day of the week a server takes it for.
        let monday = "Mon, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(library(monday), None);
        assert_eq!(strict(monday), Some(at(784_111_777)));
        // 5.6.7 allows the leap second.
        let leap = "Sat, 31 Dec 2016 23:59:60 GMT";
        assert_eq!(library(leap), None);
        assert_eq!(strict(leap), Some(at(1_483_228_800)));
        // Case is as servers have it.
        let lower = "sun, 06 nov 1994 08:49:37 gmt";
        assert_eq!(library(lower), None);
        assert_eq!(strict(lower), Some(at(784_111_777)));
    }
}
